"""How sessions end, and what becomes of their tasks: passes, failures, limits, questions, agents that ask and close."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from fleet.coders import clocks, spoken
from fleet.coders.coder import Exit
from fleet.coders.scripted import Scripted
from fleet.config.settings import Settings
from fleet.errors import TransportError
from fleet.hosts.local import LocalTransport
from fleet.model import event as ev
from fleet.model.outcome import Outcome, OutcomeKind
from fleet.model.states import Result, SessionState, Source, TaskState
from fleet.model.task import NewTask
from fleet.projections.queue import detail
from tests.support.inhouse import InHouse


@pytest.fixture
def inside(tmp_path: Path) -> Iterator[InHouse]:
    """A home whose supervisors run in this process; nothing of its sessions is left afterwards."""
    made = InHouse(tmp_path)
    yield made
    made.close()


class SilentOnce(LocalTransport):
    """A host that gives no answer when it is first asked for a file of that name."""

    def __init__(self, name: str) -> None:
        super().__init__()
        self.was_silent = False
        self._name = name

    async def get(self, path: str, *, offset: int = 0, limit: int = 1 << 20) -> bytes:
        if path.endswith(f"/{self._name}") and not self.was_silent:
            self.was_silent = True
            raise TransportError("the connection was cut")
        return await super().get(path, offset=offset, limit=limit)


def test_what_the_agent_says_when_it_closes_is_the_reason_of_the_receipt(inside: InHouse) -> None:
    """A task that ends well has one receipt, a pass, with the words of its agent."""
    uid = inside.add({"say": "hello"}, {"close": "all checks are green"})
    inside.drain()
    (receipt,) = inside.store.receipts(task=uid)
    assert inside.task(uid).state is TaskState.COMPLETED
    assert (receipt.result, receipt.source, receipt.reason) == (Result.PASS, None, "all checks are green")
    assert {"kind": "text", "text": "hello"} in inside.said(uid)


def test_a_failure_is_tried_again_and_then_final(inside: InHouse) -> None:
    """A task that fails each time is tried as often as is allowed; each attempt has its receipt, with who failed."""
    inside.set(max_attempts=3)
    uid = inside.add({"stderr": "it broke"}, {"end": "crashed"})
    inside.drain()
    task, receipts = inside.task(uid), inside.store.receipts(task=uid)
    assert (task.state, task.charged, task.source) == (TaskState.FAILED, 3, Source.TASK)
    assert [receipt.result for receipt in receipts] == [Result.FAIL] * 3
    assert task.receipt == receipts[-1].id
    assert (inside.home.task_dir(uid) / "stderr.log").read_text().count("it broke") == 3


def test_a_host_that_is_silent_when_its_session_has_ended_is_asked_again(inside: InHouse) -> None:
    """How a session ended is judged by its own last words on stderr, however often they have to be asked for."""
    away = SilentOnce("stderr")

    async def scene() -> None:
        async with inside.supervising() as supervisor:
            supervisor.house.hosts.here.transport = away
            uid = inside.add(command="echo it broke >&2; exit 3")
            await inside.until_state(uid, TaskState.FAILED)
            assert "it broke" in inside.task(uid).reason

    inside.set(max_attempts=1)
    asyncio.run(scene())
    assert away.was_silent


def test_a_coder_that_is_not_there_on_a_host_that_is_silent(inside: InHouse) -> None:
    """A session that nobody can drive is refused once its host answers, and the supervisor goes on with the others."""
    away = SilentOnce("runner.sh")

    async def scene() -> None:
        async with inside.supervising() as supervisor:
            supervisor.house.hosts.here.transport = away
            refused = inside.add({"say": "hello"}, coder="nobody")
            await inside.until_state(refused, TaskState.BLOCKED)
            other = inside.add({"say": "hello"})
            await inside.until_state(other, TaskState.COMPLETED)

    asyncio.run(scene())
    assert away.was_silent


def test_an_attempt_waits_longer_than_the_one_before(inside: InHouse) -> None:
    """Between attempts there is a wait, up to backoff_seconds at first and up to twice that then."""
    inside.set(max_attempts=3, backoff_seconds=1)
    uid = inside.add({"end": "crashed"})
    inside.drain()
    events = [entry.event for entry in inside.store.chain(uid)]
    waits = [one.not_before - one.at for one in events if isinstance(one, ev.TaskRequeued) and one.not_before]
    assert len(waits) == 2
    assert 450 <= waits[0] <= 1000
    assert 950 <= waits[1] <= 2000


def test_a_plan_limit_pauses_only_its_coder(inside: InHouse) -> None:
    """A task that meets its plan's limit goes back uncharged, others of that coder wait too, and the rest go on."""
    resets = int(time.time() * 1000) + 600_000
    inside.set(max_concurrent=1)
    limited = inside.add({"limit": resets}, priority=0)
    same = inside.add({"say": "later"}, priority=1)
    other = inside.add(command="echo now", priority=2)

    async def work() -> None:
        async with inside.supervising():
            await inside.until_state(other, TaskState.COMPLETED)
        async with inside.supervising() as second:  # who comes next remembers it
            last = inside.add(command="echo then")
            await inside.until_state(last, TaskState.COMPLETED)
            assert second.house.paused() == {"scripted"}

    asyncio.run(work())
    task = inside.task(limited)
    assert (task.state, task.charged, task.not_before, task.receipts) == (TaskState.QUEUED, 0, resets, 0)
    assert inside.store.sessions(task=same) == []


class Limited(Scripted):
    """A coder whose program says for how long its plan is used up, not until when."""

    def outcome(self, state: spoken.State, exit: Exit, stderr: str) -> Outcome:
        resets_at = clocks.resets_at("resets in 90 minutes", exit.at)
        return Outcome(kind=OutcomeKind.PLAN_LIMIT, reason="used up", resets_at=resets_at)


def test_a_limit_that_is_a_span_counts_from_the_end_of_its_session(inside: InHouse) -> None:
    """A coder is told when its program ended, so that "in 90 minutes" is a time."""
    before = int(time.time() * 1000)
    uid = inside.add({"say": "used up"})

    async def work() -> int:
        async with inside.supervising(_coders={"scripted": Limited()}):
            return await inside.until(lambda: inside.task(uid).not_before or 0, "a limit")

    not_before = asyncio.run(work())
    assert before <= not_before - 90 * 60_000 <= int(time.time() * 1000)


def test_a_limit_that_says_a_time_in_the_past_does_not_go_round_and_round(inside: InHouse) -> None:
    """A limit whose reset has passed pauses the coder for a while all the same."""
    uid = inside.add({"limit": 1000})

    async def work() -> None:
        async with inside.supervising():
            await inside.until(lambda: inside.task(uid).not_before, "a limit")

    asyncio.run(work())
    assert (inside.task(uid).not_before or 0) > time.time() * 1000 + 60_000
    assert len(inside.store.sessions(task=uid)) == 1


def test_a_coder_that_is_not_signed_in_needs_a_person(inside: InHouse) -> None:
    """A task whose coder cannot sign in waits for a person, and is told what to do."""
    uid = inside.add({"end": "auth"})
    inside.drain()
    task = inside.task(uid)
    assert task.state is TaskState.BLOCKED
    assert task.block is not None
    assert task.block.kind == "needs_human"
    assert "sign in" in task.block.text
    assert task.charged == 0


ASKS = """
if [ -e "$FLEET_ARTIFACT_DIR/asked" ]; then echo going on; exit 0; fi
mkdir -p "$FLEET_ARTIFACT_DIR"; touch "$FLEET_ARTIFACT_DIR/asked"
{ask}
"""


@pytest.mark.parametrize(
    ("ask", "kind"),
    [
        ('fleet ask "Which colour?"', "question"),
        ('fleet ask --kind permission "Which colour?"', "permission"),
        ('bd update $FLEET_TASK_ID --status blocked --notes "QUESTION: Which colour?"', "question"),
    ],
)
def test_a_question_waits_for_its_answer(inside: InHouse, ask: str, kind: str) -> None:
    """A task whose agent asks is blocked until a person answers; then it goes on and is completed.

    The question names the agent, and stands in Q&A.md before it is answered.
    """
    uid = inside.add(command=ASKS.format(ask=ask))
    inside.drain()
    task = inside.task(uid)
    assert task.block is not None
    assert (task.state, task.block.kind, task.block.text) == (TaskState.BLOCKED, kind, "Which colour?")
    assert task.block.by == f"command in {uid}.1"
    asked = inside.home.task_dir(uid) / "artifacts" / "Q&A.md"
    assert asked.read_text() == "## Q: Which colour?\n"
    with inside.control() as control:
        control.answer(uid, "blue")
    inside.drain()
    assert (inside.task(uid).state, inside.task(uid).charged) == (TaskState.COMPLETED, 0)
    assert asked.read_text().startswith("## Q: Which colour?\n\n## A: ")
    assert asked.read_text().endswith("blue\n")


def test_a_pass_that_nothing_checked_is_shown_as_unverified(inside: InHouse) -> None:
    """Its coder's word is all there is; what a person closes is checked by them; what failed is neither."""
    said, failed, closed = (
        inside.add({"say": "done"}),
        inside.add(command="exit 3"),
        inside.add({"say": "x"}, priority=4),
    )
    with inside.control() as control:
        control.close_task(closed, "I looked")
    inside.drain(max_attempts=1)
    found = {
        uid: detail(inside.store, Settings(), inside.task(uid), now=0, edited={}).verified
        for uid in (said, failed, closed)
    }
    assert found == {said: False, failed: None, closed: True}


def test_an_agent_remarks_and_looks(inside: InHouse) -> None:
    """A remark of an agent is made once, in its coder's name, and `fleet show` tells it its own task."""
    uid = inside.add(command='fleet comment "half done"; fleet show')
    inside.drain()
    assert [(remark.by, remark.text) for remark in inside.store.comments(uid)] == [("command", "half done")]
    assert any(said.get("text") == f"id: {uid}" for said in inside.said(uid))


def test_how_much_a_context_holds_may_be_said_in_the_settings(inside: InHouse) -> None:
    """Of a coder that Fleet knows, too: a session is ended when that is nearly full."""
    with inside.home.toml.open("a") as file:
        file.write("[coders.scripted]\ncontext_limit = 1000\n")
    uid = inside.add({"context": 950}, {"hang": True})

    async def work() -> None:
        async with inside.supervising():
            await inside.until(lambda: len(inside.store.sessions(task=uid)) > 1, "its second session")
            with inside.control() as control:
                control.steer.stop(uid, "seen enough")
            await inside.until_state(uid, TaskState.CANCELLED)

    asyncio.run(work())
    assert inside.store.sessions(task=uid)[0].outcome == "context"


def test_a_full_context_goes_on_in_a_fresh_session(inside: InHouse) -> None:
    """A session whose context is nearly full is ended; the task goes on in another, uncharged."""
    uid = inside.add({"context": 190_000}, {"hang": True})

    async def work() -> None:
        async with inside.supervising() as supervisor:
            await inside.until(lambda: len(inside.store.sessions(task=uid)) == 2, "a second session")
            supervisor.stop(agents=True)

    asyncio.run(work())
    first = inside.store.sessions(task=uid)[0]
    assert (first.outcome, first.state) == ("context", SessionState.EXITED)
    assert inside.task(uid).charged == 0


def test_a_session_past_its_time_ends(inside: InHouse) -> None:
    """A session that runs longer than timeout_seconds is ended, and its task has failed by time."""
    inside.set(timeout_seconds=1)
    uid = inside.add({"stubborn": True}, {"hang": True})
    inside.drain()
    (receipt,) = inside.store.receipts(task=uid)
    assert (inside.task(uid).state, receipt.result) == (TaskState.FAILED, Result.TIMEOUT)
    assert receipt.reason == "it ran longer than 1 s"


def test_silence_is_a_stall_unless_a_tool_runs(inside: InHouse) -> None:
    """A session that says nothing for idle_seconds is ended; one that waits for a tool is not."""
    inside.set(idle_seconds=1, max_attempts=1)
    silent = inside.add({"say": "hm"}, {"hang": True})
    working = inside.add({"run": "sleep 2.5"})
    inside.drain()
    assert inside.store.sessions(task=silent)[0].outcome == "stalled"
    assert inside.task(silent).state is TaskState.FAILED
    assert inside.task(working).state is TaskState.COMPLETED


def test_a_child_that_holds_the_output_does_not_hold_the_slot(inside: InHouse) -> None:
    """When an agent ends, what it left behind is ended, and the next task begins at once."""
    inside.set(max_concurrent=1)
    uids = [inside.add({"spawn": 300}), inside.add({"say": "next"})]
    began = time.monotonic()
    inside.drain()
    assert time.monotonic() - began < 10
    assert [inside.task(uid).state for uid in uids] == [TaskState.COMPLETED] * 2


def test_an_agent_that_is_told_to_end_by_another_is_tried_again(inside: InHouse) -> None:
    """SIGTERM from somebody else, as at a shutdown of the machine, is no decision of ours: the task is tried again."""
    uid = inside.add(command='if mkdir "$FLEET_TASK_DIR/once"; then kill -TERM $$; fi; echo well')
    inside.drain()
    assert (inside.task(uid).state, inside.task(uid).charged) == (TaskState.COMPLETED, 1)


def test_what_cannot_be_launched_fails_with_its_reason(inside: InHouse) -> None:
    """A task that its coder cannot launch has failed, and says why."""
    (task,) = inside.store.submit([_broken()], by="ana").result()
    inside.drain()
    (receipt,) = inside.store.receipts(task=task.uid)
    assert (receipt.result, receipt.source) == (Result.FAIL, Source.TASK)
    assert "no step `dance`" in receipt.reason


def _broken() -> NewTask:
    from fleet.testing.builders import a_task

    return a_task("work", description='@@scripted [{"dance": 1}]')
