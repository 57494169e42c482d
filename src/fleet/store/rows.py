"""Rows: what stands, beside the events that made it so. Every write of a task goes through `save`."""

from __future__ import annotations

import msgspec

from fleet.errors import Fenced, NotFound
from fleet.model.alert import ESCALATED, AlertKind
from fleet.model.receipt import Receipt
from fleet.model.run import Run
from fleet.model.session import Fence, Lane, Progress, Session, task_of
from fleet.model.states import LIVE, TaskState
from fleet.model.task import BLOCKS, Task
from fleet.store.engine import Tx

_encode = msgspec.json.Encoder().encode
_task = msgspec.json.Decoder(Task).decode
_session = msgspec.json.Decoder(Session).decode
_run = msgspec.json.Decoder(Run).decode
_receipt = msgspec.json.Decoder(Receipt).decode

READY = "ready"  # the shelf of a queued task whose needs are all completed
UNVERIFIED = "unverified"  # the shelf of a partial task that waits for a verifier; every other shelf is a state
STATE_OF_SHELF: dict[str, str] = {READY: TaskState.QUEUED.value, UNVERIFIED: TaskState.PARTIAL.value}


def encode(value: object) -> str:
    """A value as a row keeps it."""
    return _encode(value).decode()


def decode_task(doc: str) -> Task:
    """A task from its row."""
    return _task(doc)


def facets(task: Task) -> list[str]:
    """The names under which a task is counted."""
    names = [task.state.value]
    if task.state is TaskState.FAILED and task.source:
        names.append(f"{task.source.value}_failed")
    if task.restarts:
        names.append("restarted")
    if held := counted_block(held_for(task)):
        names.append(held)
    return names


def held_for(task: Task) -> str | None:
    """What a task is held back for; one that failed may be raised to a person all the same."""
    if task.block is not None:
        return task.block.kind
    return AlertKind.NEEDS_HUMAN.value if task.escalated else None


def counted_block(kind: str | None) -> str | None:
    """The name under which what holds a task back is counted."""
    return "escalated" if kind in ESCALATED else "interrupted" if kind == "interrupted" else None


def task_or_none(tx: Tx, uid: str, *, lock: bool = True) -> Task | None:
    """A task, held until the end of the transaction."""
    rows = tx.rows(f"SELECT doc FROM tasks WHERE uid = ?{tx.for_update if lock else ''}", uid)
    return _task(rows[0][0]) if rows else None


def task(tx: Tx, uid: str) -> Task:
    """A task, held until the end of the transaction."""
    found = task_or_none(tx, uid)
    if found is None:
        raise NotFound(f"no task `{uid}`")
    return found


def session(tx: Tx, session_id: str) -> Session:
    """A session. Its task's row is the lock."""
    rows = tx.rows("SELECT doc FROM sessions WHERE id = ?", session_id)
    if not rows:
        raise NotFound(f"no session `{session_id}`")
    return _session(rows[0][0])


def owned(tx: Tx, fence: Fence) -> tuple[Task, Session]:
    """The task and session that a fence gives the right to write about."""
    its_task = task(tx, task_of(fence.session))
    its_session = session(tx, fence.session)
    if its_session.state not in LIVE:
        raise Fenced(f"session {fence.session} has ended ({its_session.state.value}); nothing was written")
    if its_session.epoch != fence.epoch or its_task.session != fence.session:
        raise Fenced(f"session {fence.session} is at epoch {its_session.epoch}, not {fence.epoch}; nothing was written")
    return its_task, its_session


def insert_task(tx: Tx, new: Task, waiting: int) -> None:
    """A task's first row."""
    tx.run(
        "INSERT INTO tasks (uid, run, task_id, waiting, shelf, priority, lane, not_before, updated_at, source,"
        " restarts, block, doc) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
        new.uid,
        new.run,
        new.task_id,
        waiting,
        READY if new.state is TaskState.QUEUED and not waiting else _shelf(new),
        *_index(new),
    )
    _count(tx, new.run, facets(new), +1)


def save_task(tx: Tx, before: Task, after: Task) -> None:
    """A task's row after a transition. `waiting` follows the needs' states, not this task's events: see `wait`."""
    shelf = "CASE WHEN waiting = 0 THEN 'ready' ELSE 'queued' END" if after.state is TaskState.QUEUED else "?"
    tx.run(
        f"UPDATE tasks SET shelf = {shelf}, priority = ?, lane = ?, not_before = ?, updated_at = ?, source = ?,"
        " restarts = ?, block = ?, doc = ? WHERE uid = ?",
        *(() if after.state is TaskState.QUEUED else (_shelf(after),)),
        *_index(after),
        after.uid,
    )
    was, now = facets(before), facets(after)
    if was != now:
        _count(tx, before.run, was, -1)
        _count(tx, after.run, now, +1)


def _shelf(row: Task) -> str:
    by_session = row.awaits is not None and row.awaits.kind != "manual"
    return UNVERIFIED if row.state is TaskState.PARTIAL and by_session else row.state.value


def _index(row: Task) -> tuple[str | int | None, ...]:
    return (
        row.priority,
        Lane.of(row).key,
        row.not_before,
        row.updated_at,
        row.source.value if row.source else None,
        row.restarts,
        held_for(row),
        encode(row),
    )


def _count(tx: Tx, run_id: str | None, names: list[str], by: int) -> None:
    for name in names:
        tx.count("*", name, by)
        if run_id:
            tx.count(run_id, name, by)


def wait(tx: Tx, uid: str, by: int) -> None:
    """A need of this task became met or unmet."""
    tx.run(
        "UPDATE tasks SET waiting = waiting + ?, shelf = CASE WHEN shelf NOT IN ('queued', 'ready') THEN shelf"
        " WHEN waiting + ? = 0 THEN 'ready' ELSE 'queued' END WHERE uid = ?",
        by,
        by,
        uid,
    )


def dependents(tx: Tx, uid: str) -> list[Task]:
    """The tasks that need this one, held until the end of the transaction, always in the same order."""
    rows = tx.rows(
        "SELECT doc FROM tasks WHERE uid IN (SELECT task FROM links WHERE other = ? AND kind = ?)"
        f" ORDER BY seq{tx.for_update}",
        uid,
        BLOCKS,
    )
    return [_task(row[0]) for row in rows]


def insert_session(tx: Tx, new: Session, seq: int) -> None:
    """A session's first row."""
    tx.run(
        "INSERT INTO sessions (id, seq, state, epoch, supervisor, progress, doc) VALUES (?, ?, ?, ?, ?, ?, ?)",
        new.id,
        seq,
        new.state.value,
        new.epoch,
        new.supervisor,
        encode(Progress()),
        encode(new),
    )


def save_session(tx: Tx, after: Session) -> None:
    """A session's row after a transition."""
    tx.run(
        "UPDATE sessions SET state = ?, epoch = ?, supervisor = ?, doc = ? WHERE id = ?",
        after.state.value,
        after.epoch,
        after.supervisor,
        encode(after),
        after.id,
    )


def receipt(tx: Tx, uid: str, receipt_id: str) -> Receipt:
    """A receipt of a task."""
    found = tx.rows("SELECT doc FROM receipts WHERE seq IN (SELECT seq FROM events WHERE subject = ?)", uid)
    for row in found:
        known = _receipt(row[0])
        if known.id == receipt_id:
            return known
    raise NotFound(f"no receipt `{receipt_id}`")


def insert_receipt(tx: Tx, new: Receipt, seq: int) -> None:
    """A receipt's only row."""
    tx.run(
        "INSERT INTO receipts (seq, task, run, doc) VALUES (?, ?, ?, ?)",
        seq,
        new.task,
        new.run,
        encode(new),
    )


def run(tx: Tx, run_id: str, *, lock: bool = True) -> Run:
    """A run, held until the end of the transaction."""
    rows = tx.rows(f"SELECT doc FROM runs WHERE id = ?{tx.for_update if lock else ''}", run_id)
    if not rows:
        raise NotFound(f"no run `{run_id}`")
    return _run(rows[0][0])


def save_run(tx: Tx, after: Run) -> None:
    """A run's row after a transition."""
    tx.run("UPDATE runs SET state = ?, doc = ? WHERE id = ?", after.state.value, encode(after), after.id)
