"""The fold: from events to what stands. The store keeps rows by this function, and the ledger is checked by it."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, TypeAlias

from msgspec.structs import replace

from fleet.errors import LedgerBroken
from fleet.model import event as ev
from fleet.model.alert import AlertKind
from fleet.model.receipt import Receipt
from fleet.model.session import Session
from fleet.model.states import ENDED, Result, SessionState, TaskState, move_session, move_task
from fleet.model.task import BLOCKS, Link, Task

Changes: TypeAlias = "dict[str, Any]"  # fields of a task and their new values


def fold_task(task: Task | None, event: ev.Event) -> Task:
    """The task after one more event of its chain."""
    if isinstance(event, ev.TaskSubmitted):
        return event.task
    if task is None:
        raise LedgerBroken(f"{event.subject}: {ev.kind_of(event)} comes before task.submitted")
    changes = _CHANGES.get(type(event))
    return replace(task, updated_at=event.at, **(changes(task, event) if changes else {}))


def _edited(task: Task, event: ev.TaskEdited) -> Changes:  # noqa: ARG001  # one signature for all
    return event.edit.changes()


def _linked(task: Task, event: ev.TaskLinked) -> Changes:
    return _links([*(known for known in task.links if known.other != event.link.other), event.link])


def _unlinked(task: Task, event: ev.TaskUnlinked) -> Changes:
    return _links([known for known in task.links if known.other != event.other])


def _links(links: list[Link]) -> Changes:
    return {"links": tuple(links), "needs": tuple(known.other for known in links if known.kind == BLOCKS)}


def _commented(task: Task, event: ev.TaskCommented) -> Changes:  # noqa: ARG001
    return {"comments": task.comments + 1}


def _claimed(task: Task, event: ev.TaskClaimed) -> Changes:
    verifies = event.session.kind == "verify"
    return {
        "state": move_task(task.uid, task.state, TaskState.VERIFYING if verifies else TaskState.RUNNING),
        "session": event.session.id,
        "epoch": event.session.epoch,
        "started_at": task.started_at or event.at,
        "not_before": None,
        "reason": f"{'is verified' if verifies else 'runs'} on {event.session.worker}",
    }


def _adopted(task: Task, event: ev.SessionAdopted) -> Changes:  # noqa: ARG001
    return {"epoch": event.epoch}


def _ended(task: Task, event: ev.SessionEnded) -> Changes:  # noqa: ARG001
    return {"session": None}


def _settled(task: Task, event: ev.TaskSettled) -> Changes:
    state, receipt = event.state, event.receipt
    return {
        "state": move_task(task.uid, task.state, state),
        "result": receipt.result,
        "source": receipt.source,
        "receipt": receipt.id,
        "awaits": receipt.awaits,
        "skipped_for": receipt.skipped_for,
        "receipts": task.receipts + 1,
        "reason": receipt.reason,
        "block": None,
        "escalated": False,
        "charged": task.charged + int(event.charged),
        "ended_at": receipt.at if state in ENDED else None,
    }


def _unsettled(task: Task, event: ev.TaskUnsettled) -> Changes:
    """Its receipt stays in force until another supersedes it."""
    return {
        "state": move_task(task.uid, task.state, TaskState.PARTIAL),
        "result": Result.PARTIAL,
        "source": None,
        "awaits": event.awaits,
        "escalated": False,
        "not_before": event.not_before,
        "reason": event.reason,
        "ended_at": None,
    }


def _requeued(task: Task, event: ev.TaskRequeued) -> Changes:
    return {
        "state": move_task(task.uid, task.state, TaskState.QUEUED),
        "block": None,
        "escalated": False,
        "reason": event.reason,
        "not_before": event.not_before,
        "charged": task.charged + int(event.charged),
        "restarts": task.restarts + int(event.restart),
        "receipts": task.receipts + int(event.receipt is not None),
        "result": None,
        "source": None,
        "receipt": None,
        "awaits": None,
        "skipped_for": None,
        "ended_at": None,
    }


def _blocked(task: Task, event: ev.TaskBlocked) -> Changes:
    return {
        "state": move_task(task.uid, task.state, TaskState.BLOCKED),
        "block": event.block,
        "escalated": False,
        "reason": event.block.text,
        "result": None,
        "source": None,
        "receipt": None,
        "awaits": None,
    }


def _answered(task: Task, event: ev.TaskAnswered) -> Changes:  # noqa: ARG001
    state = move_task(task.uid, task.state, TaskState.QUEUED)
    return {"state": state, "block": None, "escalated": False, "reason": "answered", "not_before": None}


def _alerted(task: Task, event: ev.AlertRaised) -> Changes:
    return {"escalated": task.escalated or event.alert is AlertKind.NEEDS_HUMAN}


# The fields that each kind changes. The others (session.started, .stopping, intents) change the session or the intent.
_CHANGES: dict[type[ev.Event], Callable[[Task, Any], Changes]] = {
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
    step = _STEPS.get(type(event))
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
    return replace(session, state=state, outcome=event.outcome, usage=event.usage, ended_at=event.at)


# The kinds that change a session which was claimed before.
_STEPS: dict[type[ev.Event], Callable[[Session, Any], Session]] = {
    ev.SessionStarted: _started,
    ev.SessionStopping: _stopping,
    ev.SessionAdopted: _taken_over,
    ev.SessionEnded: _over,
}


def receipt_of(event: ev.Event) -> Receipt | None:
    """The receipt that an event brings, if any."""
    return event.receipt if isinstance(event, (ev.TaskSettled, ev.TaskRequeued)) else None


def fold_all(events: Iterable[ev.Event]) -> Task | None:
    """The task that a whole chain stands for."""
    task: Task | None = None
    for event in events:
        task = fold_task(task, event)
    return task
