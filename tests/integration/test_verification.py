"""From the end of a session to its receipt: artifacts, scorers, verifiers that are sessions, retries."""

from __future__ import annotations

import asyncio
import json
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from fleet.hosts.collect import Shelf
from fleet.model import event as ev
from fleet.model.receipt import Receipt
from fleet.model.states import Result, SessionState, Source, TaskState
from fleet.model.terms import RetryPolicy, Terms
from tests.support.inhouse import InHouse

ONCE = RetryPolicy(max_attempts=1, initial_backoff_seconds=0)
TWICE = RetryPolicy(max_attempts=2, initial_backoff_seconds=0)


@pytest.fixture
def inside(tmp_path: Path) -> Iterator[InHouse]:
    """A home whose supervisors run in this process; nothing of its sessions is left afterwards."""
    made = InHouse(tmp_path)
    yield made
    made.close()


def terms(scorer: dict[str, Any] | None = None, retry: RetryPolicy = ONCE, **fields: Any) -> Terms:
    """What a spec asks of a task."""
    return Terms(scorer=scorer, retry=retry, **fields)


def done(inside: InHouse, uid: str) -> list[Receipt]:
    """The receipts of a task, once all is done."""
    inside.drain()
    return inside.store.receipts(task=uid)


def alerts(inside: InHouse, uid: str) -> list[str]:
    """The kinds of alerts that were raised about a task."""
    return [entry.event.alert.value for entry in inside.store.chain(uid) if isinstance(entry.event, ev.AlertRaised)]


def test_without_a_scorer_a_pass_is_unverified(inside: InHouse) -> None:
    """A session that ended well passes, by its own word alone, and its receipt says who did it and how long it took."""
    (receipt,) = done(inside, inside.add(command="echo hello"))
    assert (receipt.result, receipt.verified, receipt.score) == (Result.PASS, False, None)
    assert (receipt.coder, receipt.attempt, receipt.exit_code) == ("command", 1, 0)
    assert receipt.host is not None
    assert receipt.host.startswith("local@")


def test_expected_artifacts_are_kept_by_content(inside: InHouse, tmp_path: Path) -> None:
    """A file of the expected name, and a path of the workspace, are kept with checksums; so are log and receipt."""
    work = tmp_path / "work"
    work.mkdir()
    uid = inside.add(
        command='echo said; mkdir -p build; echo 1 >build/out.json; echo r >"$FLEET_ARTIFACT_DIR/report.md"',
        cwd=str(work),
        terms=terms(expected_artifacts=("log", "report", "build/out.json", "receipt")),
    )
    (inside.home.task_dir(uid) / "artifacts").mkdir(parents=True)
    (receipt,) = done(inside, uid)
    assert receipt.result is Result.PASS
    shelf = Shelf(inside.home.artifacts)
    kept = {ref.kind: (ref.place, ref.path, ref.mime_type, shelf.read(ref.sha256)) for ref in receipt.artifacts}
    told = json.loads(kept.pop("receipt")[3])
    assert kept == {
        "log": ("fleet", "stdout", "text/plain", b"said\n"),
        "report": ("artifacts", "report.md", "text/markdown", b"r\n"),
        "build/out.json": ("workspace", "build/out.json", "application/json", b"1\n"),
    }
    assert (told["result"], told["task"]) == ("pass", uid)


def test_missing_artifacts_fail_the_task_and_the_next_attempt_hears_of_it(inside: InHouse) -> None:
    """A task that does not leave what was expected is tried again, is told why, and then passes."""
    script = (
        'mkdir -p "$FLEET_ARTIFACT_DIR"; if [ -n "$FLEET_FEEDBACK" ]; then echo x >"$FLEET_ARTIFACT_DIR/report"; fi'
    )
    uid = inside.add(command=script, terms=terms(retry=TWICE, expected_artifacts=("report",)))
    first, second = done(inside, uid)
    assert (first.result, first.source) == (Result.FAIL, Source.TASK)
    assert first.reason == "expected artifacts are missing: report"
    assert (second.result, second.attempt, inside.task(uid).charged) == (Result.PASS, 2, 1)


def test_a_link_that_leads_out_is_no_artifact(inside: InHouse, tmp_path: Path) -> None:
    """What a link points at outside the workspace is neither kept nor counted as there."""
    secret = tmp_path / "secret"
    secret.write_text("secret")
    work = tmp_path / "work"
    work.mkdir()
    uid = inside.add(
        command=f'mkdir -p "$FLEET_ARTIFACT_DIR"; ln -s {secret} out.txt; ln -s {secret} "$FLEET_ARTIFACT_DIR/report"',
        cwd=str(work),
        terms=terms({"kind": "file_exists", "path": "out.txt"}, expected_artifacts=("report",)),
    )
    (receipt,) = done(inside, uid)
    assert (receipt.result, receipt.reason) == (Result.FAIL, "expected artifacts are missing: report")
    assert not any(b"secret" in file.read_bytes() for file in inside.home.artifacts.rglob("*") if file.is_file())


WRITES = 'printf \'{"tests": {"failed": 0}}\' >out.json; echo all green'


@pytest.mark.parametrize(
    ("scorer", "result", "source"),
    [
        ({"kind": "exit_code"}, Result.PASS, None),
        ({"kind": "exit_code", "expected": 2}, Result.FAIL, Source.TASK),
        ({"kind": "file_exists", "path": "out.json", "newer": True, "non_empty": True}, Result.PASS, None),
        ({"kind": "file_exists", "path": "old.txt"}, Result.PASS, None),
        ({"kind": "file_exists", "path": "old.txt", "newer": True}, Result.FAIL, Source.TASK),
        ({"kind": "file_exists", "path": "../work/out.json"}, Result.FAIL, Source.TASK),
        ({"kind": "regex_match", "pattern": "^all green$"}, Result.PASS, None),
        ({"kind": "regex_match", "pattern": "green", "source": "final_message"}, Result.PASS, None),
        ({"kind": "regex_match", "pattern": "red", "path": "out.json"}, Result.FAIL, Source.TASK),
        ({"kind": "regex_match", "pattern": "(", "path": "out.json"}, Result.FAIL, Source.VERIFIER),
        ({"kind": "json_path", "path": "out.json", "expression": "$.tests.failed", "operator": "==", "value": 0},
         Result.PASS, None),
        ({"kind": "plugin", "name": "nobody"}, Result.FAIL, Source.VERIFIER),
        ({"kind": "all", "of": [{"kind": "exit_code"}, {"kind": "file_exists", "path": "no"}]},
         Result.FAIL, Source.TASK),
        ({"kind": "any", "of": [{"kind": "exit_code"}, {"kind": "file_exists", "path": "no"}]}, Result.PASS, None),
    ],
)  # fmt: skip
def test_scorers_that_need_no_session(
    inside: InHouse, tmp_path: Path, scorer: dict[str, Any], result: Result, source: Source | None
) -> None:
    """Each judges what the session left, where it left it, and its evidence stands in the one receipt."""
    work = tmp_path / "work"
    work.mkdir()
    (work / "old.txt").write_text("old")
    subprocess.run(["touch", "-d", "2001-01-01", str(work / "old.txt")], check=True)
    uid = inside.add(command=WRITES, cwd=str(work), terms=terms(scorer))
    (receipt,) = done(inside, uid)
    assert (receipt.result, receipt.source) == (result, source)
    assert (receipt.scorer, receipt.verified) == (scorer["kind"], True)
    assert receipt.evidence
    assert alerts(inside, uid).count("verifier_failed") == (source is Source.VERIFIER)


def test_names_of_any_bytes_and_one_file_for_two_scorers(inside: InHouse) -> None:
    """A file whose name is no text is kept too; one that two scorers look at is looked into for the one that must."""
    script = 'cd "$FLEET_ARTIFACT_DIR"; echo x >"$(printf \'a\\377b\')"; echo fine >report.md'
    of = [{"kind": "regex_match", "path": "report.md", "pattern": "fine"}, {"kind": "file_exists", "path": "report.md"}]
    uid = inside.add(command=f'mkdir -p "$FLEET_ARTIFACT_DIR"; {script}', terms=terms({"kind": "all", "of": of}))
    (receipt,) = done(inside, uid)
    assert receipt.result is Result.PASS, receipt
    assert "a\ufffdb" in [ref.path for ref in receipt.artifacts]


def test_an_expected_code_other_than_zero_is_a_good_end(inside: InHouse) -> None:
    """A command that ends with the code its scorer expects passes; a failed session never does."""
    expected = inside.add(command="exit 3", terms=terms({"kind": "exit_code", "expected": 3}))
    failed = inside.add(command="exit 4", terms=terms({"kind": "file_exists", "path": "fleet.toml"}))
    inside.drain()
    assert inside.task(expected).state is TaskState.COMPLETED
    (receipt,) = inside.store.receipts(task=failed)
    assert (receipt.result, receipt.source, receipt.exit_code) == (Result.FAIL, Source.TASK, 4)


def test_the_commits_before_and_after(inside: InHouse, tmp_path: Path) -> None:
    """A receipt tells the commit that the work began from and the one that it ended at."""
    work = tmp_path / "work"
    work.mkdir()
    git = "git -c user.name=x -c user.email=x@y"
    subprocess.run(f"git init -q . && {git} commit -q --allow-empty -m a", shell=True, cwd=work, check=True)
    (receipt,) = done(inside, inside.add(command=f"{git} commit -q --allow-empty -m b", cwd=str(work)))
    log = subprocess.run(["git", "log", "--format=%H"], cwd=work, check=True, capture_output=True, text=True).stdout
    assert [receipt.commit_after, receipt.commit_before] == log.split()


def test_a_command_verifies_in_a_session_of_its_own(inside: InHouse, tmp_path: Path) -> None:
    """The worker's end gives a partial receipt; the verifier runs where the files are, and its receipt settles it."""
    work = tmp_path / "work"
    work.mkdir()
    scorer = {"kind": "command", "command": "cat made && echo noise >&2"}
    uid = inside.add(command="echo content >made", cwd=str(work), terms=terms(scorer))
    partial, final = done(inside, uid)
    worker, verifier = inside.store.sessions(task=uid)
    assert (worker.kind, verifier.kind, verifier.coder) == ("work", "verify", "command")
    assert (partial.result, partial.session, partial.scorer) == (Result.PARTIAL, worker.id, "command")
    assert (final.result, final.session, final.supersedes) == (Result.PASS, verifier.id, partial.id)
    assert (final.score, final.evidence) == (1.0, ("command: exit code 0", "command: content", "command: noise"))
    assert (final.coder, final.attempt, inside.task(uid).receipt) == ("command", 1, final.id)


def test_a_verifier_works_in_the_worktree_of_the_work(inside: InHouse, tmp_path: Path) -> None:
    """Where the work was done apart from the checkout, files are scored and verified there, and so is the commit."""
    work = tmp_path / "work"
    work.mkdir()
    git = "git -c user.name=x -c user.email=x@y"
    subprocess.run(f"git init -q . && {git} commit -q --allow-empty -m a", shell=True, cwd=work, check=True)
    of = [{"kind": "file_exists", "path": "made"}, {"kind": "command", "command": "test -s made && pwd"}]
    script = f"echo x >made; git add made; {git} commit -q -m b"
    uid = inside.add(command=script, cwd=str(work), terms=terms({"kind": "all", "of": of}, isolation="worktree"))
    _, final = done(inside, uid)
    assert final.result is Result.PASS, final
    assert not (work / "made").exists()
    assert f"{inside.home.worktrees}" in " ".join(final.evidence)
    head = subprocess.run(["git", "rev-parse", "HEAD"], cwd=work, check=True, capture_output=True, text=True).stdout
    assert final.commit_before == head.strip() != final.commit_after


def test_what_a_verifier_finds_is_told_to_the_next_attempt(inside: InHouse, tmp_path: Path) -> None:
    """A verifier that says no, with an attempt left: the task runs again with its words, and is verified again."""
    work = tmp_path / "work"
    work.mkdir()
    script = (
        'if [ -n "$FLEET_FEEDBACK" ]; then echo "$FLEET_FEEDBACK" >told; echo right >made; else echo wrong >made; fi'
    )
    scorer = {"kind": "command", "command": "grep right made || { echo it is not right; exit 1; }"}
    uid = inside.add(command=script, cwd=str(work), terms=terms(scorer, TWICE))
    first, refused, second, final = done(inside, uid)
    assert [one.result for one in (first, refused, second, final)] == [
        Result.PARTIAL,
        Result.FAIL,
        Result.PARTIAL,
        Result.PASS,
    ]
    assert (refused.supersedes, refused.source, final.supersedes) == (first.id, Source.TASK, second.id)
    assert "it is not right" in (work / "told").read_text()
    assert [one.kind for one in inside.store.sessions(task=uid)] == ["work", "verify", "work", "verify"]
    assert (inside.task(uid).state, inside.task(uid).charged) == (TaskState.COMPLETED, 1)
    assert alerts(inside, uid) == []


@pytest.mark.parametrize(
    ("command", "timeout", "result", "source", "words"),
    [
        ("echo no; exit 1", 60, Result.FAIL, Source.TASK, "exit code 1"),
        ("no-such-program", 60, Result.FAIL, Source.VERIFIER, "it was not found"),
        ("echo slow; sleep 100", 1, Result.TIMEOUT, Source.VERIFIER, "not done within 1 s"),
    ],
)
def test_a_verifier_that_fails_is_told_from_work_that_fails(
    inside: InHouse, command: str, timeout: int, result: Result, *, source: Source, words: str
) -> None:
    """Without an attempt left the task has failed: by its work, or by its verifier; either raises an alert."""
    scorer = {"kind": "command", "command": command, "timeout_seconds": timeout}
    uid = inside.add(command="true", terms=terms(scorer, ONCE if source is Source.TASK else TWICE))
    partial, final = done(inside, uid)
    assert (final.result, final.source, final.supersedes) == (result, source, partial.id)
    assert words in final.reason
    assert inside.task(uid).state is TaskState.FAILED
    assert "verifier_failed" in alerts(inside, uid)


def answering(*steps: dict[str, Any], **fields: Any) -> dict[str, Any]:
    """A verifier that is a scripted coder."""
    return {"kind": "verifier_prompt", "prompt": f"@@scripted {json.dumps(steps)}", "coder": "scripted"} | fields


def says(**answer: Any) -> dict[str, Any]:
    """A step that answers."""
    return {"say": json.dumps(answer)}


@pytest.mark.parametrize(
    ("steps", "result", "source"),
    [
        ([says(**{"pass": True, "reason": "I looked"})], Result.PASS, None),
        ([{"run": 'echo \'{"pass": true, "reason": "x"}\' >"$FLEET_ANSWER_FILE"'}, {"say": "done"}], Result.PASS, None),
        ([says(**{"pass": False, "reason": "no test"})], Result.FAIL, Source.TASK),
        ([{"say": "it is fine"}], Result.FAIL, Source.VERIFIER),
        ([{"ask": "what do you mean?"}], Result.FAIL, Source.VERIFIER),
        ([says(**{"pass": True, "reason": "x"}), {"end": "auth"}], Result.FAIL, Source.VERIFIER),
    ],
)
def test_a_second_coder_verifies(
    inside: InHouse, steps: list[dict[str, Any]], result: Result, source: Source | None
) -> None:
    """It answers by the schema, in its final message or its file; anything else is the verifier's failure."""
    uid = inside.add({"say": "all done"}, terms=terms(answering(*steps)))
    partial, final = done(inside, uid)
    assert (final.result, final.source, final.supersedes) == (result, source, partial.id)
    assert alerts(inside, uid).count("verifier_failed") == (result is not Result.PASS)


def test_a_verifier_that_is_cut_off_runs_again(inside: InHouse) -> None:
    """A verifier that crashes is run again, and only what it says in the end counts; the work is not done again."""
    marker = inside.home.path / "crashed"
    killed = "kill -9 $(cut -d' ' -f2 $FLEET_SESSION_DIR/pid)"
    steps = (
        {"run": f"test -e {marker} || {{ touch {marker}; {killed}; }}"},
        says(**{"pass": True, "reason": "second time"}),
    )
    uid = inside.add({"say": "all done"}, terms=terms(answering(*steps)))
    partial, final = done(inside, uid)
    assert (final.result, final.supersedes) == (Result.PASS, partial.id)
    kinds = [(one.kind, one.outcome) for one in inside.store.sessions(task=uid)]
    assert [kind for kind, _ in kinds] == ["work", "verify", "verify"]
    assert inside.task(uid).charged == 0


def test_a_verifier_that_is_always_cut_off_has_failed(inside: InHouse) -> None:
    """After some tries the verifier is given up: the task has failed by its verifier, and the work was done once."""
    uid = inside.add({"say": "all done"}, terms=terms(answering({"end": "crashed"})))
    partial, final = done(inside, uid)
    assert (final.result, final.source, final.supersedes) == (Result.FAIL, Source.VERIFIER, partial.id)
    assert [one.kind for one in inside.store.sessions(task=uid)] == ["work", "verify", "verify", "verify"]


def test_a_manual_scorer_waits_for_a_person(inside: InHouse) -> None:
    """The task stays partial, nothing runs for it, and what needs it waits."""
    uid = inside.add(command="true", terms=terms({"kind": "manual", "note": "look at the picture"}))
    after = inside.add(command="true", needs=(uid,))
    (partial,) = done(inside, uid)
    assert (partial.result, partial.reason) == (Result.PARTIAL, "waits for a person to verify it: look at the picture")
    assert (inside.task(uid).state, inside.task(after).state) == (TaskState.PARTIAL, TaskState.QUEUED)


def test_a_combination_asks_one_after_the_other(inside: InHouse) -> None:
    """What needs no session is judged first, then verifiers one by one, then a person; each settles the one before."""
    of = [
        {"kind": "manual"},
        {"kind": "command", "command": "true"},
        {"kind": "exit_code"},
        {"kind": "command", "command": "echo two"},
    ]
    uid = inside.add(command="true", terms=terms({"kind": "all", "of": of}))
    first, second, third = done(inside, uid)
    assert [one.awaits and one.awaits.at for one in (first, second, third)] == ["1", "3", "0"]
    assert (second.supersedes, third.supersedes) == (first.id, second.id)
    assert [score.at for score in third.scores] == ["2", "1", "3"]
    assert inside.task(uid).state is TaskState.PARTIAL


def test_a_verdict_that_is_certain_waits_for_nobody(inside: InHouse) -> None:
    """A part that fails decides over all: the verifier is not run."""
    of = [{"kind": "file_exists", "path": "no"}, {"kind": "command", "command": "true"}]
    uid = inside.add(command="true", terms=terms({"kind": "all", "of": of}))
    (receipt,) = done(inside, uid)
    assert (receipt.result, len(inside.store.sessions(task=uid))) == (Result.FAIL, 1)


def test_a_verifier_is_stopped_interrupted_and_shut_down(inside: InHouse) -> None:
    """Our own stop puts a verification off at no cost; an interrupt leaves it to a person; a stop cancels the task."""
    scorer = {"kind": "command", "command": "echo here; sleep 1000"}
    uid = inside.add(command="true", terms=terms(scorer))

    async def work() -> None:
        async with inside.supervising() as supervisor:
            await inside.until_state(uid, TaskState.VERIFYING)
            await inside.until(lambda: inside.store.sessions(live=True)[0].state is SessionState.RUNNING)
            supervisor.stop(agents=True)
        assert inside.task(uid).state is TaskState.PARTIAL
        async with inside.supervising():
            await inside.until_state(uid, TaskState.VERIFYING)
            with inside.control() as control:
                control.steer.interrupt(uid, "wait")
            await inside.until_state(uid, TaskState.PARTIAL)
            awaits = inside.task(uid).awaits
            assert awaits is not None
            assert awaits.kind == "manual"

    asyncio.run(work())
    assert len(inside.store.receipts(task=uid)) == 1
    with inside.control() as control:
        control.steer.stop(uid, "enough")
    partial, final = inside.store.receipts(task=uid)
    assert (final.result, final.supersedes) == (Result.SKIP, partial.id)


def test_a_plan_limit_of_the_verifier_puts_it_off(inside: InHouse) -> None:
    """A verifier whose coder met its limit waits until it resets; the task stays partial, and is not charged."""
    uid = inside.add({"say": "all done"}, terms=terms(answering({"limit": 99_999_999_999_999})))

    async def work() -> None:
        async with inside.supervising():
            await inside.until(lambda: len(inside.store.sessions(task=uid)) == 2 and inside.task(uid).not_before)

    asyncio.run(work())
    task = inside.task(uid)
    assert (task.state, task.not_before, task.charged) == (TaskState.PARTIAL, 99_999_999_999_999, 0)


def test_secrets_do_not_stand_in_evidence(inside: InHouse) -> None:
    """What looks like a key in the words of a verifier is put out of them before they are kept in a receipt."""
    key = "ghp_" + "a1" * 18
    uid = inside.add(command="true", terms=terms({"kind": "command", "command": f"echo {key}; exit 1"}))
    _, final = done(inside, uid)
    assert "<redacted>" in " ".join(final.evidence)
    assert key not in " ".join([final.reason, *final.evidence])
