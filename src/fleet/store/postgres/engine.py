"""Questions and transactions of a PostgreSQL database, each thread on a connection of its own."""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, TypeVar

import psycopg
from psycopg import sql

from fleet.config.clock import Clock
from fleet.errors import FleetError, StoreError
from fleet.store import migrate
from fleet.store.engine import Row
from fleet.store.pending import Outcome, Pending, answer
from fleet.store.postgres.bell import PostgresBell
from fleet.store.postgres.clock import ServerClock
from fleet.store.postgres.faults import CUT_OFF, LOST, translated
from fleet.store.postgres.tx import NOW, PostgresTx
from fleet.store.postgres.writers import Writers

if TYPE_CHECKING:
    from fleet.store.engine import Asked, Tx

T = TypeVar("T")
TRIES = 10
NOTIFY_EVERY = 0.02  # seconds: a commit that notifies waits for all others that do
CONNECT_SECONDS = 10
IDLE_SECONDS = 5  # one that hangs in a transaction must not hold back the others' rows, nor the feed
LOCK_SECONDS = 15  # how long one waits for such a row: longer than that, shorter than a lease
STATEMENT_SECONDS = 60


class PostgresEngine:
    """A database that several machines share. `grouped` starts the writer threads, for a process that lives long."""

    def __init__(
        self,
        url: str,
        *,
        schema: str,
        password: str | None = None,
        clock: Clock | None = None,
        grouped: bool = False,
        create: bool = False,
        after_commit: Callable[[], None] | None = None,
    ) -> None:
        self._url = url
        self._schema = schema
        self._password = password
        self._clock = clock or ServerClock(self._ask_time)
        self._after_commit = after_commit
        self._channel = f"fleet_{schema}"
        self._own = threading.local()
        self._opened: list[psycopg.Connection[Row]] = []
        self._notified = 0.0
        self._writers: Writers | None = None
        try:
            with translated(url):
                self._prepare(create)
        except BaseException:
            self.close()
            raise
        if grouped:
            self._writers = Writers(self._commit_and_tell, self._flush)

    def write(self, body: Callable[[Tx], T]) -> Pending[T]:
        pending: Pending[T] = Pending()
        if self._writers is None:
            self._commit_and_tell(body, pending)
            self._flush()
        else:
            self._writers.put(body, pending)
        return pending

    def write_each(self, asked: Sequence[Asked]) -> None:
        """By this thread itself, whether or not there are writers: they would share it out among transactions."""
        try:
            with translated(self._url):
                outcomes = self._again(lambda: self._transact_each([body for body, _ in asked]))
        except Exception as exc:
            outcomes = [(None, exc)] * len(asked)
        else:
            if self._after_commit is not None:
                self._after_commit()
        answer([(pending, outcome) for (_, pending), outcome in zip(asked, outcomes, strict=True)])
        self._flush()

    def read(self, ask: Callable[[Tx], T]) -> T:
        with translated(self._url):
            return self._again(lambda: self._transact(ask, writing=False))

    def now(self) -> int:
        with translated(self._url):
            return self._again(self._clock)

    def listen(self) -> PostgresBell:
        with translated(self._url):
            return PostgresBell(self._connect(), self._channel)

    def close(self) -> None:
        if self._writers is not None:
            self._writers.close()
        for connection in self._opened:
            connection.close()

    def _commit_and_tell(self, body: Callable[[Tx], Any], pending: Pending[Any]) -> None:
        try:
            with translated(self._url):
                value = self._again(lambda: self._transact(body, writing=True))
        except Exception as exc:
            pending.reject(exc)
            return
        if self._after_commit is not None:
            self._after_commit()
        pending.resolve(value)
        if time.monotonic() - self._notified > NOTIFY_EVERY:
            self._flush()

    def _flush(self) -> None:
        """Ring once for all that was committed since the last ring."""
        if getattr(self._own, "untold", False):
            self._own.untold = False
            self._notified = time.monotonic()
            with contextlib.suppress(psycopg.Error):  # a ring may be lost: listeners look anyway
                self._connection().execute("SELECT pg_notify(%s, '')", (self._channel,))

    def _transact(self, body: Callable[[Tx], T], *, writing: bool) -> T:
        connection = self._connection()
        with connection.transaction():
            if not writing:
                connection.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ READ ONLY")
            tx = PostgresTx(connection, self._clock(), writing=writing)
            value = body(tx)
        self._own.untold = getattr(self._own, "untold", False) or tx.changed  # once it is committed
        return value

    def _transact_each(self, bodies: Sequence[Callable[[Tx], Any]]) -> list[Outcome]:
        """All in one transaction. A lost race is everybody's: the locks of all are held."""
        try:
            return self._transact(lambda tx: [(body(tx), None) for body in bodies], writing=True)
        except FleetError:  # refusals are rare: only after one is it run again, each with a savepoint of its own
            return self._transact_apart(bodies)

    def _transact_apart(self, bodies: Sequence[Callable[[Tx], Any]]) -> list[Outcome]:
        connection = self._connection()
        outcomes: list[Outcome] = []
        changed = False
        with connection.transaction():
            for body in bodies:
                tx = PostgresTx(connection, self._clock(), writing=True)
                try:
                    with connection.transaction():
                        outcomes.append((body(tx), None))
                except FleetError as exc:  # it is refused; what the database itself says concerns them all
                    outcomes.append((None, exc))
                else:
                    changed = changed or tx.changed
        self._own.untold = getattr(self._own, "untold", False) or changed
        return outcomes

    def _again(self, act: Callable[[], T]) -> T:
        """Try again what lost a race: a deadlock, a conflict of snapshots, an id that another took a moment before.

        And what the server cut off because we had stopped in the middle of it: a suspended machine, a frozen process.
        """
        for left in reversed(range(TRIES)):
            try:
                return act()
            except LOST + CUT_OFF:
                if not left:
                    raise
                time.sleep(0.005 * (TRIES - left))
        raise AssertionError("unreachable")

    def _connection(self) -> psycopg.Connection[Row]:
        """This thread's own connection."""
        found: psycopg.Connection[Row] | None = getattr(self._own, "connection", None)
        if found is None or found.closed or found.broken:
            found = self._own.connection = self._connect()
            self._opened.append(found)
        return found

    def _ask_time(self) -> int:
        return int(self._connection().execute(f"SELECT {NOW}").fetchall()[0][0])

    def _connect(self) -> psycopg.Connection[Row]:
        return psycopg.connect(
            self._url,
            password=self._password,
            autocommit=True,
            connect_timeout=CONNECT_SECONDS,
            application_name="fleet",
            options=" ".join(f"-c {name}={value}" for name, value in self._options().items()),
        )

    def _options(self) -> dict[str, object]:
        return {
            "search_path": self._schema,
            "idle_in_transaction_session_timeout": IDLE_SECONDS * 1000,
            "lock_timeout": LOCK_SECONDS * 1000,
            "statement_timeout": STATEMENT_SECONDS * 1000,
        }

    def _prepare(self, create: bool) -> None:
        connection = self._connection()
        version = self._version(connection)
        if not migrate.check(version, f"schema {self._schema} of the database"):
            return
        if not create:
            raise StoreError(
                f"schema `{self._schema}` of the database is at version {version}, older than this Fleet",
                hint="run `fleet init`",
            )
        with connection.transaction():
            connection.execute("SET LOCAL statement_timeout = 0")  # a step may take its time, and wait for another
            connection.execute("SET LOCAL lock_timeout = 0")
            connection.execute("SELECT pg_advisory_xact_lock(hashtextextended(%s, 1))", (self._schema,))
            connection.execute(sql.SQL("CREATE SCHEMA IF NOT EXISTS {}").format(sql.Identifier(self._schema)))
            connection.execute("CREATE TABLE IF NOT EXISTS schema_version (version BIGINT NOT NULL)")
            version = self._version(connection)
            for step in migrate.migrations("postgres"):
                if step.number > version:
                    connection.execute(step.sql)
            connection.execute("DELETE FROM schema_version")
            connection.execute("INSERT INTO schema_version VALUES (%s)", (max(version, migrate.NEWEST),))

    def _version(self, connection: psycopg.Connection[Row]) -> int:
        if not connection.execute("SELECT to_regclass('schema_version')").fetchall()[0][0]:
            return 0
        found = connection.execute("SELECT version FROM schema_version").fetchall()
        return int(found[0][0]) if found else 0
