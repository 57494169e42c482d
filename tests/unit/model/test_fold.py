"""The fold: what it refuses, and what it leaves as it is."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace

from fleet.errors import IllegalMove, LedgerBroken
from fleet.model import event as ev
from fleet.model.fold import fold_session, fold_task, receipt_of
from fleet.model.receipt import Receipt
from fleet.model.session import Session
from fleet.model.states import Result, SessionState, TaskState
from fleet.model.task import Block, Comment, Link, Task, TaskEdit
from fleet.policy.limits import used_by
from fleet.testing.builders import fold_all

UID = "fleet-abc"


def of(kind: type[ev.Event], **fields: Any) -> ev.Event:
    """An event of our one task."""
    return kind(subject=UID, at=7, by="ana", **fields)


TASK = Task(uid=UID, task_id=UID, title="x", created_at=1, created_by="ana", updated_at=1)
SESSION = Session(
    id=f"{UID}.1", task=UID, epoch=1, worker="w#1", host="h", supervisor="s", coder="claude", claimed_at=2
)
SUBMITTED = of(ev.TaskSubmitted, task=TASK)
CLAIMED = of(ev.TaskClaimed, session=SESSION)
ENDED = of(ev.SessionEnded, session=SESSION.id, state=SessionState.EXITED, outcome="ok")


@pytest.mark.parametrize(("ran_ms", "took"), [(None, 5), (2, 2), (9, 9)])
def test_a_session_ran_until_its_agent_ended(ran_ms: int | None, took: int) -> None:
    """Not until that was recorded, where it is known better: longer too, if the clock was set back meanwhile. What
    never began took no time."""
    started = ev.SessionStarted(subject=UID, at=2, by="ana", session=SESSION.id, pid=1)
    session = fold_session(SESSION, started)
    assert session is not None
    assert session.running_ms(now=4) == 2
    ended = fold_session(session, replace(ENDED, ran_ms=ran_ms))
    assert ended is not None
    assert (ended.running_ms(now=100), SESSION.running_ms(now=100)) == (took, 0)
    assert used_by([ended]).running_ms == took


def settled(result: Result, state: TaskState) -> ev.Event:
    """A verdict."""
    receipt = Receipt(id=f"{UID}.r1", task=UID, result=result, reason="because", at=9)
    return of(ev.TaskSettled, state=state, receipt=receipt)


def test_nothing_comes_before_the_submission() -> None:
    """Any event of a task that was not submitted breaks the ledger; no events at all are no task."""
    for event in (CLAIMED, of(ev.TaskEdited, edit=TaskEdit()), of(ev.TaskAnswered, text="yes")):
        with pytest.raises(LedgerBroken, match=r"comes before task\.submitted"):
            fold_task(None, event)
    assert fold_all([]) is None


def test_moves_that_the_tables_lack_are_refused() -> None:
    """Events in an order that cannot be raise, wherever the fold meets them."""
    done = [SUBMITTED, CLAIMED, ENDED, settled(Result.PASS, TaskState.COMPLETED)]
    for impossible in (
        [SUBMITTED, CLAIMED, CLAIMED],
        [*done, CLAIMED],
        [*done, settled(Result.PASS, TaskState.COMPLETED)],
        [
            SUBMITTED,
            of(ev.TaskAnswered, text="yes"),
            CLAIMED,
            of(ev.TaskAnswered, text="yes"),
            of(ev.TaskAnswered, text="x"),
        ],
        [SUBMITTED, settled(Result.FAIL, TaskState.FAILED)],
        [*done, of(ev.TaskBlocked, block=Block(kind="held", text="x", at=1, by="ana"))],
    ):
        with pytest.raises(IllegalMove):
            fold_all(impossible)


def test_a_life() -> None:
    """Claim, end, verdict and restart leave the task as each of them says, and nothing of the one before."""
    task = fold_all([SUBMITTED, CLAIMED])
    assert task is not None
    assert (task.state, task.session, task.epoch, task.started_at) == (TaskState.RUNNING, SESSION.id, 1, 7)
    task = fold_all([SUBMITTED, CLAIMED, ENDED, settled(Result.FAIL, TaskState.FAILED)])
    assert task is not None
    assert (task.state, task.session, task.result, task.ended_at) == (TaskState.FAILED, None, Result.FAIL, 9)
    again = fold_task(task, of(ev.TaskRequeued, reason="again", restart=True, charged=True))
    assert (again.state, again.result, again.receipt, again.ended_at) == (TaskState.QUEUED, None, None, None)
    assert (again.restarts, again.charged, again.receipts, again.started_at) == (1, 1, 1, 7)


def test_links_replace_each_other_and_needs_follow() -> None:
    """One pair has one relation, and only `blocks` is a need."""
    task = TASK
    for kind, needs in (("blocks", ("o",)), ("related", ()), ("blocks", ("o",))):
        task = fold_task(task, of(ev.TaskLinked, link=Link(other="o", kind=kind)))
        assert len(task.links) == 1
        assert task.needs == needs
    task = fold_task(task, of(ev.TaskUnlinked, other="o"))
    assert (task.links, task.needs) == ((), ())


def test_what_changes_nothing_changes_only_the_time() -> None:
    """A remark counts; what concerns the session alone leaves all of the task but the time of the last change."""
    comment = Comment(id="c", task=UID, by="ana", text="hm", at=7)
    assert fold_task(TASK, of(ev.TaskCommented, comment=comment)).comments == 1
    started = fold_task(TASK, of(ev.SessionStarted, session=SESSION.id))
    assert started.updated_at == 7
    assert started.state is TASK.state


def test_the_events_of_another_session_leave_this_one_alone() -> None:
    """A session follows its own events only, and cannot come back from its end."""
    other = of(ev.SessionStarted, session=f"{UID}.2", pid=5)
    assert fold_session(SESSION, other) is SESSION
    assert fold_session(None, other) is None
    over = fold_session(SESSION, ENDED)
    assert over is not None
    assert (over.state, over.outcome, over.ended_at) == (SessionState.EXITED, "ok", 7)
    with pytest.raises(IllegalMove):
        fold_session(over, of(ev.SessionStarted, session=SESSION.id))


def test_receipts_come_with_two_kinds_of_events() -> None:
    """A verdict and a retry bring a receipt, and nothing else does."""
    verdict = settled(Result.PASS, TaskState.COMPLETED)
    receipt = receipt_of(verdict)
    assert receipt is not None
    assert receipt_of(of(ev.TaskRequeued, reason="again", receipt=receipt)) == receipt
    assert receipt_of(of(ev.TaskRequeued, reason="again")) is None
    assert receipt_of(CLAIMED) is None


def test_stored_bytes_come_back_as_the_same_event() -> None:
    """Every event is decoded to what it was, and encoded again to the same bytes."""
    for event in (SUBMITTED, CLAIMED, ENDED, settled(Result.PASS, TaskState.COMPLETED)):
        body = ev.encode(event)
        assert ev.decode(body) == event
        assert ev.encode(ev.decode(body)) == body


def test_the_union_of_events_is_the_list_of_events() -> None:
    """Each kind that can be written can be read, and each has a name of its own."""
    assert set(ev.AnyEvent.__args__) == set(ev.EVENTS)
    assert len({ev.kind_of(kind) for kind in ev.EVENTS}) == len(ev.EVENTS)
