"""A supervisor on the queue of the real bd: issues are taken, run, and told of; what people change there is taken."""

from __future__ import annotations

import contextlib
import os
import shlex
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from fleet import wiring
from fleet.config.home import Home
from fleet.config.load import load
from fleet.model.states import TaskState
from fleet.model.task import Task
from fleet.store.store import Store
from fleet.testing.audit import audit
from tests.support.bd import Beads, real_bd
from tests.support.session_host import processes_with, until

pytestmark = [pytest.mark.real_bd, pytest.mark.timeout(240)]

WAITS = "touch {work}/began; until [ -e {work}/go ]; do sleep 0.05; done; echo gone"


class Supervised(Beads):
    """A home on bd's queue, with supervisors in processes of their own."""

    def __init__(self, path: Path, bd: str) -> None:
        super().__init__(path, bd)
        self.env["PYTHONPATH"] = os.pathsep.join(filter(None, sys.path))
        words = ("supervisor.coder=command", "supervisor.backoff_seconds=0", "supervisor.grace_seconds=1")
        assert self.fleet("config", "set", *words).code == 0
        assert self.fleet("init").code == 0

    @contextlib.contextmanager
    def store(self) -> Iterator[Store]:
        """The home's own store."""
        home = Home(self.home)
        with contextlib.closing(wiring.open_store(home, load(home))) as store:
            yield store

    def add(self, title: str, script: str, *words: str) -> str:
        """An issue; its id."""
        said = self.fleet("add", title, "-d", script, "-q", *words)
        assert said.code == 0, said
        return said.out.strip()

    def issue(self, uid: str) -> dict[str, Any]:
        """An issue as bd has it."""
        (row,) = self.bd("show", uid, "--json", "--include-comments").data
        return dict(row)

    def task(self, uid: str) -> Task | None:
        """A task as Fleet has it; None before it was taken."""
        with self.store() as store:
            return store.tasks_by_uid([uid]).get(uid)

    def until_state(self, uid: str, state: TaskState) -> Task:
        """Wait until a task stands somewhere."""
        until(lambda: (task := self.task(uid)) is not None and task.state is state, f"{uid} to be {state.value}")
        found = self.task(uid)
        assert found is not None
        return found

    @contextlib.contextmanager
    def supervisor(self, *words: str) -> Iterator[subprocess.Popen[bytes]]:
        """A supervisor that is gone afterwards."""
        argv = [sys.executable, "-m", "tests.support.supervised", str(self.home), *words]
        process = subprocess.Popen(argv, env=self.env, cwd=Path(__file__).parents[2])
        try:
            yield process
        finally:
            if process.poll() is None:
                process.terminate()
            process.wait(30)

    def killed_at(self, point: str) -> None:
        """Let one work until it comes to a point."""
        with self.supervisor("--die-at", point) as process:
            assert process.wait(60) == -9

    def drain(self) -> int:
        """Work until nothing is left to do; the exit code."""
        return self.fleet("run", "--drain", "--quiet").code

    def check(self, *uids: str) -> None:
        """Each was run to one receipt, the ledger holds, and no process is left."""
        with self.store() as store:
            audit(store)
            for uid in uids:
                task = store.task(uid)
                assert task.state is TaskState.COMPLETED, (task.state, task.reason)
                assert [one.result.value for one in store.receipts(task=uid)] == ["pass"]
                assert self.issue(uid)["status"] == "closed"
        until(lambda: not processes_with(os.fsencode(self.home)), "the end of all processes")


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Supervised:
    """One home for all of these tests: to make one costs bd seconds."""
    return Supervised(tmp_path_factory.mktemp("supervised"), real_bd())


@pytest.fixture
def beads(made: Supervised, tmp_path: Path) -> Iterator[Supervised]:
    """The home, with a directory for agents to work in. Nothing is left to do in it afterwards."""
    made.project = tmp_path
    yield made
    assert made.bd("list", "--json").data == []


def ran(work: Path) -> list[str]:
    """Who ran, in order."""
    return (work / "ran").read_text().split()


def test_a_queue_with_a_dependency_runs_to_its_end(beads: Supervised, tmp_path: Path) -> None:
    """What bd has ready is run, then what needed it; the issues are closed with what the agents said, remarks once."""
    script = (
        f'echo $FLEET_TASK_ID >>{tmp_path}/ran; bd comment $FLEET_TASK_ID "half way"; bd close $FLEET_TASK_ID -r ok-$0'
    )
    first = beads.add("The first", script)
    second = beads.add("The second", f"echo $FLEET_TASK_ID >>{tmp_path}/ran", "--needs", first)
    assert beads.drain() == 0
    assert ran(tmp_path) == [first, second]
    beads.check(first, second)
    shown = beads.issue(first)
    assert shown["close_reason"].startswith("ok-")
    assert [remark["text"].split("\n")[0] for remark in shown["comments"]] == ["command: half way"]
    assert beads.fleet("show", first).out.count("completed") == 1
    assert f"{first}  completed" in beads.fleet("tasks", "--status", "all").out


def test_a_question_is_answered_here_or_there(beads: Supervised, tmp_path: Path) -> None:
    """A question stands in bd's notes. `fleet answer` lets the task go on; so does setting the issue open in bd."""
    script = f'[ -e {tmp_path}/$FLEET_TASK_ID ] && exit 0; touch {tmp_path}/$FLEET_TASK_ID; fleet ask "Which colour?"'
    here, there = beads.add("Answered here", script), beads.add("Answered there", script)
    assert beads.drain() == 3
    for uid in (here, there):
        assert beads.issue(uid)["status"] == "blocked"
        assert beads.issue(uid)["notes"] == "QUESTION: Which colour?"
    assert beads.fleet("questions").out.count("Which colour?") == 2
    assert beads.fleet("answer", here, "Blue.").code == 0
    assert beads.bd("update", there, "--status", "open", "--assignee", "", "--title", "A better title").code == 0
    assert beads.drain() == 0
    beads.check(here, there)
    found = beads.task(there)
    assert found is not None
    assert found.title == "A better title"


@pytest.mark.parametrize("point", ["fed", "settled", "told"])
def test_a_kill_between_ledger_and_bd_loses_and_doubles_nothing(beads: Supervised, tmp_path: Path, point: str) -> None:
    """Killed between claims in bd and in Fleet, the receipt and bd's close, that and the cursor: all happens once."""
    uid = beads.add("Once", f'echo $FLEET_TASK_ID >>{tmp_path}/ran; fleet comment "one remark"')
    beads.killed_at(point)
    closed = beads.issue(uid)["status"] == "closed"
    task = beads.task(uid)
    assert closed == (point == "told")
    assert (task is not None and task.state is TaskState.COMPLETED) == (point != "fed")
    assert beads.drain() == 0
    assert ran(tmp_path) == [uid]
    assert beads.issue(uid)["comment_count"] == 1
    beads.check(uid)


def test_an_issue_closed_by_hand_ends_its_agent(beads: Supervised, tmp_path: Path) -> None:
    """Closed in bd while it runs: the agent is ended, the task is cancelled, and bd keeps what the person said."""
    uid = beads.add("Too late", WAITS.format(work=shlex.quote(str(tmp_path))))
    with beads.supervisor():
        until((tmp_path / "began").exists, "the agent")
        assert beads.issue(uid)["status"] == "in_progress"
        assert f"{uid}  running" in beads.fleet("tasks").out
        assert beads.bd("close", uid, "--force", "--reason", "done by hand").code == 0
        task = beads.until_state(uid, TaskState.CANCELLED)
    assert task.reason == "it was closed in bd: done by hand"
    assert beads.drain() == 0
    assert beads.issue(uid)["close_reason"] == "done by hand"
    until(lambda: not processes_with(os.fsencode(tmp_path)), "the end of the agent")


def test_a_dependency_added_while_it_waits_holds_it(beads: Supervised, tmp_path: Path) -> None:
    """A task that waits for its next attempt goes back to bd when its issue gets a blocker, and comes again after."""
    assert beads.fleet("config", "set", "supervisor.backoff_seconds=600").code == 0
    uid = beads.add("Fails once", f"[ -e {tmp_path}/go ] && exit 0; touch {tmp_path}/failed; exit 1")
    with beads.supervisor():
        until(lambda: (task := beads.task(uid)) is not None and task.not_before is not None, "the wait")
        blocker = beads.bd("create", "A blocker", "-t", "epic", "--silent").out.strip()
        assert beads.bd("dep", "add", uid, blocker, "--type", "blocks").code == 0, "bd takes it"
        held = beads.until_state(uid, TaskState.BLOCKED)
        assert held.reason == f"it needs {blocker} in bd"
        until(lambda: beads.issue(uid)["status"] == "open", "its return to bd")
        (tmp_path / "go").touch()
        assert beads.bd("close", blocker).code == 0
        beads.until_state(uid, TaskState.COMPLETED)
        until(lambda: beads.issue(uid)["status"] == "closed", "bd to know")
    assert beads.fleet("config", "set", "supervisor.backoff_seconds=0").code == 0


def test_a_bd_that_fails_is_shown_and_tried_again(beads: Supervised, tmp_path: Path) -> None:
    """While bd fails the supervisor lives and says so; once it answers, its queue is worked on."""
    uid = beads.add("Patience", "echo well")
    broken = tmp_path / "bin" / "bd"
    broken.parent.mkdir()
    broken.write_text(
        f'#!/bin/sh\n[ -e {tmp_path}/mended ] && exec {real_bd()} "$@"\necho "bd is on fire" >&2\nexit 1\n'
    )
    broken.chmod(0o755)
    before = beads.env["PATH"]
    try:
        beads.env["PATH"] = f"{broken.parent}{os.pathsep}{before}"
        with beads.supervisor() as process:
            until(lambda: "on fire" in beads.fleet("status").out, "the status to say so")
            assert process.poll() is None
            (tmp_path / "mended").touch()
            beads.until_state(uid, TaskState.COMPLETED)
            until(lambda: beads.issue(uid)["status"] == "closed", "bd to know")
            until(lambda: "on fire" not in beads.fleet("status").out, "the status to be well")
    finally:
        beads.env["PATH"] = before
    beads.check(uid)
