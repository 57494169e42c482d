"""The fold: from events to what stands. The store keeps rows by this function, and the ledger is checked by it."""

from __future__ import annotations

from collections.abc import Iterable

import msgspec
from msgspec.structs import replace

from fleet.errors import LedgerBroken
from fleet.model import event as ev
from fleet.model.alert import AlertKind
from fleet.model.receipt import Receipt
from fleet.model.session import Session
from fleet.model.states import ENDED, Result, SessionState, TaskState, move_session, move_task
from fleet.model.task import BLOCKS, Task


def fold_task(task: Task | None, event: ev.Event) -> Task:
    """The task after one more event of its chain."""
    if isinstance(event, ev.TaskSubmitted):
        return event.task
    if task is None:
        raise LedgerBroken(f"{event.subject}: {ev.kind_of(event)} comes before task.submitted")
    return replace(_apply(task, event), updated_at=event.at)


def _apply(task: Task, event: ev.Event) -> Task:
    match event:
        case ev.TaskEdited():
            return replace(task, **event.edit.changes())
        case ev.TaskLinked():
            others = tuple(known for known in task.links if known.other != event.link.other)
            return _with_links(task, (*others, event.link))
        case ev.TaskUnlinked():
            return _with_links(task, tuple(known for known in task.links if known.other != event.other))
        case ev.TaskCommented():
            return replace(task, comments=task.comments + 1)
        case ev.TaskClaimed():
            return _claimed(task, event)
        case ev.SessionAdopted():
            return replace(task, epoch=event.epoch)
        case ev.SessionEnded():
            return replace(task, session=None)
        case ev.TaskSettled():
            return _settled(task, event)
        case ev.TaskUnsettled():
            return _unsettled(task, event)
        case ev.TaskRequeued():
            return _requeued(task, event)
        case ev.TaskBlocked():
            return replace(
                task,
                state=move_task(task.uid, task.state, TaskState.BLOCKED),
                block=event.block,
                escalated=False,
                reason=event.block.text,
                result=None,
                source=None,
                receipt=None,
                awaits=None,
            )
        case ev.TaskAnswered():
            state = move_task(task.uid, task.state, TaskState.QUEUED)
            return replace(task, state=state, block=None, escalated=False, reason="answered", not_before=None)
        case ev.AlertRaised():
            return replace(task, escalated=task.escalated or event.alert is AlertKind.NEEDS_HUMAN)
        case _:  # session.started and .stopping, intents: they change the session or the intent
            return task


def _with_links(task: Task, links: tuple[msgspec.Struct, ...]) -> Task:
    changed = replace(task, links=links)
    return replace(changed, needs=tuple(known.other for known in changed.links if known.kind == BLOCKS))


def _claimed(task: Task, event: ev.TaskClaimed) -> Task:
    verifies = event.session.kind == "verify"
    return replace(
        task,
        state=move_task(task.uid, task.state, TaskState.VERIFYING if verifies else TaskState.RUNNING),
        session=event.session.id,
        epoch=event.session.epoch,
        started_at=task.started_at or event.at,
        not_before=None,
        reason=f"{'is verified' if verifies else 'runs'} on {event.session.worker}",
    )


def _settled(task: Task, event: ev.TaskSettled) -> Task:
    state, receipt = event.state, event.receipt
    return replace(
        task,
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


def fold_session(session: Session | None, event: ev.Event) -> Session | None:
    """The session after one more event; events of other things leave it as it is."""
    if isinstance(event, ev.TaskClaimed):
        return event.session
    if session is None or getattr(event, "session", None) != session.id:
        return session
    match event:
        case ev.SessionStarted():
            state = move_session(session.id, session.state, SessionState.RUNNING)
            return replace(session, state=state, pid=event.pid, started_at=event.at)
        case ev.SessionStopping():
            return replace(session, state=move_session(session.id, session.state, SessionState.STOPPING))
        case ev.SessionAdopted():
            return replace(session, epoch=event.epoch, supervisor=event.supervisor)
        case ev.SessionEnded():
            state = move_session(session.id, session.state, event.state)
            return replace(session, state=state, outcome=event.outcome, usage=event.usage, ended_at=event.at)
        case _:
            return session


def receipt_of(event: ev.Event) -> Receipt | None:
    """The receipt that an event brings, if any."""
    return event.receipt if isinstance(event, (ev.TaskSettled, ev.TaskRequeued)) else None


def fold_all(events: Iterable[ev.Event]) -> Task | None:
    """The task that a whole chain stands for."""
    task: Task | None = None
    for event in events:
        task = fold_task(task, event)
    return task
