"""One worker at its task: where it stands, by what evidence, what came last, what it left, and who was told."""

from __future__ import annotations

from collections.abc import Collection

import msgspec

from fleet.errors import NotFound
from fleet.model import event as ev
from fleet.model.ids import LISTS
from fleet.model.receipt import ArtifactRef, Receipt
from fleet.model.session import Progress, Session, goes_by
from fleet.model.states import LIVE, Result
from fleet.model.task import Task
from fleet.store.reads import Reads

FAILED = frozenset({Result.FAIL, Result.TIMEOUT})


class Heartbeat(msgspec.Struct, frozen=True):
    """The last sign of life, and what it was."""

    at: int
    evidence: str


class LatestEvent(msgspec.Struct, frozen=True):
    """The newest event of the task."""

    seq: int
    kind: str
    at: int
    by: str


class AlertState(msgspec.Struct, frozen=True):
    """What a person was last told of the task."""

    kind: str
    reason: str
    at: int


class Inspection(msgspec.Struct, frozen=True, kw_only=True):
    """A worker, its session and its task. What is not there yet is null."""

    worker: str | None
    state: str  # of the session where there is one, else of the task
    stale: bool  # the session is live, and nobody attends it or its host gives no sign of life
    stale_reason: str
    run: str | None
    task: str
    task_id: str
    title: str
    task_state: str
    reason: str
    objective: str
    role: str | None
    session: str | None
    kind: str | None  # of the session: work or verify
    attempt: int  # of those that count; 0: nothing ran
    coder: str | None
    model: str | None
    host: str | None
    heartbeat: Heartbeat | None
    latest_event: LatestEvent | None
    tokens: int
    cost_microusd: int
    artifacts: tuple[ArtifactRef, ...]
    receipt: Receipt | None
    latest_error: str | None
    alert: AlertState | None


def inspect(reads: Reads, word: str) -> Inspection:
    """What stands for a worker, a task or a session."""
    task, session = found(reads, word)
    progress = reads.progress(session.id) if session is not None else Progress()
    receipts = reads.receipts(task=task.uid)
    failed = [receipt.reason for receipt in receipts if receipt.result in FAILED]
    last = reads.last(1, subject=task.uid)
    stale = why_stale(session, progress, reads.attending()) if session is not None else ""
    return Inspection(
        worker=session.worker if session else None,
        state=session.state.value if session else task.state.value,
        stale=bool(stale),
        stale_reason=stale,
        run=task.run,
        task=task.uid,
        task_id=task.task_id,
        title=task.title,
        task_state=task.state.value,
        reason=task.reason,
        objective=task.terms.objective or task.description.strip().partition("\n")[0],
        role=task.terms.role,
        session=session.id if session else None,
        kind=session.kind if session else None,
        attempt=_attempt(task, session, receipts),
        coder=session.coder if session else task.coder,
        model=session.model if session else task.model,
        host=session.host if session else task.host,
        heartbeat=_heartbeat(session, progress) if session else None,
        latest_event=_event(last[-1]) if last else None,
        tokens=progress.usage.input_tokens + progress.usage.output_tokens,
        cost_microusd=progress.usage.cost_microusd,
        artifacts=receipts[-1].artifacts if receipts else (),
        receipt=receipts[-1] if receipts else None,
        latest_error=failed[-1] if failed else None,
        alert=_alert(reads, task),
    )


def why_stale(session: Session, progress: Progress, attending: Collection[str]) -> str:
    """Why nothing new is known of a live session; empty: it is attended, or has ended."""
    if session.state not in LIVE:
        return ""
    if session.supervisor not in attending:
        return "no supervisor attends it"
    return f"host {session.host} gives no sign of life" if progress.stale_since is not None else ""


def found(reads: Reads, word: str) -> tuple[Task, Session | None]:
    """By a session's own id that session; by a worker its newest; by a task the newest of the task."""
    try:
        task = reads.find(word)
    except NotFound:
        session = reads.last_of_worker(word)
        if session is None:
            raise NotFound(f"no worker, task or session `{word}`", hint=LISTS["task"]) from None
        return reads.task(session.task), session
    sessions = reads.sessions(task=task.uid)
    chosen = [session for session in sessions if goes_by(session.id, word)] or sessions
    return task, chosen[-1] if chosen else None


def _attempt(task: Task, session: Session | None, receipts: list[Receipt]) -> int:
    """Which attempt a session was of: as its receipt says, else the one that is being made."""
    if session is None:
        return 0
    told = [receipt.attempt for receipt in receipts if receipt.session == session.id]
    return told[-1] if told else task.charged + 1


def _heartbeat(session: Session, progress: Progress) -> Heartbeat:
    if session.ended_at is not None:
        return Heartbeat(session.ended_at, f"it ended: {session.outcome}")
    if progress.stale_since is not None:
        return Heartbeat(progress.stale_since, f"host {session.host} was last heard; whether it lives is not known")
    if progress.last_output_at is not None:
        tool = ", and a tool runs" if progress.tools_running else ""
        return Heartbeat(progress.last_output_at, f"output, {progress.cursor} bytes so far{tool}")
    if session.started_at is not None:
        return Heartbeat(session.started_at, f"it began, as process {session.pid}; no output yet")
    return Heartbeat(session.claimed_at, "it was claimed; no process yet")


def _event(entry: ev.Entry) -> LatestEvent:
    return LatestEvent(entry.seq, ev.kind_of(entry.event), entry.event.at, entry.event.by)


def _alert(reads: Reads, task: Task) -> AlertState | None:
    raised = [entry.event for entry in reads.chain(task.uid) if isinstance(entry.event, ev.AlertRaised)]
    if not raised:
        return None
    return AlertState(raised[-1].alert.value, raised[-1].reason, raised[-1].at)
