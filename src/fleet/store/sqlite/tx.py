"""One transaction of a SQLite database."""

from __future__ import annotations

from collections.abc import Iterable

import apsw

from fleet.store.engine import Row, Value
from fleet.store.leases import Leases


class SqliteTx:
    """One transaction."""

    for_update = ""  # the whole database is held
    skip_locked = ""

    def __init__(self, connection: apsw.Connection, now: int, leases: Leases) -> None:
        self._connection = connection
        self.now = now
        self._leases = leases
        self.counted: dict[tuple[str, str], int] = {}  # written with the commit, once for all that it commits

    def rows(self, sql: str, *values: Value) -> list[Row]:
        return self._connection.execute(sql, values).fetchall()

    def run(self, sql: str, *values: Value) -> int:
        self._connection.execute(sql, values)
        return self._connection.changes()

    def insert(self, sql: str, *values: Value) -> int:
        self._connection.execute(sql, values)
        return self._connection.last_insert_rowid()

    def many(self, sql: str, values: Iterable[tuple[Value, ...]]) -> None:
        self._connection.executemany(sql, values)

    def exclusively(self, what: str) -> None:
        """Every write transaction is alone already."""

    def count(self, scope: str, key: str, by: int) -> None:
        self.counted[scope, key] = self.counted.get((scope, key), 0) + by

    def counts(self, scope: str) -> dict[str, int]:
        return dict(self.rows("SELECT key, n FROM counts WHERE scope = ? AND n <> 0", scope))

    def lease(self, supervisor: str, seconds: float) -> None:  # noqa: ARG002  # a file lock has no end in time
        self._leases.take(supervisor)

    def lapsed(self, supervisor: str) -> bool:
        return not self._leases.is_held(supervisor)

    def place(self, seq: int) -> tuple[bytes, str] | None:
        found = self.rows("SELECT hash FROM events WHERE seq = ?", seq)
        return (bytes(found[0][0]), str(seq)) if found else None

    def feed(self, after: str, limit: int) -> tuple[list[Row], str]:
        start = int(after or 0)
        found = self.rows("SELECT seq, hash, body FROM events WHERE seq > ? ORDER BY seq LIMIT ?", start, limit)
        return found, str(found[-1][0] if found else start)
