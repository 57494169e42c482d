"""Steering real sessions: restarts and their refusals, sessions that are given up, runs that are stopped."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from fleet.errors import Conflict
from fleet.model import event as ev
from fleet.model.intent import Intent
from fleet.model.run import NewRun
from fleet.model.states import RunState, SessionState, TaskState
from fleet.model.task import Task
from fleet.model.terms import Terms
from fleet.store.store import Store
from fleet.supervisor.supervisor import Supervisor
from fleet.testing.builders import a_task
from tests.support.inhouse import InHouse

WAITS = "echo hello; while [ ! -e $FLEET_TASK_DIR/go ]; do sleep 0.05; done"


@pytest.fixture
def inside(tmp_path: Path) -> Iterator[InHouse]:
    """A home whose supervisors run in this process; nothing of its sessions is left afterwards."""
    made = InHouse(tmp_path)
    yield made
    made.close()


def speaking(inside: InHouse, n: int = 1) -> bool:
    """Whether that many agents have said something."""
    live = inside.store.sessions(live=True)
    return sum(inside.store.progress(one.id).cursor > 0 for one in live) >= n


def restarted(inside: InHouse, uid: str, *, force: bool = False) -> Task | Intent:
    """What a person gets who restarts a task."""
    with inside.control() as control:
        done: Task | Intent = control.steer.restart(uid, "once more", force=force)
        return done


def test_a_live_session_is_restarted_uncharged(inside: InHouse) -> None:
    """The session ends, another begins; no attempt is used, it is counted, and the ledger says who asked."""
    uid = inside.add(command=WAITS)

    async def work() -> None:
        async with inside.supervising():
            await inside.until(lambda: speaking(inside), "an agent")
            assert isinstance(restarted(inside, uid), Intent)
            await inside.until(lambda: len(inside.store.sessions(task=uid)) == 2, "another session")
            (inside.home.task_dir(uid) / "go").touch()
            await inside.until_state(uid, TaskState.COMPLETED)

    asyncio.run(work())
    task = inside.task(uid)
    assert (task.charged, task.restarts, inside.store.counts()["restarted"]) == (0, 1, 1)
    (requeued,) = [e.event for e in inside.store.chain(uid) if isinstance(e.event, ev.TaskRequeued)]
    assert (requeued.by, requeued.reason, requeued.restart, requeued.charged) == ("ana", "once more", True, False)


def test_an_interrupt_is_counted_and_names_who_asked(inside: InHouse) -> None:
    """The task is blocked by whoever asked, uncharged, and shown among the interrupted."""
    uid = inside.add(command=WAITS)

    async def work() -> None:
        async with inside.supervising():
            await inside.until(lambda: speaking(inside), "an agent")
            with inside.control() as control:
                control.steer.interrupt(f"{uid}.1", "wrong branch")
            await inside.until_state(uid, TaskState.BLOCKED)

    asyncio.run(work())
    task = inside.task(uid)
    assert task.block is not None
    assert (task.block.kind, task.block.text, task.block.by, task.charged) == ("interrupted", "wrong branch", "ana", 0)
    assert inside.store.counts()["interrupted"] == 1
    assert isinstance(restarted(inside, uid), Task)
    assert inside.store.counts().get("interrupted", 0) == 0


def test_a_pass_is_not_restarted_by_mistake(inside: InHouse) -> None:
    """It is refused with the words that force it, and forced by them."""
    uid = inside.add({"say": "done"})
    inside.drain()
    with pytest.raises(Conflict, match="has passed") as caught:
        restarted(inside, uid)
    assert caught.value.hint.endswith(f"fleet restart {uid} --force")
    assert inside.task(uid).state is TaskState.COMPLETED
    restarted(inside, uid, force=True)
    inside.drain()
    assert (inside.task(uid).state, inside.task(uid).restarts) == (TaskState.COMPLETED, 1)


def test_a_failed_task_needs_an_attempt(inside: InHouse) -> None:
    """With attempts left it is restarted; with none only by force, and then it has one more."""
    inside.set(max_attempts=2)
    early = inside.add({"end": "refusal"})
    spent = inside.add({"end": "crashed"})
    inside.drain()
    assert [inside.task(uid).charged for uid in (early, spent)] == [1, 2]
    assert isinstance(restarted(inside, early), Task)
    with pytest.raises(Conflict, match=r"no attempt left \(2 of 2 are spent\)"):
        restarted(inside, spent)
    restarted(inside, spent, force=True)
    inside.drain()
    assert [inside.task(uid).charged for uid in (early, spent)] == [2, 3]
    assert inside.task(spent).epoch == 3


def test_what_must_not_run_twice_is_restarted_only_by_force(inside: InHouse) -> None:
    """Live or ended, it is refused; a supervisor that stops its agents leaves it to a person."""
    uid = inside.add(command=WAITS, terms=Terms(retry_safe=False))

    async def work() -> None:
        async with inside.supervising() as supervisor:
            await inside.until(lambda: speaking(inside), "an agent")
            with pytest.raises(Conflict, match="not safe to run twice"):
                restarted(inside, uid)
            with inside.control() as control, pytest.raises(Conflict, match="not safe to run twice"):
                control.steer.abandon(uid, "gone")
            supervisor.stop(agents=True)

    asyncio.run(work())
    task = inside.task(uid)
    assert task.block is not None
    assert (task.state, task.block.kind, task.charged) == (TaskState.BLOCKED, "interrupted", 0)
    with pytest.raises(Conflict, match="not safe to run twice"):
        restarted(inside, uid)
    assert isinstance(restarted(inside, uid, force=True), Task)


def test_a_session_is_given_up(inside: InHouse) -> None:
    """Its agent is swept where its host answers, before another begins; its follower lets go."""
    uid = inside.add(command=WAITS)

    async def work() -> None:
        async with inside.supervising():
            await inside.until(lambda: speaking(inside), "an agent")
            with inside.control() as control:
                control.steer.abandon(uid, "the host is gone")
            await inside.until(lambda: len(inside.store.sessions(task=uid)) == 2, "another session")
            (inside.home.task_dir(uid) / "go").touch()
            await inside.until_state(uid, TaskState.COMPLETED)
            await inside.until(lambda: not inside.store.intents(), "the sweep")

    asyncio.run(work())
    first, second = inside.store.sessions(task=uid)
    assert (first.state, first.outcome) == (SessionState.LOST, "abandoned")
    assert (second.outcome, inside.task(uid).charged) == ("ok", 0)
    (sweep,) = inside.store.intents(target=uid)
    assert (sweep.outcome, sweep.by) == ("done", "ana")
    exited = (inside.home.sessions / first.id / "exit").exists()
    assert exited


DEAF = """trap '' INT TERM
if [ -e pid ] && kill -0 "$(cat pid)" 2>/dev/null; then touch twice; fi
echo $$ >pid; echo hello; until [ -e "$FLEET_TASK_DIR/go" ]; do sleep 0.05; done"""


class GivenUp:
    """A store in which a person gives a session up after the supervisor looked at what is asked, before it claims."""

    def __init__(self, store: Store, give_up: Callable[[], bool]) -> None:
        self._store, self._give_up = store, give_up

    def __getattr__(self, name: str) -> Any:
        return getattr(self._store, name)

    def claim(self, *given: Any) -> Any:
        self._give_up()
        return self._store.claim(*given)


def test_what_is_given_up_just_before_a_claim_does_not_run_twice(inside: InHouse, tmp_path: Path) -> None:
    """It falls between the look at what people ask and the claim: the next agent begins after the last is gone."""
    inside.set(max_concurrent=2, grace_seconds=3)  # twice that is longer than anybody else would wait for it
    uid = inside.add(command=DEAF, cwd=str(tmp_path))

    def give_up() -> bool:
        if len(inside.store.sessions(task=uid)) != 1 or not speaking(inside):
            return False
        with inside.control() as control:
            control.steer.abandon(uid, "the host is gone")
        return True

    async def work() -> None:
        house = inside.house()
        house.store = GivenUp(house.store, give_up)  # type: ignore[assignment]
        supervisor = Supervisor(house)
        running = asyncio.get_running_loop().create_task(supervisor.run())
        await inside.until((inside.home.sessions / f"{uid}.2" / "pid").exists, "another agent")
        (inside.home.task_dir(uid) / "go").touch()
        await inside.until_state(uid, TaskState.COMPLETED)
        supervisor.stop()
        await running
        house.store.close()

    asyncio.run(work())
    assert [found.outcome for found in inside.store.sessions(task=uid)] == ["abandoned", "ok"]
    assert (tmp_path / "pid").exists()
    assert not (tmp_path / "twice").exists()


def test_what_nobody_followed_is_swept_by_the_next_supervisor(inside: InHouse) -> None:
    """A session that was given up while no supervisor ran does not live on beside the new one."""
    uid = inside.add(command=WAITS)

    async def work() -> None:
        async with inside.supervising():
            await inside.until(lambda: speaking(inside), "an agent")
        with inside.control() as control:  # the agent runs on
            control.steer.abandon(uid, "the host is gone")
        async with inside.supervising():
            await inside.until(lambda: len(inside.store.sessions(task=uid)) == 2, "another session")
            assert (inside.home.sessions / f"{uid}.1" / "exit").exists()
            (inside.home.task_dir(uid) / "go").touch()
            await inside.until_state(uid, TaskState.COMPLETED)

    asyncio.run(work())


def test_a_run_is_stopped(inside: InHouse) -> None:
    """What waits is cancelled, then what runs is ended, so that its slot is not filled; the run is stopped."""
    new = [a_task("one", description=WAITS, coder="command"), a_task("two", description=WAITS, coder="command")]
    one, two = inside.store.submit(new, run=NewRun(name="nightly"), by="ana").result()
    other = inside.add({"say": "not of the run"}, priority=4)
    inside.set(max_concurrent=1)

    async def work() -> None:
        async with inside.supervising():
            await inside.until(lambda: speaking(inside), "an agent")
            with inside.control() as control:
                stopped = list(control.steer.stop_run(str(one.run)[:-1], "enough"))
            assert [type(each) for each in stopped] == [Task, Intent]
            await inside.until_state(one.uid, TaskState.CANCELLED)
            await inside.until_state(other, TaskState.COMPLETED)

    asyncio.run(work())
    assert inside.task(two.uid).state is TaskState.CANCELLED
    assert inside.store.run(str(one.run)).state is RunState.STOPPED
    events = [entry.event for entry in inside.store.chain(f"run/{one.run}")]
    kinds = [ev.kind_of(event) for event in events]
    assert kinds == ["run.created", "run.stopping", "run.ended", "alert.raised"]
    assert events[1].by == "ana"
    with inside.control() as control:
        assert list(control.steer.stop_run(str(one.run), "again")) == []
