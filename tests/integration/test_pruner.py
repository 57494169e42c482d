"""The pruner: what it takes away, what it keeps, and that it says so."""

from __future__ import annotations

import asyncio
import os
import shutil
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from fleet.config.clock import utc_ms
from fleet.hosts.machine import local_host
from fleet.model.states import TaskState
from fleet.model.terms import Terms
from fleet.supervisor.pruner import Pruned, Pruner
from tests.support.inhouse import InHouse

DAYS_MS = 3 * 86_400_000
SPEAKS = "i=0; while [ $i -lt 20000 ]; do echo line $i of many more; i=$((i+1)); done; "
WAITS = 'until [ -e "$FLEET_TASK_DIR/go" ]; do sleep 0.05; done; echo gone'


@pytest.fixture
def inside(tmp_path: Path) -> Iterator[InHouse]:
    """A home whose supervisors run in this process; nothing of its sessions is left afterwards."""
    made = InHouse(tmp_path, keep_sessions_days=1, keep_logs_days=30, max_attempts=1)
    yield made
    made.close()


def prune(inside: InHouse, **settings: Any) -> Pruned:
    """One round, three days from now."""

    async def once() -> Pruned:
        house = inside.house(**settings)
        try:
            return await Pruner(house, tuple, clock=lambda: utc_ms() + DAYS_MS).run_once()
        finally:
            house.store.close()

    return asyncio.run(once())


def directories(inside: InHouse) -> set[str]:
    """The sessions whose directories are there."""
    return {path.name for path in inside.home.sessions.iterdir() if not path.name.startswith(".")}


def test_sessions_of_ended_tasks_are_forgotten_and_their_words_stay(inside: InHouse) -> None:
    """After its time the directory of an ended task's session goes; what it said and its stderr can still be read."""
    passed = inside.add(command="echo well; echo noise >&2")
    failed = inside.add(command="echo ill; exit 3")
    inside.drain()
    assert directories(inside) == {f"{passed}.1", f"{failed}.1"}
    assert prune(inside).sessions == 2
    assert directories(inside) == set()
    assert {record["session"] for record in inside.logged("session_forgotten")} == {f"{passed}.1", f"{failed}.1"}
    assert [said["text"] for said in inside.said(passed)] == ["well"]
    assert "noise" in (inside.home.task_dir(passed) / "stderr.log").read_text()
    assert prune(inside) == Pruned()


def test_what_fleet_itself_wrote_beside_the_output_goes_too(inside: InHouse, tmp_path: Path) -> None:
    """The answer of a verifier, and what a workspace was compared with, do not keep a directory for ever."""
    (tmp_path / "work").mkdir()
    answers = """printf '{"pass": true, "reason": "seen"}' >"$FLEET_ANSWER_FILE" """
    judged = Terms(scorer={"kind": "verifier_prompt", "prompt": answers, "coder": "command"})
    bounded = Terms(writable_paths=("out",))
    uids = [
        inside.add(command="echo well", terms=judged),
        inside.add(command="mkdir out; echo x >out/x", terms=bounded, cwd=str(tmp_path / "work"), host=local_host()),
    ]
    inside.drain()
    assert {inside.task(uid).state for uid in uids} == {TaskState.COMPLETED}
    assert (inside.home.sessions / f"{uids[0]}.2" / "answer.json").exists()
    assert (inside.home.sessions / f"{uids[1]}.1" / "workspace").exists()
    assert prune(inside).sessions == 3
    assert directories(inside) == set()


def test_nothing_of_an_unfinished_task_is_taken(inside: InHouse) -> None:
    """A task that waits for a person keeps its sessions however old; so does every task before its time."""
    asked = inside.add(command='fleet ask "Which one?"')
    passed = inside.add(command="echo well")
    inside.drain()
    assert inside.task(asked).state is TaskState.BLOCKED
    assert asyncio.run(pruned_now(inside)) == Pruned()
    assert prune(inside).sessions == 1
    assert directories(inside) == {f"{asked}.1"}
    assert passed not in {record["task"] for record in inside.logged("session_kept")}


async def pruned_now(inside: InHouse) -> Pruned:
    """One round by the clock as it is."""
    house = inside.house()
    try:
        return await Pruner(house, tuple).run_once()
    finally:
        house.store.close()


def test_what_was_not_collected_is_kept_and_told(inside: InHouse) -> None:
    """A directory with more output than was read, or one that nobody knows, stays, and the log says why."""
    uid = inside.add(command="echo well")
    inside.drain()
    with (inside.home.sessions / f"{uid}.1" / "stdout").open("ab") as file:
        file.write(b"more than was read\n")
    (inside.home.sessions / "stranger").mkdir()
    assert prune(inside).sessions == 0
    assert directories(inside) == {f"{uid}.1", "stranger"}
    reasons = {record["session"]: record["reason"] for record in inside.logged("session_kept")}
    assert "not all output was collected" in reasons[f"{uid}.1"]
    assert reasons["stranger"] == "no session of this name is known"


def test_what_a_crash_left_of_a_clone_goes(inside: InHouse) -> None:
    """A half-made clone that nobody came back for is removed after a day; one of today may still be made."""
    for name, age in (("fleet-old", 2 * 86_400), ("fleet-new", 0)):
        (inside.home.path / "clones" / name / ".git").mkdir(parents=True)
        then = time.time() - age
        os.utime(inside.home.path / "clones" / name, (then, then))
    prune(inside)
    assert [path.name for path in (inside.home.path / "clones").iterdir()] == ["fleet-new"]
    assert [record["task"] for record in inside.logged("half_clone_removed")] == ["fleet-old"]


def test_what_dropped_worktrees_left_goes_after_its_time(inside: InHouse) -> None:
    """Of a task that has ended, once it is as old as the settings say; of others not, nor where it is kept for ever."""
    ended, waits = inside.add(command="echo well"), inside.add(command="fleet ask 'Which?'")
    inside.drain()
    assert inside.task(waits).state is TaskState.BLOCKED
    for name in (ended, waits, "of-nobody"):
        place = inside.home.path / "dropped" / name / "f00d"
        (place / "files").mkdir(parents=True)
        (place / "names").touch()
        os.utime(place / "names", (time.time() - 9 * 86_400,) * 2)

    def left() -> set[str]:
        return {path.name for path in (inside.home.path / "dropped").iterdir()}

    for days in (0, 10):
        inside.set(keep_dropped_days=days, keep_sessions_days=0)
        assert prune(inside).dropped == 0
    assert left() == {ended, waits, "of-nobody"}
    inside.set(keep_dropped_days=9)
    assert prune(inside).dropped == 1
    assert left() == {waits, "of-nobody"}
    assert [told["task"] for told in inside.logged("dropped_removed")] == [ended]


def test_old_logs_go_and_others_stay(inside: InHouse) -> None:
    """Logs of days long past are removed, by their age; files that are not logs of ours are not touched."""
    inside.home.logs.mkdir(exist_ok=True)
    old, other = inside.home.logs / "fleet-2020-01-01.jsonl", inside.home.logs / "notes.jsonl"
    for file in (old, other):
        file.write_text("{}\n")
        os.utime(file, (0, 0))
    assert prune(inside).logs == 1
    assert not old.exists()
    assert other.exists()
    assert [record["file"] for record in inside.logged("log_removed")] == [old.name]


def test_the_space_behind_what_was_read_is_given_back(inside: InHouse) -> None:
    """Of a session that goes on, what was read and committed takes no space any more; every line is still read once."""
    uid = inside.add(command=SPEAKS + WAITS)
    stdout = inside.home.sessions / f"{uid}.1" / "stdout"

    async def work() -> Pruned:
        async with inside.supervising() as supervisor:
            await inside.until(lambda: stdout.exists() and len(inside.said(uid)) == 20_000, "all that it says")
            size = stdout.stat().st_size
            await inside.until(lambda: inside.store.progress(f"{uid}.1").cursor == size, "the cursor")
            (session,) = inside.store.sessions(live=True)
            hosted = supervisor.house.hosts.here.hosted(session)
            done = await Pruner(supervisor.house, lambda: [hosted], worth_bytes=1000, kept_bytes=0).run_once()
            (inside.home.task_dir(uid) / "go").touch()
            await inside.until_state(uid, TaskState.COMPLETED)
            assert done.freed == size
        return done

    asyncio.run(work())
    if not supports_holes(inside.home.path):
        pytest.skip("this file system gives no space back")
    assert stdout.stat().st_blocks * 512 < stdout.stat().st_size // 2
    said = [one["text"] for one in inside.said(uid)]
    assert said[:2] == ["line 0 of many more", "line 1 of many more"]
    assert (len(said), said[-1]) == (20_001, "gone")


def supports_holes(directory: Path) -> bool:
    """Whether space within a file can be given back here."""
    file = directory / "holes"
    file.write_bytes(b"x" * (1 << 20))
    if shutil.which("fallocate") is None:
        return False
    subprocess.run(["fallocate", "-p", "-o", "0", "-l", str(1 << 20), file], check=False, capture_output=True)
    return file.stat().st_blocks * 512 < 1 << 19


def test_a_pruner_that_cannot_prune_says_so_and_goes_on(inside: InHouse) -> None:
    """A directory that cannot be read is told in the log; the supervisor lives."""
    inside.home.sessions.write_text("not a directory")

    async def work() -> None:
        async with inside.supervising():
            await inside.until(lambda: inside.logged("prune_failed"), "the log to tell")
        assert not inside.logged("supervisor_failed")

    asyncio.run(work())
