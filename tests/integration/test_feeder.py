"""The feeder and the reporter, on an outside queue in memory: who changes what, and who wins."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from fleet.model.states import TaskState
from fleet.sources.source import Issue
from fleet.supervisor.guard import Guard
from fleet.supervisor.supervisor import Supervised, Supervisor
from tests.support.fake_source import FakeSource
from tests.support.inhouse import InHouse

WAITS = 'until [ -e "$FLEET_TASK_DIR/go" ]; do sleep 0.05; done; echo gone'


@pytest.fixture
def inside(tmp_path: Path) -> Iterator[InHouse]:
    """A home whose supervisors run in this process; nothing of its sessions is left afterwards."""
    made = InHouse(tmp_path, coder="command", max_attempts=1)
    yield made
    made.close()


@pytest.fixture
def source() -> FakeSource:
    """An outside queue."""
    return FakeSource()


def drain(inside: InHouse, source: FakeSource) -> Supervised:
    """Work until nothing is left; the source is as good as new afterwards."""
    done = inside.drain(source=source)
    source.broken = ""
    return done


def work(inside: InHouse, source: FakeSource, then: Callable[[Supervisor], Awaitable[None]]) -> None:
    """Do something while a supervisor works."""

    async def beside() -> None:
        async with inside.supervising(source=source) as supervisor:
            await then(supervisor)

    asyncio.run(beside())
    source.broken = ""


async def until_runs(inside: InHouse, uid: str) -> None:
    """Wait for its agent."""
    await inside.until(lambda: inside.store.tasks_by_uid([uid]), uid)
    await inside.until_state(uid, TaskState.RUNNING)


def test_the_most_urgent_comes_first_and_no_more_than_there_is_room_for(inside: InHouse, source: FakeSource) -> None:
    """With one slot, issues are claimed one after the other, by priority, then age."""
    inside.set(max_concurrent=1)
    for name, priority in (("b-late", 2), ("c-urgent", 0), ("a-later", 2)):
        source.put(name, description="echo x", priority=priority)
    drain(inside, source)
    assert source.calls == [f"{verb} {uid}" for uid in ("c-urgent", "b-late", "a-later") for verb in ("claim", "close")]
    assert all(inside.task(uid).created_by == source.name for uid in ("b-late", "c-urgent", "a-later"))


def test_what_fails_is_held_and_what_needs_it_does_not_run(inside: InHouse, source: FakeSource) -> None:
    """A failed issue is blocked with its reason; set to open it runs again, and then what needs it."""
    source.put("one", description='[ -e "$FLEET_TASK_DIR/go" ] || exit 3')
    source.put("two", description="echo x", needs=("one",))
    assert drain(inside, source).failed == 1
    assert source.get("one").status == "blocked"
    why = "exit code 3, and nothing on stderr (fleet why one; set it to open to run it again)"
    assert source.get("one").notes.endswith(why)
    assert source.get("two").status == "open"
    (inside.home.task_dir("one") / "go").touch()
    source.put("one", status="open", assignee="")
    assert drain(inside, source).completed == 2
    assert [source.get(uid).status for uid in ("one", "two")] == ["closed", "closed"]


def test_edits_are_taken_while_it_waits(inside: InHouse, source: FakeSource) -> None:
    """Title, description, priority, labels and notes of an issue are those of its task as soon as they are changed."""
    source.put("one", description='fleet ask "Which?"')

    async def then(_: Supervisor) -> None:
        await inside.until(lambda: source.get("one").status == "blocked", "the question")
        source.put("one", title="Better", description="echo y", priority=0, labels=("area=web", "urgent"), design="So.")
        await inside.until(lambda: inside.task("one").title == "Better", "the edit")

    work(inside, source, then)
    task = inside.task("one")
    assert (task.description, task.priority, task.labels) == ("echo y", 0, {"area": "web", "urgent": ""})
    assert task.bead.design == "So."
    assert task.state is TaskState.BLOCKED


@pytest.mark.parametrize(
    ("change", "state", "reason"),
    [
        ({"assignee": "bob"}, TaskState.CANCELLED, "it was taken in bd by bob"),
        ({"status": "closed", "close_reason": "no need"}, TaskState.CANCELLED, "it was closed in bd: no need"),
        ({"status": "deferred"}, TaskState.BLOCKED, "it was set to deferred in bd"),
    ],
)
def test_what_is_not_ours_any_more_is_let_go(
    inside: InHouse, source: FakeSource, change: dict[str, Any], state: TaskState, reason: str
) -> None:
    """An issue that is taken, closed or set aside while its agent runs ends the agent; nothing is written over it."""
    source.put("one", description=WAITS)

    async def then(_: Supervisor) -> None:
        await until_runs(inside, "one")
        source.put("one", **change)
        await inside.until_state("one", state)

    work(inside, source, then)
    drain(inside, source)
    assert inside.task("one").reason == reason
    now = source.get("one")
    assert all(getattr(now, name) == value for name, value in change.items())
    assert source.calls == ["claim one"]


@pytest.mark.parametrize("unclaimable", [False, True])
def test_what_the_queue_gave_back_is_taken_again_while_it_runs(
    inside: InHouse, source: FakeSource, unclaimable: bool
) -> None:
    """An issue that is open again while its agent runs, as after a lease of bd's, is ours again and run once."""
    source.put("one", description=WAITS)

    async def then(_: Supervisor) -> None:
        await until_runs(inside, "one")
        source.unclaimable = unclaimable
        source.put("one", status="open", assignee="")
        await inside.until(lambda: source.get("one").status == "in_progress", "it to be ours")
        (inside.home.task_dir("one") / "go").touch()
        await inside.until(lambda: source.get("one").status == "closed", "its end")

    work(inside, source, then)
    assert len(inside.store.sessions(task="one")) == 1


def test_what_passed_while_the_queue_gave_it_back_is_closed_and_not_run_again(
    inside: InHouse, source: FakeSource
) -> None:
    """A pass that was not told yet counts, also when the issue is open by then."""
    source.put("one", description="echo x")

    def give_back(point: str) -> None:
        if point == "settling":
            source.put("one", status="open", assignee="")

    inside.drain(source=source, at=give_back)
    assert source.calls == ["claim one", "resume one", "close one"]
    assert len(inside.store.sessions(task="one")) == 1


def test_what_passes_while_the_queue_is_looked_at_is_not_run_again(inside: InHouse, tmp_path: Path) -> None:
    """It was given back, and ended between two questions to the queue: what is open there has been done."""
    gate, settled = tmp_path / "go", threading.Event()

    class Slow(FakeSource):
        def ready(self) -> list[Issue]:
            if "claim one" in self.calls and not settled.is_set():
                gate.touch()
                assert settled.wait(30)
            return super().ready()

    source = Slow()
    source.put("one", description=f"until [ -e {gate} ]; do sleep 0.05; done")
    source.put("two", status="blocked")

    def at(point: str) -> None:
        if point == "started":
            source.put("two", title="touched")  # the queue is to be looked at
        elif point == "settling":
            source.put("one", status="open", assignee="")
        elif point == "settled":
            settled.set()

    inside.drain(source=source, at=at)
    assert settled.is_set()
    assert len(inside.store.sessions(task="one")) == 1
    assert source.get("one").status == "closed"
    assert source.calls.count("claim one") == 1


def test_what_cannot_be_closed_waits_for_a_person(inside: InHouse, source: FakeSource) -> None:
    """Where the queue refuses to close an issue that passed, it is blocked with the reason, and not run again."""
    source.put("one", description="echo x")
    source.unclosable = "it has open children"
    assert drain(inside, source).completed == 1
    assert source.get("one").status == "blocked"
    assert source.get("one").notes == "PASSED, but it cannot be closed: it has open children"
    assert drain(inside, source).sessions == 0


def test_an_id_that_cannot_be_taken_is_refused_and_told(inside: InHouse, source: FakeSource) -> None:
    """An id that cannot name a path, or that a task of Fleet's own has, is not run; the rest is."""
    own = inside.add(command="echo own")
    source.put("../etc", description="echo x")
    source.put(own, description="echo theirs")
    source.put("good", description="echo x")
    assert drain(inside, source).completed == 2
    assert source.get("../etc").status == "open"
    assert source.get(own).status == "open"
    assert inside.said(own)[-1]["text"] == "own"
    assert {one["issue"] for one in inside.logged("issue_refused")} == {"../etc", own}


def test_a_queue_that_fails_is_shown_and_stops_nothing(inside: InHouse, source: FakeSource) -> None:
    """While the outside queue fails, tasks of Fleet's own run; afterwards its issues do."""
    source.put("one", description="echo x")
    source.broken = "it is on fire"
    own = inside.add(command="echo own")

    async def then(_: Supervisor) -> None:
        await inside.until_state(own, TaskState.COMPLETED)
        await inside.until(lambda: inside.logged("queue_failed"), "the log")
        source.broken = ""
        await inside.until(lambda: source.get("one").status == "closed", "the issue")

    work(inside, source, then)
    assert inside.logged("queue_failed")[0]["error"] == "it is on fire"
    assert inside.logged("queue_back")


def test_what_is_closed_right_after_it_came_back_stays_closed(inside: InHouse, source: FakeSource) -> None:
    """An issue that was open again and then closed by hand is not opened by us; its task is cancelled."""
    source.put("one", description='fleet ask "Which?"')
    drain(inside, source)
    source.put("one", status="open", assignee="", description=WAITS)

    def close(point: str) -> None:
        if point == "fed":
            source.put("one", status="closed", close_reason="never mind")

    inside.drain(source=source, at=close)
    assert (source.get("one").status, source.get("one").close_reason) == ("closed", "never mind")
    assert inside.task("one").state is TaskState.CANCELLED
    assert not [call for call in source.calls if call.startswith("resume")]


def test_one_supervisor_of_a_home_feeds(inside: InHouse, source: FakeSource) -> None:
    """While another supervisor of the home feeds, nothing is taken, and a drain is not held up."""
    source.put("one", description="echo x")
    own = inside.add(command="echo own")
    with Guard(inside.home.path / "feeder.lock"):
        assert drain(inside, source).completed == 1
    assert source.calls == []
    assert inside.task(own).state is TaskState.COMPLETED
    assert drain(inside, source).completed == 1
