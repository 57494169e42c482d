"""The transactions of one connection to a SQLite database."""

from __future__ import annotations

from collections.abc import Callable, Iterable

import apsw

from fleet.model.states import IN_PROGRESS, TaskState
from fleet.store.engine import Row, Value
from fleet.store.leases import Leases
from fleet.store.sqlite import counts

_EVENT = "INSERT INTO events (subject, prev, kind, at, hash, body, counted) VALUES (?, ?, ?, ?, ?, ?, ?)"
_STATES = frozenset(state.value for state in TaskState)
_ACTIVE = "SELECT shelf, count(*) FROM tasks WHERE shelf IN ({})".format(
    ", ".join(f"'{state.value}'" for state in sorted(IN_PROGRESS))
)


class SqliteTx:
    """One transaction, and after `begin` the next."""

    __slots__ = ("_connection", "_execute", "_leases", "_settle", "counted", "heads", "newest", "now", "present")
    for_update = ""  # the whole database is held
    skip_locked = ""

    def __init__(
        self, cursor: apsw.Cursor, now: int, leases: Leases, settle: Callable[[int], None] = lambda _: None
    ) -> None:
        self._connection = cursor.connection
        self._execute = cursor.execute  # one cursor for all: every answer is fetched whole
        self.now = now
        self._leases = leases
        self._settle = settle  # an event that is to be told on
        self.present = leases.present
        self.begin()

    def begin(self) -> None:
        """A new transaction: of what it holds and writes, nothing is known yet."""
        self.heads: dict[str, tuple[int, bytes]] = {}
        self.counted: counts.Counts = {}  # what no event has been told yet
        self.newest = 0  # the sequence of the last event

    def rows(self, sql: str, *values: Value) -> list[Row]:
        return self._execute(sql, values).fetchall()

    def run(self, sql: str, *values: Value) -> int:
        self._execute(sql, values)
        return self._connection.changes()

    def event(self, *values: Value) -> int:
        counted = None
        if self.counted:
            counted, self.counted = counts.encode(self.counted), {}
        self._execute(_EVENT, (*values, counted))
        newest = self.newest = self._connection.last_insert_rowid()
        return newest

    def many(self, sql: str, values: Iterable[tuple[Value, ...]]) -> None:
        self._connection.executemany(sql, values)

    def exclusively(self, what: str) -> None:
        """Every write transaction is alone already."""

    def count(self, scope: str, key: str, by: int) -> None:
        self.counted[scope, key] = self.counted.get((scope, key), 0) + by

    def counts(self, scope: str) -> dict[str, int]:
        """What is kept, what is in progress (never more than there are slots), and the rest: that is queued."""
        kept = counts.of_scope(self._connection, scope)
        if scope == "*":
            total = self.rows("SELECT max(seq) FROM tasks")  # they are numbered from 1, and none is ever deleted
            kept |= dict(self.rows(f"{_ACTIVE} GROUP BY shelf"))
        else:
            total = self.rows("SELECT count(*) FROM tasks WHERE run = ?", scope)
            kept |= dict(self.rows(f"{_ACTIVE} AND run = ? GROUP BY shelf", scope))
        queued = (total[0][0] or 0) - sum(n for key, n in kept.items() if key in _STATES)
        return kept | ({TaskState.QUEUED.value: queued} if queued else {})

    def lease(self, supervisor: str, seconds: float) -> None:  # noqa: ARG002  # a file lock has no end in time
        self._leases.take(supervisor)

    def holds(self, supervisor: str) -> bool:
        return self._leases.holds(supervisor)

    def lapsed(self, supervisor: str) -> bool:
        return not self._leases.is_held(supervisor)

    released = lapsed

    def silent_ms(self, supervisor: str) -> int | None:
        return self._leases.silent_ms(supervisor)

    def place(self, seq: int) -> tuple[bytes, str] | None:
        found = self.rows("SELECT hash FROM events WHERE seq = ?", seq)
        return (bytes(found[0][0]), str(seq)) if found else None

    def feed(self, after: str, limit: int) -> tuple[list[Row], str]:
        start = int(after or 0)
        sql = "SELECT seq, hash, body, CAST(seq AS TEXT) FROM events WHERE seq > ? ORDER BY seq LIMIT ?"
        found = self.rows(sql, start, limit)
        if found:
            start = found[-1][0]
            self._settle(start)
        return found, str(start)

    def end(self) -> str:
        newest = self.rows("SELECT max(seq) FROM events")[0][0] or 0
        self._settle(newest)
        return str(newest)
