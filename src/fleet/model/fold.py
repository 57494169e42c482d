"""The fold: from events to what stands. The store keeps rows by this function, and the ledger is checked by it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from msgspec.structs import replace

from fleet.errors import LedgerBroken
from fleet.model import event as ev
from fleet.model.alert import AlertKind
from fleet.model.receipt import Receipt
from fleet.model.session import Session
from fleet.model.states import ENDED, Result, SessionState, TaskState, move_session, move_task
from fleet.model.task import BLOCKS, Link, Task


def fold_task(task: Task | None, event: ev.Event) -> Task:
    """The task after one more event of its chain."""
    if isinstance(event, ev.TaskSubmitted):
        return event.task
    if task is None:
        raise LedgerBroken(f"{event.subject}: {ev.kind_of(event)} comes before task.submitted")
    step = _TASK_STEPS.get(type(event))
    return replace(task, updated_at=event.at) if step is None else step(task, event)


def _edited(task: Task, event: ev.TaskEdited) -> Task:
    return replace(task, updated_at=event.at, **event.edit.changes())


def _linked(task: Task, event: ev.TaskLinked) -> Task:
    return _with_links(
        task, [*(known for known in task.links if known.other != event.link.other), event.link], event.at
    )


def _unlinked(task: Task, event: ev.TaskUnlinked) -> Task:
    return _with_links(task, [known for known in task.links if known.other != event.other], event.at)


def _with_links(task: Task, links: list[Link], at: int) -> Task:
    needs = tuple(known.other for known in links if known.kind == BLOCKS)
    return replace(task, updated_at=at, links=tuple(links), needs=needs)


def _commented(task: Task, event: ev.TaskCommented) -> Task:
    return replace(task, updated_at=event.at, comments=task.comments + 1)


def _claimed(task: Task, event: ev.TaskClaimed) -> Task:
    verifies = event.session.kind == "verify"
    return replace(
        task,
        updated_at=event.at,
        state=move_task(task.uid, task.state, TaskState.VERIFYING if verifies else TaskState.RUNNING),
        session=event.session.id,
        epoch=event.session.epoch,
        started_at=task.started_at or event.at,
        not_before=None,
        reason=f"{'is verified' if verifies else 'runs'} on {event.session.worker}",
    )


def _adopted(task: Task, event: ev.SessionAdopted) -> Task:
    return replace(task, updated_at=event.at, epoch=event.epoch)


def _ended(task: Task, event: ev.SessionEnded) -> Task:
    return replace(task, updated_at=event.at, session=None)


def _settled(task: Task, event: ev.TaskSettled) -> Task:
    state, receipt = event.state, event.receipt
    return replace(
        task,
        updated_at=event.at,
        state=move_task(task.uid, task.state, state),
        result=receipt.result,
        source=receipt.source,
        receipt=receipt.id,
        awaits=receipt.awaits,
        skipped_for=receipt.skipped_for,
        receipts=task.receipts + 1,
        reason=receipt.reason,
        block=None,
        escalated=False,
        charged=task.charged + int(event.charged),
        ended_at=receipt.at if state in ENDED else None,
    )


def _unsettled(task: Task, event: ev.TaskUnsettled) -> Task:
    """Its receipt stays in force until another supersedes it."""
    return replace(
        task,
        updated_at=event.at,
        state=move_task(task.uid, task.state, TaskState.PARTIAL),
        result=Result.PARTIAL,
        source=None,
        awaits=event.awaits,
        escalated=False,
        not_before=event.not_before,
        reason=event.reason,
        ended_at=None,
    )


def _requeued(task: Task, event: ev.TaskRequeued) -> Task:
    return replace(
        task,
        updated_at=event.at,
        state=move_task(task.uid, task.state, TaskState.QUEUED),
        block=None,
        escalated=False,
        reason=event.reason,
        not_before=event.not_before,
        charged=task.charged + int(event.charged),
        restarts=task.restarts + int(event.restart),
        receipts=task.receipts + int(event.receipt is not None),
        result=None,
        source=None,
        receipt=None,
        awaits=None,
        skipped_for=None,
        ended_at=None,
    )


def _blocked(task: Task, event: ev.TaskBlocked) -> Task:
    return replace(
        task,
        updated_at=event.at,
        state=move_task(task.uid, task.state, TaskState.BLOCKED),
        block=event.block,
        escalated=False,
        reason=event.block.text,
        result=None,
        source=None,
        receipt=None,
        awaits=None,
    )


def _answered(task: Task, event: ev.TaskAnswered) -> Task:
    state = move_task(task.uid, task.state, TaskState.QUEUED)
    return replace(
        task, updated_at=event.at, state=state, block=None, escalated=False, reason="answered", not_before=None
    )


def _alerted(task: Task, event: ev.AlertRaised) -> Task:
    return replace(task, updated_at=event.at, escalated=task.escalated or event.alert is AlertKind.NEEDS_HUMAN)


# The kinds that change a task. The others (session.started, .stopping, intents) change the session or the intent.
_TASK_STEPS: dict[type[ev.Event], Callable[[Task, Any], Task]] = {
    ev.TaskEdited: _edited,
    ev.TaskLinked: _linked,
    ev.TaskUnlinked: _unlinked,
    ev.TaskCommented: _commented,
    ev.TaskClaimed: _claimed,
    ev.SessionAdopted: _adopted,
    ev.SessionEnded: _ended,
    ev.TaskSettled: _settled,
    ev.TaskUnsettled: _unsettled,
    ev.TaskRequeued: _requeued,
    ev.TaskBlocked: _blocked,
    ev.TaskAnswered: _answered,
    ev.AlertRaised: _alerted,
}


def fold_session(session: Session | None, event: ev.Event) -> Session | None:
    """The session after one more event; events of other things leave it as it is."""
    if isinstance(event, ev.TaskClaimed):
        return event.session
    step = _SESSION_STEPS.get(type(event))
    if step is None or session is None or event.session != session.id:  # type: ignore[attr-defined]  # all of them have it
        return session
    return step(session, event)


def _started(session: Session, event: ev.SessionStarted) -> Session:
    state = move_session(session.id, session.state, SessionState.RUNNING)
    return replace(session, state=state, pid=event.pid, started_at=event.at)


def _stopping(session: Session, event: ev.SessionStopping) -> Session:  # noqa: ARG001
    return replace(session, state=move_session(session.id, session.state, SessionState.STOPPING))


def _taken_over(session: Session, event: ev.SessionAdopted) -> Session:
    return replace(session, epoch=event.epoch, supervisor=event.supervisor)


def _over(session: Session, event: ev.SessionEnded) -> Session:
    state = move_session(session.id, session.state, event.state)
    return replace(
        session, state=state, outcome=event.outcome, usage=event.usage, ended_at=event.at, ran_ms=event.ran_ms
    )


# The kinds that change a session which was claimed before.
_SESSION_STEPS: dict[type[ev.Event], Callable[[Session, Any], Session]] = {
    ev.SessionStarted: _started,
    ev.SessionStopping: _stopping,
    ev.SessionAdopted: _taken_over,
    ev.SessionEnded: _over,
}


def receipt_of(event: ev.Event) -> Receipt | None:
    """The receipt that an event brings, if any."""
    return event.receipt if isinstance(event, (ev.TaskSettled, ev.TaskRequeued)) else None
