"""Tasks on ssh workers, driven by the supervisor: the same life as here, and the same guarantees."""

from __future__ import annotations

import asyncio
import hashlib
import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from fleet.config.clock import utc_ms
from fleet.config.load import load
from fleet.hosts.machine import local_host
from fleet.model.states import Result, TaskState
from fleet.model.terms import Terms
from fleet.projections.why import why
from fleet.supervisor.pruner import Pruned, Pruner
from tests.support.away import Away
from tests.support.session_host import processes_with
from tests.support.sshd import Sshd, sshd


@pytest.fixture(scope="module")
def server() -> Iterator[Sshd]:
    """A machine over there."""
    with sshd() as server:
        yield server


@pytest.fixture
def away(tmp_path: Path, server: Sshd, monkeypatch: pytest.MonkeyPatch) -> Iterator[Away]:
    """A home with a worker over there, and no slot here; nothing may be left on either side."""
    away = Away(tmp_path, server, monkeypatch)
    yield away
    away.close()


def test_a_task_runs_there_to_its_receipt(away: Away) -> None:
    """A task that names no directory and needs what only the worker can do runs there, and its words come back."""
    far = away.declare(capabilities=["gpu"])
    uid = away.add(command="pwd; echo $FLEET_SESSION_DIR; fleet comment 'from afar'; echo done", capabilities=("gpu",))
    away.drain()
    task = away.task(uid)
    (receipt,) = away.store.receipts(task=uid)
    (session,) = away.store.sessions(task=uid)
    assert (task.state, receipt.result) == (TaskState.COMPLETED, Result.PASS)
    assert (session.host, session.worker) == ("builder", "builder#1")
    assert [said["text"] for said in away.said(uid)] == [far, f"{far}/.fleet/sessions/{session.id}", "noted", "done"]
    assert [remark.text for remark in away.store.comments(uid)] == ["from afar"]


def test_an_agent_there_that_prints_without_end_is_ended(away: Away) -> None:
    """Its log here keeps the beginning and the end, its task has failed once, who works beside it is not held up."""
    away.set(max_log_mb=1, max_output_mb=2)
    away.declare(capabilities=["gpu"], max_concurrent_tasks=2)
    scripts = ("while :; do seq 30000; sleep 0.05; done", "sleep 1; echo done")
    loud, quiet = (away.add(command=script, capabilities=("gpu",)) for script in scripts)
    away.drain()
    assert (away.task(quiet).state, away.said(quiet)[-1]["text"]) == (TaskState.COMPLETED, "done")
    task = away.task(loud)
    assert (task.state, task.charged) == (TaskState.FAILED, 1)
    assert task.reason == "it printed more than 2 MB (max_output_mb)"
    kinds = [said["kind"] for said in away.said(loud)]
    assert (kinds[0], kinds[-1], kinds.count("notice")) == ("text", "text", 2)
    assert (away.home.task_dir(loud) / "log.jsonl").stat().st_size < 3_000_000


def test_capabilities_choose_among_workers(away: Away) -> None:
    """Of two workers each gets what only it can do; what anybody can do is shared out by load, here too."""
    away.set(max_concurrent=1)
    away.declare("red", directory="red", capabilities=["red"], max_concurrent_tasks=2)
    away.declare("blue", directory="blue", capabilities=["blue"], max_concurrent_tasks=2)
    red = [away.add(command="sleep 0.3; pwd", capabilities=("red",)) for _ in range(3)]
    blue = [away.add(command="pwd", capabilities=("blue",)) for _ in range(2)]
    away.drain()
    hosts = {uid: {one.host for one in away.store.sessions(task=uid)} for uid in (*red, *blue)}
    assert hosts == {uid: {"red"} for uid in red} | {uid: {"blue"} for uid in blue}
    assert {away.task(uid).state for uid in hosts} == {TaskState.COMPLETED}
    assert {one.worker for uid in red for one in away.store.sessions(task=uid)} == {"red#1", "red#2"}


def test_a_task_with_a_directory_here_stays_here(away: Away, tmp_path: Path) -> None:
    """A directory of this machine is not looked for on another, however busy this one is."""
    away.set(max_concurrent=1)
    away.declare(max_concurrent_tasks=4)
    bound = [away.add(command="pwd", cwd=str(tmp_path), host=local_host()) for _ in range(3)]
    away.drain()
    assert {one.host for uid in bound for one in away.store.sessions(task=uid)} == {local_host()}
    assert {away.said(uid)[0]["text"] for uid in bound} == {str(tmp_path)}


def test_a_host_that_is_not_fit_takes_nothing(away: Away) -> None:
    """A probe that fails keeps work away, with its evidence in the store; a host that comes back is used."""
    uid = away.add(command="echo here", capabilities=("gpu",))
    away.declare(capabilities=["gpu"], agent_binary="no-such-program")

    async def meanwhile() -> None:
        async with away.supervising():
            await away.until(lambda: [one for one in away.store.hosts() if one.state == "down"], "the probe")
            (known,) = away.store.hosts()
            assert known.evidence == "there is no program no-such-program"
            assert away.task(uid).state is TaskState.QUEUED
            answer = why(away.store, load(away.home), away.task(uid), now=0)
            assert answer.summary.startswith(
                "no worker fits: builder: it is down: there is no program no-such-program; "
            )
            assert {each.worker for each in answer.workers} == {"builder", "local"}
            away.tables[-1] = away.tables[-1].replace("no-such-program", "/bin/sh")
            away.set()
            await away.until_state(uid, TaskState.COMPLETED)
            (known,) = away.store.hosts()
            assert (known.state, known.kind) == ("up", "ssh")

    asyncio.run(meanwhile())


def test_the_artifact_directory_goes_there_and_comes_back(away: Away) -> None:
    """What an agent left in its artifact directory is here afterwards, and the next finds it; scorers read it there."""
    far = away.declare(capabilities=["gpu"])
    script = """
    cat "$FLEET_ARTIFACT_DIR/PLAN_AND_STATUS.md" || true
    mkdir -p "$FLEET_ARTIFACT_DIR/deep"
    printf 'step %s\\n' "$FLEET_SESSION" >>"$FLEET_ARTIFACT_DIR/PLAN_AND_STATUS.md"
    head -c 200000 /dev/zero >"$FLEET_ARTIFACT_DIR/deep/zeros"
    echo ready >result.txt
    [ "$(grep -c step "$FLEET_ARTIFACT_DIR/PLAN_AND_STATUS.md")" = 2 ]
    """
    terms = Terms(
        scorer={"kind": "file_exists", "path": "result.txt"}, expected_artifacts=("PLAN_AND_STATUS", "result.txt")
    )
    uid = away.add(command=script, capabilities=("gpu",), terms=terms)
    away.drain()
    kept = away.home.task_dir(uid) / "artifacts"
    assert (kept / "PLAN_AND_STATUS.md").read_text() == f"step {away.session(uid)}\nstep {away.session(uid, 2)}\n"
    assert (kept / "deep/zeros").read_bytes() == bytes(200_000)
    assert f"step {away.session(uid)}" in [said["text"] for said in away.said(uid)]
    receipt = away.store.receipts(task=uid)[-1]
    assert (receipt.result, away.task(uid).state) == (Result.PASS, TaskState.COMPLETED)
    refs = {(ref.place, ref.path): ref for ref in receipt.artifacts}
    assert refs["workspace", "result.txt"].sha256 == hashlib.sha256(b"ready\n").hexdigest()
    assert refs["artifacts", "deep/zeros"].size == 200_000
    assert Path(far, "result.txt").read_text() == "ready\n"


def test_an_artifact_that_becomes_a_directory_holds_nothing_up(away: Away) -> None:
    """What cannot be brought back or sent, as something else stands in its place, is left out and told; all else goes
    both ways, and the task goes on to its end."""
    away.declare(capabilities=["gpu"])
    long = "n" * 250
    script = f"""
    cd "$FLEET_ARTIFACT_DIR"
    echo "$FLEET_SESSION" >{long}
    if [ -f out ]; then rm out && mkdir out && echo deep >out/file; exit 1; fi
    if [ -d out ]; then exit 0; fi
    echo flat >out
    exit 1
    """
    uid = away.add(command=script, capabilities=("gpu",))
    away.drain()
    assert away.task(uid).state is TaskState.COMPLETED
    kept = away.home.task_dir(uid) / "artifacts"
    assert ((kept / "out").read_text(), (kept / long).read_text()) == ("flat\n", f"{away.session(uid, 3)}\n")
    assert [each["files"] for each in away.logged("artifacts_not_brought_back")] == [["out/file"], ["out/file"]]
    assert [each["files"] for each in away.logged("artifacts_not_sent")] == [["out"]]
    receipt = away.store.receipts(task=uid)[-1]
    assert "out/file" in {ref.path for ref in receipt.artifacts}


def test_input_files_are_uploaded_where_they_are_missing(away: Away, tmp_path: Path) -> None:
    """An input file that the worker has is left alone; one that it lacks is brought; one that nobody has skips it."""
    far = Path(away.declare(capabilities=["gpu"]))
    base = tmp_path / "project"
    (base / "data").mkdir(parents=True)
    (base / "data/new.txt").write_text("from here\n")
    (base / "data/old.txt").write_text("not this one\n")
    (far / "data").mkdir()
    (far / "data/old.txt").write_text("from there\n")
    terms = Terms(input_files=("data/new.txt", "data/old.txt"), base=str(base))
    uid = away.add(command="cat data/new.txt data/old.txt", capabilities=("gpu",), terms=terms)
    other = away.add(command="true", capabilities=("gpu",), terms=Terms(input_files=("none.txt",), base=str(base)))
    away.drain()
    assert [said["text"] for said in away.said(uid)] == ["from here", "from there"]
    assert away.task(uid).state is TaskState.COMPLETED
    assert (away.task(other).state, "none.txt" in away.task(other).reason) == (TaskState.CANCELLED, True)


def test_a_worktree_over_there(away: Away) -> None:
    """Isolation in a worktree happens in the repository of the worker, and the checkout is not touched."""
    far = Path(away.declare(capabilities=["gpu"]))
    git = ["git", "-c", "user.name=a", "-c", "user.email=a@b", "-C", str(far)]
    for words in (["init", "-q"], ["commit", "-q", "--allow-empty", "-m", "first"]):
        subprocess.run([*git, *words], check=True)
    terms = Terms(isolation="worktree")
    uid = away.add(command="pwd; echo x >made; ls", capabilities=("gpu",), terms=terms)
    away.drain()
    assert [said["text"] for said in away.said(uid)] == [f"{far}/.fleet/worktrees/{away.there(uid)}", "made"]
    assert not (far / "made").exists()
    assert away.task(uid).state is TaskState.COMPLETED


def test_old_sessions_are_forgotten_there_too(away: Away) -> None:
    """After its time the directory of an ended task's session goes from its host; what it said stays here."""
    far = Path(away.declare(capabilities=["gpu"]))
    away.set(keep_sessions_days=1)
    uid = away.add(command="echo well; echo noise >&2", capabilities=("gpu",))
    (far / ".fleet/sessions/of-another-home.1").mkdir(parents=True)

    async def pruned() -> Pruned:
        async with away.supervising() as supervisor:
            await away.until_state(uid, TaskState.COMPLETED)
            assert (far / ".fleet/sessions" / away.session(uid)).is_dir()
            return await Pruner(supervisor.house, tuple, clock=lambda: utc_ms() + 3 * 86_400_000).run_once()

    assert asyncio.run(pruned()).sessions == 1
    assert [path.name for path in (far / ".fleet/sessions").glob("[!.]*")] == ["of-another-home.1"]
    assert [said["text"] for said in away.said(uid)] == ["well"]


def test_a_host_that_fails_while_it_is_pruned_is_asked_again(away: Away) -> None:
    """A session that could not be forgotten because its host did not do it goes in a later round."""
    far = Path(away.declare(capabilities=["gpu"]))
    away.set(keep_sessions_days=1)
    uid = away.add(command="echo well", capabilities=("gpu",))

    async def pruned() -> list[int]:
        async with away.supervising() as supervisor:
            await away.until_state(uid, TaskState.COMPLETED)
            directory = far / ".fleet/sessions" / away.session(uid)
            await away.until(lambda: not processes_with(os.fsencode(directory)), "the end of its runner")
            pruner = Pruner(supervisor.house, tuple, clock=lambda: utc_ms() + 3 * 86_400_000)
            (directory / "runner.sh").rename(far / "runner.sh")
            (directory / "runner.sh").write_text("exit 1\n")
            first = await pruner.run_once()
            (far / "runner.sh").replace(directory / "runner.sh")
            return [first.sessions, (await pruner.run_once()).sessions]

    assert asyncio.run(pruned()) == [0, 1]
    (told,) = away.logged("prune_failed")
    assert (told["host"], told["session"]) == ("builder", away.session(uid))
