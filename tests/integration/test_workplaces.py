"""Where sessions work: in a worktree of their own, or in place with bounds on what they may write."""

from __future__ import annotations

import asyncio
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from fleet.model.states import Result, Source, TaskState
from fleet.model.terms import Terms
from tests.support.inhouse import InHouse


@pytest.fixture
def inside(tmp_path: Path) -> Iterator[InHouse]:
    """A home whose supervisors run in this process; nothing of its sessions is left afterwards."""
    made = InHouse(tmp_path)
    yield made
    made.close()


@pytest.fixture
def repo(tmp_path: Path) -> Path:
    """A repository with one commit."""
    repo = tmp_path / "repo"
    repo.mkdir()
    (repo / "a.txt").write_text("one\n")
    identity = ["-c", "user.name=Ana", "-c", "user.email=ana@example.com"]
    for words in (["init", "-q", "-b", "main"], ["add", "-A"], [*identity, "commit", "-qm", "first"]):
        subprocess.run(["git", "-C", str(repo), *words], check=True)
    return repo


def run(inside: InHouse, repo: Path, command: str, **terms: Any) -> str:
    """A command as the worker, run to its end."""
    uid = inside.add(command=command, cwd=str(repo), terms=Terms(**terms))
    inside.drain()
    return uid


def test_work_in_a_worktree_does_not_reach_the_checkout(inside: InHouse, repo: Path) -> None:
    """The task's own branch has it; setup ran there first, and copied files are there."""
    (repo / "local.env").write_text("A=1\n")
    uid = run(
        inside,
        repo,
        "cat local.env prepared && echo two >>a.txt",
        isolation="worktree",
        setup="echo set up >prepared",
        copy_files=("local.env",),
    )
    assert inside.task(uid).state is TaskState.COMPLETED
    assert (repo / "a.txt").read_text() == "one\n"
    tree = inside.home.path / "worktrees" / uid
    assert (tree / "a.txt").read_text() == "one\ntwo\n"
    words = ["git", "-C", str(tree), "branch", "--show-current"]
    branch = subprocess.run(words, check=True, capture_output=True, text=True)
    assert branch.stdout.strip() == f"fleet/{uid}"
    assert {"kind": "text", "text": "A=1"} in inside.said(uid)


def test_another_attempt_finds_what_the_first_left_in_its_worktree(inside: InHouse, repo: Path) -> None:
    """A worktree belongs to the task, not to the session; the setup is not run again."""
    script = "echo x >>tries; test $(wc -l <tries) -eq 2"
    uid = run(inside, repo, script, isolation="worktree", setup="echo y >>setups")
    assert inside.task(uid).state is TaskState.COMPLETED
    tree = inside.home.path / "worktrees" / uid
    assert ((tree / "tries").read_text(), (tree / "setups").read_text()) == ("x\nx\n", "y\n")


def test_a_setup_that_fails_is_no_success_of_the_worker(inside: InHouse, repo: Path) -> None:
    """The worker never runs, and the reason is on its stderr."""
    inside.set(max_attempts=1)
    uid = run(inside, repo, "echo ran >ran", isolation="worktree", setup="exit 4")
    assert inside.task(uid).state is TaskState.FAILED
    assert not (inside.home.path / "worktrees" / uid / "ran").exists()
    assert "the setup failed" in (inside.home.task_dir(uid) / "stderr.log").read_text()


def test_a_worktree_of_no_repository_cannot_be_launched(inside: InHouse, tmp_path: Path) -> None:
    """It fails at once, with the reason, and is not tried again."""
    uid = run(inside, tmp_path, "true", isolation="worktree")
    (receipt,) = inside.store.receipts(task=uid)
    assert (receipt.result, receipt.source) == (Result.FAIL, Source.TASK)
    assert "in no git repository" in receipt.reason


def test_a_write_outside_the_writable_paths_fails_the_task_by_file(inside: InHouse, repo: Path) -> None:
    """Though the command ended well; what was written in a writable path and in the artifact directory is fine."""
    script = 'mkdir out; echo ok >out/r; echo p >"$FLEET_ARTIFACT_DIR/report.md"; echo bad >>a.txt; echo new >b'
    uid = run(inside, repo, script, writable_paths=("out",))
    (receipt,) = inside.store.receipts(task=uid)
    assert (receipt.result, receipt.source) == (Result.FAIL, Source.TASK)
    assert receipt.reason == "it wrote outside its writable paths: a.txt, b"
    assert receipt.evidence == ("written: a.txt", "written: b")


def test_what_stays_within_its_writable_paths_passes(inside: InHouse, repo: Path) -> None:
    """Nothing but the declared places changed."""
    uid = run(inside, repo, "mkdir out; echo ok >out/r; git status >/dev/null", writable_paths=("out",))
    assert inside.task(uid).state is TaskState.COMPLETED


def test_a_trespass_is_seen_though_the_supervisor_was_replaced(inside: InHouse, repo: Path) -> None:
    """What was there before the session is kept on its host, not in our memory."""
    script = "echo bad >>a.txt; echo here; sleep 1; echo done"
    uid = inside.add(command=script, cwd=str(repo), terms=Terms(writable_paths=()))

    async def begin() -> None:
        async with inside.supervising():
            await inside.until(lambda: inside.said(uid), "its first word")

    asyncio.run(begin())
    inside.drain()
    (receipt,) = inside.store.receipts(task=uid)
    assert receipt.reason == "it wrote outside its writable paths: a.txt"


def test_a_missing_variable_skips_the_task(inside: InHouse, repo: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing is launched; the receipt says what was not set. One that is set reaches the worker."""
    monkeypatch.setenv("FLEET_TEST_PROFILE", "blue")
    monkeypatch.setenv("FLEET_TEST_HIDDEN", "red")
    names = ("PATH", "FLEET_TEST_PROFILE")
    given = run(
        inside,
        repo,
        'echo "$FLEET_TEST_PROFILE-$FLEET_TEST_HIDDEN"',
        required_environment=names,
        environment_allowlist=("FLEET_TEST_PROFILE",),
    )
    assert {"kind": "text", "text": "blue-"} in inside.said(given)
    uid = run(inside, repo, "true", required_environment=("FLEET_TEST_HIDDEN",))
    (receipt,) = inside.store.receipts(task=uid)
    assert receipt.result is Result.SKIP
    assert receipt.reason == "required environment is not set: FLEET_TEST_HIDDEN"
    assert inside.said(uid) == []


@pytest.mark.parametrize("field", ["required_files", "input_files"])
def test_a_missing_file_skips_the_task(inside: InHouse, repo: Path, field: str) -> None:
    """Absent, or a link that leads out: the receipt names each; what is there is not named, a directory included."""
    (repo / "sub").mkdir()
    (repo / "out").symlink_to("/etc/passwd")
    uid = run(inside, repo, "true", **{field: ("a.txt", "sub", "gone.md", "out")})
    (receipt,) = inside.store.receipts(task=uid)
    assert receipt.result is Result.SKIP
    assert receipt.reason == f"{field.partition('_')[0]} files are not in {repo}: gone.md, out"
    assert inside.said(uid) == []
