"""The verbs of sessions: claim, started, stopping, record, finish, retry, postpone, pause, adopt, abandon.

Those of a supervisor, but the claims, are fenced; a person may abandon.
"""

from __future__ import annotations

from collections.abc import Sequence

from fleet.errors import Conflict, Fenced, LeaseLost
from fleet.model import event as ev
from fleet.model.alert import Alert, of_block
from fleet.model.host import is_local
from fleet.model.receipt import Awaits, Verdict
from fleet.model.session import (
    Claimed,
    Defaults,
    Ending,
    Fence,
    Lane,
    Progress,
    Session,
    Slot,
    accepts,
    first_fit,
    fits,
    seal_of,
    session_id,
    task_of,
)
from fleet.model.states import LIVE, STATE_OF_RESULT, Result, SessionState
from fleet.model.task import Block, Task, effective
from fleet.store import asks, rows
from fleet.store.engine import Tx
from fleet.store.letters import letters
from fleet.store.room import Rooms
from fleet.store.transition import apply, open_receipt, raised, receipt_from

SEAL_LETTERS = 6


def claim(tx: Tx, supervisor: str, slots: Sequence[Slot], defaults: Defaults) -> list[Claimed]:
    """Fill the slots, by priority, then age: with results that wait for a verifier, then with ready tasks.

    Each task is given to one claimer only, and so is each slot of a declared worker. A run keeps to its own bounds,
    however many slots there are.
    """
    require_lease(tx, supervisor)
    free = list(slots)
    rooms = Rooms(tx)
    claimed = []
    for shelf, lanes in asks.claimable(tx):
        fitting = [lane for lane in lanes if first_fit(free, lane, defaults) is not None]
        if not fitting:
            continue
        free = rooms.not_in_use(free)
        for lane, row in asks.shelf(tx, shelf, len(free), among=fitting, not_before=tx.now, lock=tx.skip_locked):
            for slot in fits(free, lane, defaults):
                placed = rooms.place(lane, slot)
                if placed is not None:
                    free.remove(slot)
                    claimed.append(_take(tx, rows.held(tx, *row[2:]), placed, supervisor, defaults))
                    break
            if not free:
                return claimed
    return claimed


def claim_verify(tx: Tx, supervisor: str, uid: str, slot: Slot, defaults: Defaults) -> Claimed | None:
    """Take one task for its verifier, if it waits for one now and the slot can take it."""
    require_lease(tx, supervisor)
    task = rows.task(tx, uid)
    due = task.not_before is None or task.not_before <= tx.now
    if not (task.awaits_verifier and due and accepts(slot, Lane.of(task), defaults)):
        return None
    return _take(tx, task, slot, supervisor, defaults)


def started(tx: Tx, fence: Fence, pid: int | None, *, by: str) -> Session:
    """The agent's process is there. Saying it twice changes nothing."""
    task, session = rows.owned(tx, fence)
    if session.state is SessionState.RUNNING and session.pid == pid:
        return session
    apply(tx, task, ev.SessionStarted(subject=task.uid, at=tx.now, by=by, session=session.id, pid=pid), session=session)
    return rows.session(tx, session.id)


def stopping(tx: Tx, fence: Fence, reason: str, *, by: str) -> Session:
    """The agent was told to end. Saying it twice changes nothing."""
    task, session = rows.owned(tx, fence)
    if session.state is SessionState.STOPPING:
        return session
    event = ev.SessionStopping(subject=task.uid, at=tx.now, by=by, session=session.id, reason=reason)
    apply(tx, task, event, session=session)
    return rows.session(tx, session.id)


def record(tx: Tx, fence: Fence, progress: Progress) -> None:
    """Counters, parser state and cursor, together. Not an event: the totals are in the session's end."""
    found = rows.live(tx, fence.session, lock=tx.for_update)
    if found is None or found.epoch != fence.epoch:
        raise Fenced(f"session {fence.session} is not ours at epoch {fence.epoch}; nothing was written")
    rows.save_progress(tx, found.id, progress)


def warn(tx: Tx, fence: Fence, progress: Progress, alert: Alert, *, by: str) -> None:
    """What a person should hear of a live session, with its progress. Nothing else changes."""
    task, session = rows.owned(tx, fence)
    rows.save_progress(tx, session.id, progress)
    apply(tx, task, *raised(task, (alert,), at=tx.now, by=by, session=session), session=session)


def finish(
    tx: Tx,
    fence: Fence,
    ending: Ending,
    verdict: Verdict,
    *,
    by: str,
    charged: bool = False,
    alerts: Sequence[Alert] = (),
) -> Task:
    """The session's end, the receipt and the task's next state, in one step."""
    if ending.state is SessionState.LOST and verdict.result is Result.PASS:
        raise Conflict(f"session {fence.session} is lost; it cannot pass")
    if ending.outcome != "ok" and verdict.result is Result.PASS:
        raise Conflict(f"session {fence.session} ended as {ending.outcome}; it cannot pass")
    task, session = rows.owned(tx, fence)
    receipt = receipt_from(task, verdict, session=session, at=tx.now, settles=open_receipt(tx, task))
    state = STATE_OF_RESULT[verdict.result]
    settled = ev.TaskSettled(subject=task.uid, at=tx.now, by=by, state=state, receipt=receipt, charged=charged)
    told = raised(task, alerts, at=tx.now, by=by, session=session)
    return apply(tx, task, _ended(tx, session, ending, by), settled, *told, session=session)


def retry(
    tx: Tx,
    fence: Fence,
    ending: Ending,
    verdict: Verdict | None,
    *,
    reason: str,
    not_before: int | None,
    charged: bool,
    restart: bool,
    alerts: Sequence[Alert],
    by: str,
) -> Task:
    """The session ended and the task goes back to the queue: a retry is charged, our own stop is not."""
    task, session = rows.owned(tx, fence)
    settles = open_receipt(tx, task)
    receipt = receipt_from(task, verdict, session=session, at=tx.now, settles=settles) if verdict else None
    requeued = ev.TaskRequeued(
        subject=task.uid,
        at=tx.now,
        by=by,
        reason=reason,
        not_before=not_before,
        charged=charged,
        restart=restart,
        receipt=receipt,
    )
    told = raised(task, alerts, at=tx.now, by=by, session=session)
    return apply(tx, task, _ended(tx, session, ending, by), requeued, *told, session=session)


def postpone(
    tx: Tx, fence: Fence, ending: Ending, awaits: Awaits, *, reason: str, not_before: int | None, by: str
) -> Task:
    """A verifier's session ended without a verdict: the task is partial again, and it is run later."""
    task, session = rows.owned(tx, fence)
    if session.kind != "verify":
        raise Conflict(f"session {session.id} verifies nothing; it cannot be postponed")
    unsettled = ev.TaskUnsettled(
        subject=task.uid, at=tx.now, by=by, reason=reason, awaits=awaits, not_before=not_before
    )
    return apply(tx, task, _ended(tx, session, ending, by), unsettled, session=session)


def pause(
    tx: Tx,
    fence: Fence,
    ending: Ending,
    kind: str,
    text: str,
    *,
    by: str,
    asked_by: str,
    alerts: Sequence[Alert] = (),
) -> Task:
    """The session ended and the task waits for a person: a question, an interrupt. No attempt is used."""
    task, session = rows.owned(tx, fence)
    block = Block(kind=kind, text=text, at=tx.now, by=asked_by or by)
    blocked = ev.TaskBlocked(subject=task.uid, at=tx.now, by=by, block=block)
    told = raised(task, (*alerts, *of_block(kind, text)), at=tx.now, by=by, session=session)
    return apply(tx, task, _ended(tx, session, ending, by), blocked, *told, session=session)


def abandon(tx: Tx, uid: str, reason: str, *, by: str) -> Task:
    """A person says that the session of a task is lost: its host does not answer. Another attempt may start.

    Whatever its holder still writes is refused, as it is of any session that has ended.
    """
    task = rows.task(tx, uid)
    if task.session is None:
        raise Conflict(f"task {uid} is {task.state.value}; it has no session to abandon")
    session = rows.session(tx, task.session)
    usage = rows.progress(tx, session.id).usage
    ended = _ended(tx, session, Ending(outcome="abandoned", state=SessionState.LOST, usage=usage), by)
    if session.kind == "verify" and task.awaits is not None:  # its work is done; only the verdict is looked for again
        again: ev.Event = ev.TaskUnsettled(subject=uid, at=tx.now, by=by, reason=reason, awaits=task.awaits)
    else:
        again = ev.TaskRequeued(subject=uid, at=tx.now, by=by, reason=reason, restart=True)
    return apply(tx, task, ended, again, session=session)


def adopt(tx: Tx, session: str, supervisor: str) -> Session:
    """Take over a session whose holder is gone. The epoch rises: whatever the old holder still writes is refused."""
    require_lease(tx, supervisor)
    task = rows.task(tx, task_of(session))
    found = rows.session(tx, session)
    if found.state not in LIVE:
        raise Conflict(f"session {session} has ended")
    if found.supervisor == supervisor:
        return found
    if not _is_gone(tx, found.supervisor):
        raise Conflict(f"session {session} belongs to {found.supervisor}, whose lease holds")
    event = ev.SessionAdopted(
        subject=task.uid, at=tx.now, by=supervisor, session=session, epoch=task.epoch + 1, supervisor=supervisor
    )
    apply(tx, task, event, session=found)
    return rows.session(tx, session)


def require_lease(tx: Tx, supervisor: str) -> None:
    """A supervisor acts only while its lease holds."""
    if supervisor in tx.present:
        return
    if _is_gone(tx, supervisor):
        raise LeaseLost(f"supervisor {supervisor} has no lease")
    if tx.holds(supervisor):
        tx.present.add(supervisor)


def _is_gone(tx: Tx, supervisor: str) -> bool:
    found = tx.rows("SELECT left_at FROM supervisors WHERE id = ?", supervisor)
    return not found or found[0][0] is not None or tx.released(supervisor)


def _ended(tx: Tx, session: Session, ending: Ending, by: str) -> ev.SessionEnded:
    return ev.SessionEnded(
        subject=session.task,
        at=tx.now,
        by=by,
        session=session.id,
        state=ending.state,
        outcome=ending.outcome,
        usage=ending.usage,
        ran_ms=ending.ran_ms,
    )


def _seal(tx: Tx, task: Task) -> str:
    """The same for all sessions of a task elsewhere: each finds what the one before it left there."""
    for earlier in reversed(asks.sessions(tx, task=task.uid)) if task.epoch else ():
        if not is_local(earlier.host):
            return seal_of(earlier.id)
    return letters(SEAL_LETTERS)


def _take(tx: Tx, task: Task, slot: Slot, supervisor: str, defaults: Defaults) -> Claimed:
    epoch = task.epoch + 1
    who = task.awaits or task
    chosen = effective(who.coder, who.model, default_coder=defaults.coder, default_model=defaults.model)
    session = Session(
        id=session_id(task.uid, epoch, "" if slot.here else _seal(tx, task)),
        task=task.uid,
        run=task.run,
        kind="verify" if task.awaits else "work",
        epoch=epoch,
        worker=slot.worker,
        host=slot.host,
        supervisor=supervisor,
        coder=chosen.coder,
        model=chosen.model,
        claimed_at=tx.now,
    )
    after = apply(tx, task, ev.TaskClaimed(subject=task.uid, at=tx.now, by=supervisor, session=session))
    return Claimed(after, session)
