"""One transition: its events, the rows they make, and what follows for the tasks and the run around it."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence

from msgspec.structs import replace

from fleet.model import event as ev
from fleet.model.alert import Alert, AlertKind
from fleet.model.fold import fold_session, fold_task
from fleet.model.ids import run_subject
from fleet.model.receipt import Receipt, Verdict
from fleet.model.run import Run
from fleet.model.session import Session
from fleet.model.states import ENDED, IN_PROGRESS, OPEN, UNMET, Result, RunState, TaskState, move_run
from fleet.model.task import Task
from fleet.store import ledger, rows
from fleet.store.engine import Tx

# Named one by one: the index then leads to them, however many tasks of the run have ended.
_OPEN_SHELVES = ", ".join(f"'{shelf}'" for shelf in sorted([*rows.STATE_OF_SHELF, *OPEN]))


def apply(tx: Tx, before: Task, *events: ev.Event, session: Session | None = None) -> Task:
    """Write events of a task, its row, its session's row, and all that follows from the change."""
    after = _step(tx, before, *events, session=session)
    _consequences(tx, before, after, events[-1].by)
    return after


def raised(task: Task, alerts: Sequence[Alert], *, at: int, by: str, session: Session | None = None) -> list[ev.Event]:
    """The events of alerts, to stand behind those of the transition that causes them."""
    name, worker = (session.id, session.worker) if session else (None, None)
    return [
        ev.AlertRaised(
            subject=task.uid, at=at, by=by, alert=alert.kind, reason=alert.reason, session=name, worker=worker
        )
        for alert in alerts
    ]


def receipt_from(
    task: Task, verdict: Verdict, *, session: Session | None, at: int, settles: Receipt | None = None
) -> Receipt:
    """The receipt that a verdict on a task becomes. One that settles another tells of the same work."""
    work, worker = settles or verdict, settles or session
    receipt = Receipt(
        id=f"{task.uid}.r{task.receipts + 1}",
        task=task.uid,
        run=task.run,
        session=session.id if session else None,
        attempt=settles.attempt if settles else task.charged + int(session is not None),
        coder=worker.coder if worker else None,
        model=worker.model if worker else None,
        host=worker.host if worker else None,
        result=verdict.result,
        source=verdict.source,
        reason=verdict.reason,
        scorer=verdict.scorer,
        usage=work.usage,
        duration_ms=work.duration_ms,
        at=at,
    )
    return replace(  # a second step: Python makes a call with more than 15 names by way of dictionaries, slowly
        receipt,
        evidence=verdict.evidence,
        artifacts=verdict.artifacts,
        supersedes=settles.id if settles else None,
        skipped_for=verdict.skipped_for,
        score=verdict.score,
        scores=verdict.scores,
        awaits=verdict.awaits if verdict.result is Result.PARTIAL else None,
        exit_code=work.exit_code,
        commit_before=work.commit_before,
        commit_after=work.commit_after,
        verify_usage=verdict.verify_usage,
        verify_ms=verdict.verify_ms,
    )


def open_receipt(tx: Tx, task: Task) -> Receipt | None:
    """The receipt that the next one supersedes: the verdict of this one is open."""
    is_open = task.state in (TaskState.PARTIAL, TaskState.VERIFYING)
    return ledger.receipt(tx, task.uid, task.receipt) if is_open and task.receipt else None


def _step(tx: Tx, before: Task, *events: ev.Event, session: Session | None = None) -> Task:
    """The events and the rows they make, and nothing further."""
    after, its_session = before, session
    for event in events:
        after = fold_task(after, event)
        its_session = fold_session(its_session, event)
    rows.count(tx, before, after)
    ledger.append(tx, *events)
    rows.save_task(tx, after, its_session)
    return after


def _consequences(tx: Tx, before: Task, after: Task, by: str) -> None:
    """Dependents begin to wait or stop waiting, are skipped or revived; the run ends or goes on."""
    if before.state is after.state or ENDED.isdisjoint((before.state, after.state)):  # others look at ends only
        return
    changed = deque([(before, after)])
    touched_runs = set()
    while changed:
        was, now = changed.popleft()
        if was.state == now.state:
            continue
        met = (now.state is TaskState.COMPLETED) - (was.state is TaskState.COMPLETED)
        hopeless = now.state in UNMET and was.state not in UNMET
        hopeful = was.state in UNMET and now.state not in UNMET
        if met or hopeless or hopeful:
            for dependent in rows.dependents(tx, now.uid):
                if met:
                    rows.wait(tx, dependent.uid, -met)
                if hopeless and dependent.state not in ENDED | IN_PROGRESS:
                    changed.append((dependent, _skip(tx, dependent, now, by)))
                elif hopeful and dependent.skipped_for and not _hopeless_need(tx, dependent):
                    changed.append((dependent, _revive(tx, dependent, now, by)))
        if now.run and (was.state in ENDED) != (now.state in ENDED):
            touched_runs.add(now.run)
    for run_id in sorted(touched_runs):
        _settle_run(tx, run_id, by)


def _skip(tx: Tx, task: Task, because: Task, by: str) -> Task:
    name = because.task_id if because.run == task.run else because.uid
    became = "was skipped" if because.skipped_for else f"is {because.state.value}"
    reason = f"skipped: it needs {name}, which {became}"
    verdict = Verdict(result=Result.SKIP, reason=reason, skipped_for=because.uid)
    receipt = receipt_from(task, verdict, session=None, at=tx.now)
    event = ev.TaskSettled(subject=task.uid, at=tx.now, by=by, state=TaskState.CANCELLED, receipt=receipt)
    return _step(tx, task, event)


def _revive(tx: Tx, task: Task, because: Task, by: str) -> Task:
    reason = f"revived: {because.uid} is {because.state.value} again"
    return _step(tx, task, ev.TaskRequeued(subject=task.uid, at=tx.now, by=by, reason=reason))


def _hopeless_need(tx: Tx, task: Task) -> bool:
    needed = (rows.task_or_none(tx, uid, lock=False) for uid in task.needs)
    return any(found is not None and found.state in UNMET for found in needed)


def _settle_run(tx: Tx, run_id: str, by: str) -> None:
    """A run ends with its last task, and goes on when one of them is restarted."""
    run = rows.run(tx, run_id)
    still_open = tx.rows(f"SELECT 1 FROM tasks WHERE run = ? AND shelf IN ({_OPEN_SHELVES}) LIMIT 1", run_id)
    subject = run_subject(run_id)
    if not still_open and run.state is RunState.ACTIVE:
        ends = tx.rows("SELECT uid, hash FROM tasks WHERE run = ? ORDER BY seq", run_id)
        heads = {uid: bytes(digest).hex() for uid, digest in ends}
        state = move_run(run_id, run.state, RunState.STOPPED if run.stopping else RunState.COMPLETED)
        ledger.append(
            tx,
            ev.RunEnded(subject=subject, at=tx.now, by=by, state=state, heads=heads),
            ev.AlertRaised(
                subject=subject, at=tx.now, by=by, alert=AlertKind.RUN_COMPLETED, reason=_told(tx, run, state)
            ),
        )
        rows.save_run(tx, replace(run, state=state, ended_at=tx.now))
    elif still_open and run.state is not RunState.ACTIVE:
        state = move_run(run_id, run.state, RunState.ACTIVE)
        ledger.append(tx, ev.RunResumed(subject=subject, at=tx.now, by=by))
        rows.save_run(tx, replace(run, state=state, stopping=False, ended_at=None))


def _told(tx: Tx, run: Run, state: RunState) -> str:
    """The end of a run in one sentence."""
    found = tx.rows("SELECT shelf, count(*) FROM tasks WHERE run = ? GROUP BY shelf ORDER BY shelf", run.id)
    return f"{run.name} is {state.value}: " + ", ".join(f"{n} {shelf}" for shelf, n in found)
