"""Rows: what stands, beside the events that made it so. Every write of a task goes through `save`."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache

import msgspec

from fleet.errors import Fenced, NotFound
from fleet.model.alert import ESCALATED, AlertKind
from fleet.model.run import Run
from fleet.model.session import Fence, Lane, Progress, Session, task_of
from fleet.model.states import IN_PROGRESS, LIVE, TaskState
from fleet.model.task import BLOCKS, Task
from fleet.store.engine import Tx

_encode = msgspec.json.Encoder().encode
_task = msgspec.json.Decoder(Task).decode

READY = "ready"  # the shelf of a queued task whose needs are all completed
UNVERIFIED = "unverified"  # the shelf of a partial task that waits for a verifier; every other shelf is a state
STATE_OF_SHELF: dict[str, str] = {READY: TaskState.QUEUED.value, UNVERIFIED: TaskState.PARTIAL.value}
PASSED = frozenset({TaskState.QUEUED, *IN_PROGRESS})  # states that are not counted at every step, but when asked


@cache
def _session() -> Callable[[str], Session]:
    """What reads a session, made when one is first read: commands that look at tasks only start faster without."""
    return msgspec.json.Decoder(Session).decode


def encode(value: object) -> str:
    """A value as a row keeps it."""
    return _encode(value).decode()


def facets(task: Task) -> list[str]:
    """The names under which a task is counted; the first is its state."""
    names = [str(task.state)]
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
    if not lock:
        rows = tx.rows("SELECT doc FROM tasks WHERE uid = ?", uid)
        return _task(rows[0][0]) if rows else None
    rows = tx.rows(f"SELECT doc, head, hash FROM tasks WHERE uid = ?{tx.for_update}", uid)
    return held(tx, *rows[0]) if rows else None


def held(tx: Tx, doc: str, head: int, digest: bytes) -> Task:
    """A task from a row that this transaction holds: nobody else can lengthen its chain."""
    found = _task(doc)
    tx.heads[found.uid] = (head, bytes(digest))
    return found


def task(tx: Tx, uid: str) -> Task:
    """A task, held until the end of the transaction."""
    found = task_or_none(tx, uid)
    if found is None:
        raise NotFound(f"no task `{uid}`", hint="`fleet tasks --status all` lists them")
    return found


def session(tx: Tx, session_id: str) -> Session:
    """A session: from its task's row while it is open, then as the events tell it."""
    found = live(tx, session_id)
    if found is not None:
        return found
    from fleet.store import ledger  # not at the top: most commands read no event, and start faster without them

    return ledger.session(tx, session_id)


def live(tx: Tx, session_id: str, *, lock: str = "") -> Session | None:
    """A session that is open."""
    rows = tx.rows(f"SELECT live FROM tasks WHERE uid = ?{lock}", task_of(session_id))
    found = _session()(rows[0][0]) if rows and rows[0][0] else None
    return found if found is not None and found.id == session_id else None


def owned(tx: Tx, fence: Fence) -> tuple[Task, Session]:
    """The task and session that a fence gives the right to write about."""
    rows = tx.rows(f"SELECT doc, head, hash, live FROM tasks WHERE uid = ?{tx.for_update}", task_of(fence.session))
    if rows and rows[0][3]:
        found = _session()(rows[0][3])
        if found.id == fence.session and found.epoch == fence.epoch:
            return held(tx, *rows[0][:3]), found
    known = session(tx, fence.session)
    if known.state in LIVE:
        raise Fenced(f"session {known.id} is at epoch {known.epoch}, not {fence.epoch}; nothing was written")
    raise Fenced(f"session {known.id} has ended ({known.state.value}); nothing was written")


def progress(tx: Tx, session_id: str) -> Progress:
    """How far the reading of a session has come."""
    rows = tx.rows("SELECT doc FROM progress WHERE session = ?", session_id)
    if rows:
        return msgspec.json.decode(rows[0][0], type=Progress)
    session(tx, session_id)  # there is one, and nothing of it has been read
    return Progress()


def save_progress(tx: Tx, session_id: str, after: Progress) -> None:
    """How far the reading of a session has come."""
    tx.run(
        "INSERT INTO progress (session, doc) VALUES (?, ?) ON CONFLICT (session) DO UPDATE SET doc = excluded.doc",
        session_id,
        encode(after),
    )


def insert_task(tx: Tx, new: Task, waiting: int, session: Session | None = None) -> None:
    """A task's first row, after its events."""
    tx.run(
        "INSERT INTO tasks (uid, run, task_id, waiting, shelf, priority, lane, not_before, updated_at, source,"
        " restarts, block, doc, head, hash, live) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
        new.uid,
        new.run,
        new.task_id,
        waiting,
        READY if new.state is TaskState.QUEUED and not waiting else _shelf(new),
        *_index(new),
        *tx.heads[new.uid],
        _open(session),
    )
    _count(tx, new.run, _counted(new), +1)


def save_task(tx: Tx, after: Task, session: Session | None) -> None:
    """A task's row after a transition, and in it the session that the transition was about, if it was about one.

    `waiting` follows the needs' states, not this task's events: see `wait`.
    """
    queued, about = after.state is TaskState.QUEUED, session is not None
    tx.run(
        _SAVE[queued, about],
        *(() if queued else (_shelf(after),)),
        *_index(after),
        *tx.heads[after.uid],
        *((_open(session),) if about else ()),
        after.uid,
    )


def count(tx: Tx, before: Task, after: Task) -> None:
    """The counts after a transition; said before its events, which carry them."""
    was, now = _counted(before), _counted(after)
    if was != now:
        _count(tx, before.run, was, -1)
        _count(tx, after.run, now, +1)


def _shelf(row: Task) -> str:
    return UNVERIFIED if row.awaits_verifier else str(row.state)


_QUEUED = "CASE WHEN waiting = 0 THEN 'ready' ELSE 'queued' END"
_SAVE = {  # by whether it is queued, and whether the transition is about a session
    (queued, about): f"UPDATE tasks SET shelf = {shelf}, priority = ?, lane = ?, not_before = ?, updated_at = ?,"
    f" source = ?, restarts = ?, block = ?, doc = ?, head = ?, hash = ?{live} WHERE uid = ?"
    for queued, shelf in ((True, _QUEUED), (False, "?"))
    for about, live in ((True, ", live = ?"), (False, ""))
}


def _open(session: Session | None) -> str | None:
    return encode(session) if session is not None and session.state in LIVE else None


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


def _counted(task: Task) -> list[str]:
    """The facets that are counted as they change. Every task passes through the others: they are found when asked."""
    if task.state not in PASSED:
        return facets(task)
    return facets(task)[1:] if task.restarts or task.escalated or task.block is not None else []


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
    if not tx.rows("SELECT 1 FROM links WHERE other = ? AND kind = ? LIMIT 1", uid, BLOCKS):
        return []  # as with most tasks
    rows = tx.rows(
        "SELECT doc, head, hash FROM tasks WHERE uid IN (SELECT task FROM links WHERE other = ? AND kind = ?)"
        f" ORDER BY seq{tx.for_update}",
        uid,
        BLOCKS,
    )
    return [held(tx, *row) for row in rows]


def run(tx: Tx, run_id: str, *, lock: bool = True) -> Run:
    """A run, held until the end of the transaction."""
    rows = tx.rows(f"SELECT doc FROM runs WHERE id = ?{tx.for_update if lock else ''}", run_id)
    if not rows:
        raise NotFound(f"no run `{run_id}`")
    return msgspec.json.decode(rows[0][0], type=Run)  # asked for seldom: a decoder at hand would cost every command


def save_run(tx: Tx, after: Run) -> None:
    """A run's row after a transition."""
    tx.run("UPDATE runs SET state = ?, doc = ? WHERE id = ?", after.state.value, encode(after), after.id)
