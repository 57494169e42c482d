"""One transaction of a PostgreSQL database."""

from __future__ import annotations

from collections.abc import Iterable
from functools import lru_cache
from typing import LiteralString

import psycopg

from fleet.model.states import TaskState
from fleet.store.engine import Row, Value
from fleet.store.rows import STATE_OF_SHELF, counted_block

NOW = "CAST(extract(epoch FROM clock_timestamp()) * 1000 AS BIGINT)"
LONGEST_LEASE_MS = 600_000  # none is longer, unless the clock was set


@lru_cache(maxsize=256)
def _dialect(text: str) -> LiteralString:
    """The same SQL, with psycopg's word for a value."""
    return text.replace("?", "%s")


class PostgresTx:
    """One transaction."""

    def __init__(self, connection: psycopg.Connection[Row], now: int, *, writing: bool) -> None:
        self._connection = connection
        self.now = now
        self.changed = False
        self.heads: dict[str, tuple[int, bytes]] = {}
        self.present: set[str] = set()
        self.for_update = " FOR UPDATE" if writing else ""
        self.skip_locked = " FOR UPDATE SKIP LOCKED" if writing else ""

    def rows(self, sql: str, *values: Value) -> list[Row]:
        return self._connection.execute(_dialect(sql), values).fetchall()

    def run(self, sql: str, *values: Value) -> int:
        count = self._connection.execute(_dialect(sql), values).rowcount
        self.changed = self.changed or count > 0
        return count

    def event(self, *values: Value) -> int:
        self.changed = True
        sql = "INSERT INTO events (subject, prev, kind, at, hash, body) VALUES (?, ?, ?, ?, ?, ?) RETURNING seq"
        return int(self.rows(sql, *values)[0][0])

    def many(self, sql: str, values: Iterable[tuple[Value, ...]]) -> None:
        self.changed = True
        with self._connection.cursor() as cursor:
            cursor.executemany(_dialect(sql), values)

    def exclusively(self, what: str) -> None:
        self._connection.execute(
            "SELECT pg_advisory_xact_lock(hashtextextended(current_schema() || '/' || %s, 0))", (what,)
        )

    def count(self, scope: str, key: str, by: int) -> None:
        """Nothing: a shared counter row would make writers wait for each other, and deadlock."""

    def counts(self, scope: str) -> dict[str, int]:
        where, values = ("", ()) if scope == "*" else ("WHERE run = ? ", (scope,))
        grouped = self.rows(
            f"SELECT shelf, source, restarts > 0, block, count(*) FROM tasks {where}GROUP BY 1, 2, 3, 4",
            *values,
        )
        totals: dict[str, int] = {}
        for shelf, source, restarted, block, n in grouped:
            state = STATE_OF_SHELF.get(shelf, shelf)
            failed = f"{source}_failed" if state == TaskState.FAILED.value and source else None
            for key in (state, failed, "restarted" if restarted else None, counted_block(block)):
                if key:
                    totals[key] = totals.get(key, 0) + n
        return totals

    def lease(self, supervisor: str, seconds: float) -> None:
        self.run(f"UPDATE supervisors SET lease_until = {NOW} + ? WHERE id = ?", int(seconds * 1000), supervisor)

    def holds(self, supervisor: str) -> bool:  # noqa: ARG002  # a lease here ends in time
        return False

    def lapsed(self, supervisor: str) -> bool:
        held = f"lease_until > {NOW} AND lease_until <= {NOW} + {LONGEST_LEASE_MS}"  # past that, it was set back
        return not self.rows(f"SELECT 1 FROM supervisors WHERE id = ? AND {held}", supervisor)

    def silent_ms(self, supervisor: str) -> int | None:  # noqa: ARG002  # who falls silent loses the lease
        return None

    def released(self, supervisor: str) -> bool:  # noqa: ARG002  # a time may be set: others must have seen it pass
        return False

    def place(self, seq: int) -> tuple[bytes, str] | None:
        found = self.rows("SELECT hash, xid::text FROM events WHERE seq = ?", seq)
        return (bytes(found[0][0]), f"{found[0][1]}.{seq}") if found else None

    def feed(self, after: str, limit: int) -> tuple[list[Row], str]:
        """Commits come in another order than transaction numbers; below the oldest open one, all is settled."""
        xid, seq = (int(part) for part in (after or "0.0").split("."))
        found = self.rows(
            "SELECT seq, hash, body, xid::text AS place FROM events WHERE (xid, seq) > (?::text::xid8, ?)"
            " AND xid < pg_snapshot_xmin(pg_current_snapshot()) ORDER BY xid, seq LIMIT ?",
            str(xid),
            seq,
            limit,
        )
        placed = [(*row[:3], f"{row[3]}.{row[0]}") for row in found]
        return placed, str(placed[-1][3]) if placed else (after or "0.0")

    def end(self) -> str:
        found = self.rows(
            "SELECT xid::text, seq FROM events WHERE xid < pg_snapshot_xmin(pg_current_snapshot())"
            " ORDER BY xid DESC, seq DESC LIMIT 1"
        )
        return f"{found[0][0]}.{found[0][1]}" if found else "0.0"
