"""Handles on a store for the contract suites: SQLite in a directory, PostgreSQL in a schema of its own."""

from __future__ import annotations

import itertools
import time
from pathlib import Path

from fleet.config.clock import utc_ms
from fleet.store.postgres.engine import PostgresEngine
from fleet.store.sqlite.writer import SqliteWriter
from fleet.store.store import Store

_numbers = itertools.count()


class _Clock:
    """Time as it is, plus what the test let pass."""

    def __init__(self) -> None:
        self.skipped_ms = 0

    def __call__(self) -> int:
        return utc_ms() + self.skipped_ms


class SqliteStores:
    """One home, any number of handles."""

    def __init__(self, home: Path) -> None:
        self.home = home
        self._clock = _Clock()
        self._opened: dict[int, tuple[Store, SqliteWriter]] = {}

    def open(self, *, grouped: bool = False) -> Store:
        engine = SqliteWriter(
            self.home / "fleet.db",
            bells=self.home / "bells",
            leases=self.home / "leases",
            clock=self._clock,
            grouped=grouped,
        )
        store = Store(engine)
        self._opened[id(store)] = (store, engine)
        return store

    def now(self) -> int:
        """The time on the clock that the stores use."""
        return self._clock()

    def tick(self, seconds: float) -> None:
        self._clock.skipped_ms += int(seconds * 1000)

    def end_lease(self, store: Store, supervisor: str) -> None:
        self._opened[id(store)][1]._leases.close()  # what the kernel does when a process ends

    def close(self) -> None:
        for store, _ in self._opened.values():
            store.close()


class PostgresStores:
    """One schema, any number of handles."""

    def __init__(self, url: str) -> None:
        self.url = url
        self.schema = f"test_{next(_numbers)}_{time.time_ns()}"
        self._clock = _Clock()
        self._opened: list[Store] = []

    def open(self, *, grouped: bool = False) -> Store:
        engine = PostgresEngine(self.url, schema=self.schema, clock=self._clock, grouped=grouped, create=True)
        store = Store(engine)
        self._opened.append(store)
        return store

    def now(self) -> int:
        """The time on the clock that the stores use."""
        return self._clock()

    def tick(self, seconds: float) -> None:
        self._clock.skipped_ms += int(seconds * 1000)

    def end_lease(self, store: Store, supervisor: str) -> None:
        self.set_lease(supervisor, 0)

    def set_lease(self, supervisor: str, until: int) -> None:
        """As if the clock of the database had been set."""
        import psycopg

        with psycopg.connect(self.url, options=f"-c search_path={self.schema}") as connection:
            connection.execute("UPDATE supervisors SET lease_until = %s WHERE id = %s", (until, supervisor))

    def close(self) -> None:
        for store in self._opened:
            store.close()
