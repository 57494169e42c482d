"""Every question that is put to the store, as queries on one snapshot."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from typing import TypeVar

import msgspec

from fleet.model.intent import Intent
from fleet.model.session import Lane, Session, goes_by, task_of
from fleet.model.states import IN_PROGRESS, TaskState
from fleet.model.supervisor import Supervisor
from fleet.model.task import BLOCKS, Task
from fleet.store.engine import Row, Tx
from fleet.store.rows import READY, STATE_OF_SHELF, UNVERIFIED

T = TypeVar("T")
_task = msgspec.json.Decoder(Task).decode
LIMIT = 1 << 31
ACTIVE_RUNS = "SELECT doc FROM runs WHERE state = 'active' ORDER BY seq DESC"  # in the words of its index
ENOUGH = 6  # of ids that fit a short form: more are not listed


def decode_all(rows: list[tuple[str, ...]], kind: type[T]) -> list[T]:
    """Documents of one kind, from rows whose first column they are."""
    decode = msgspec.json.Decoder(kind).decode
    return [decode(row[0]) for row in rows]


def supervisors(tx: Tx, *, present: bool) -> list[Supervisor]:
    """Those whose lease holds; or all that ever joined."""
    where = "WHERE left_at IS NULL " if present else ""
    found = decode_all(tx.rows(f"SELECT doc FROM supervisors {where}ORDER BY id"), Supervisor)
    return [known for known in found if not (present and tx.lapsed(known.id))]


def ready(tx: Tx, limit: int, now: int, run: str | None = None) -> list[Task]:
    """What could start now, the most urgent and oldest first."""
    return [_task(row[2]) for _, row in shelf(tx, READY, limit, run=run, not_before=now)[:limit]]


def moving(tx: Tx, run: str) -> bool:
    """Whether something of a run is in progress, or will be without a person: the index leads to it."""
    shelves = ", ".join(f"'{name}'" for name in sorted([*STATE_OF_SHELF, *IN_PROGRESS]))
    return bool(tx.rows(f"SELECT 1 FROM tasks WHERE run = ? AND shelf IN ({shelves}) LIMIT 1", run))


def waiting(tx: Tx, limit: int) -> list[Task]:
    """Queued tasks that wait for others."""
    return [_task(row[2]) for _, row in shelf(tx, TaskState.QUEUED.value, limit)[:limit]]


def tasks(
    tx: Tx,
    states: Collection[TaskState] | None,
    *,
    run: str | None,
    limit: int,
    newest_first: bool,
    after: str | None = None,
) -> list[Task]:
    """Tasks in some states, the most urgent and oldest first; of any state (None), by age.

    With `after`, a task's uid or "" for the beginning, they are those that follow, by age whatever their state.
    """
    if states is not None and not newest_first and after is None:
        found = [one for name in _shelves(states) for one in shelf(tx, name, limit, run=run)]
        return [_task(row[2]) for _, row in sorted(found, key=_urgency)[:limit]]
    where, values = ("run = ?", [run]) if run is not None else ("1 = 1", [])
    if states is not None:
        shelves = sorted(_shelves(states))
        where += f" AND shelf IN ({', '.join('?' * len(shelves))})"
        values += shelves
    if after:
        where += f" AND seq {'<' if newest_first else '>'} (SELECT seq FROM tasks WHERE uid = ?)"
        values.append(after)
    order = "DESC" if newest_first else "ASC"
    rows = tx.rows(f"SELECT doc FROM tasks WHERE {where} ORDER BY seq {order} LIMIT ?", *values, limit)
    return [_task(row[0]) for row in rows]


def _urgency(one: tuple[Lane, Row]) -> Row:
    return one[1][:2]


def _shelves(states: Collection[TaskState]) -> set[str]:
    names = {state.value for state in states}
    return names | {shelf for shelf, state in STATE_OF_SHELF.items() if state in names}


def shelf(
    tx: Tx,
    name: str,
    limit: int,
    *,
    run: str | None = None,
    not_before: int | None = None,
    lock: str = "",
    among: Collection[Lane] | None = None,
) -> list[tuple[Lane, Row]]:
    """The tasks on a shelf, the most urgent and oldest first: up to `limit` of each lane, or of each `among` them.

    Each is (priority, seq, doc, head, hash).
    """
    due, times = ("", ()) if not_before is None else (" AND (not_before IS NULL OR not_before <= ?)", (not_before,))
    sql = (
        f"SELECT priority, seq, doc, head, hash FROM tasks WHERE shelf = ? AND lane = ?{due}"
        f" ORDER BY priority, seq LIMIT ?{lock}"
    )
    found: list[tuple[Lane, Row]] = []
    for one in lanes(tx, name) if among is None else among:
        if run is None or one.run == run:
            found += [(one, row) for row in tx.rows(sql, name, one.key, *times, limit)]
    return sorted(found, key=_urgency)


def _end(shelf: str, which: str) -> str:
    return f"(SELECT {which}(lane) FROM tasks WHERE shelf = '{shelf}')"


def _ends(shelf: str) -> str:
    return f"{_end(shelf, 'min')}, {_end(shelf, 'max')}"


_CLAIMED_FROM = f"SELECT {_end(UNVERIFIED, 'min')}, {_ends(READY)}"


def claimable(tx: Tx) -> Iterator[tuple[str, list[Lane]]]:
    """The shelves that a claim takes from, first those that it serves first, and the lanes that have tasks there."""
    ((unverified, *ends),) = tx.rows(_CLAIMED_FROM)
    if unverified is not None:  # seldom
        yield UNVERIFIED, lanes(tx, UNVERIFIED)
    yield READY, _between(tx, READY, *ends)


def lanes(tx: Tx, name: str) -> list[Lane]:
    """The lanes of a shelf."""
    return _between(tx, name, *tx.rows(f"SELECT {_ends(name)}")[0])


def _between(tx: Tx, name: str, first: str | None, last: str | None) -> list[Lane]:
    """Every lane is found by one step through the index."""
    if first == last:  # as in most homes: there is one, or none
        return [] if first is None else [Lane.parse(first)]
    found = tx.rows(
        "WITH RECURSIVE step (lane) AS (SELECT min(lane) FROM tasks WHERE shelf = ? UNION ALL"
        " SELECT (SELECT min(lane) FROM tasks WHERE shelf = ? AND lane > step.lane) FROM step WHERE lane IS NOT NULL)"
        " SELECT lane FROM step WHERE lane IS NOT NULL",
        name,
        name,
    )
    return [Lane.parse(row[0]) for row in found]


def matching(tx: Tx, word: str, prefix: str) -> list[str]:
    """The uids that a word may stand for: the whole, then another name of the task, then a beginning or an end."""
    if not word:
        return []  # every id begins with nothing
    if tx.rows("SELECT 1 FROM tasks WHERE uid = ?", word):
        return [word]
    named = [row[0] for row in tx.rows("SELECT uid FROM tasks WHERE uid = ?", f"{prefix}-{word}")]
    named += by_other_names(tx, word)
    if named:
        return sorted(set(named))
    found: set[str] = set()
    for start in (word, f"{prefix}-{word}"):
        rows = tx.rows(
            "SELECT uid FROM tasks WHERE uid >= ? AND uid < ? ORDER BY uid LIMIT ?", start, start + "~", ENOUGH
        )
        found.update(row[0] for row in rows)
    if not found:
        sql = "SELECT uid FROM tasks WHERE substr(uid, length(uid) - ?) = ? LIMIT ?"
        rows = tx.rows(sql, len(word) - 1, word, ENOUGH)
        found.update(row[0] for row in rows)
    return sorted(found)


def by_other_names(tx: Tx, word: str) -> list[str]:
    """The uids of tasks whose session, busy worker, or id in a spec this is."""
    if any(goes_by(found.id, word) for found in sessions(tx, task=task_of(word))):
        return [task_of(word)]
    run, slash, task_id = word.rpartition("/")
    if slash:
        rows = tx.rows("SELECT uid FROM tasks WHERE run = ? AND task_id = ?", run, task_id)
        return [row[0] for row in rows]
    busy = [session.task for session in _live(tx) if word in (session.worker, session.worker.rpartition("#")[0])]
    if busy:
        return busy[:ENOUGH]
    sql = "SELECT t.uid FROM runs r JOIN tasks t ON t.run = r.id AND t.task_id = ? ORDER BY t.seq DESC LIMIT ?"
    return [row[0] for row in tx.rows(sql, word, ENOUGH)]


def dependents(tx: Tx, uid: str) -> list[tuple[str, str]]:
    """The tasks with a relation to this one, and its kind."""
    return [(row[0], row[1]) for row in tx.rows("SELECT task, kind FROM links WHERE other = ? ORDER BY task", uid)]


def unmet(tx: Tx, uid: str) -> list[tuple[str, str]]:
    """What a task waits for: the needs that are not completed, and their states."""
    rows = tx.rows(
        "SELECT t.uid, t.shelf FROM links l JOIN tasks t ON t.uid = l.other"
        " WHERE l.task = ? AND l.kind = ? AND t.shelf <> 'completed' ORDER BY t.seq",
        uid,
        BLOCKS,
    )
    return [(uid, STATE_OF_SHELF.get(shelf, str(shelf))) for uid, shelf in rows]


def sessions(tx: Tx, *, task: str | None = None, live: bool = False, supervisor: str | None = None) -> list[Session]:
    """Sessions of a task, or those that are live, or those of a supervisor; oldest first."""
    if live:
        found = _live(tx)
    else:
        from fleet.store import ledger  # not at the top: most commands read no event, and start faster without them

        found = ledger.sessions(tx, task)
    return [
        one
        for one in found
        if (task is None or one.task == task) and (supervisor is None or one.supervisor == supervisor)
    ]


def _live(tx: Tx) -> list[Session]:
    """The sessions of the tasks that are in progress: no other session is live."""
    shelves = ", ".join(f"'{state.value}'" for state in sorted(IN_PROGRESS))
    found = decode_all(tx.rows(f"SELECT live FROM tasks WHERE shelf IN ({shelves}) AND live IS NOT NULL"), Session)
    return sorted(found, key=lambda session: session.claimed_at)


def orphans(tx: Tx) -> list[Session]:
    """Live sessions whose supervisor has left."""
    left = {row[0] for row in tx.rows("SELECT id FROM supervisors WHERE left_at IS NOT NULL")}
    return [session for session in _live(tx) if session.supervisor in left]


def intents_of(tx: Tx, target: str) -> list[Intent]:
    """What was asked about a task, oldest first."""
    return decode_all(tx.rows("SELECT doc FROM intents WHERE target = ? ORDER BY seq", target), Intent)
