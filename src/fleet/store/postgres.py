"""PostgreSQL, through psycopg 3: for several supervisors, on one or many machines."""

from __future__ import annotations

import contextlib
import queue
import select
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from functools import lru_cache
from typing import TYPE_CHECKING, Any, LiteralString, TypeVar

from fleet.errors import (
    FleetError,
    ProgramMissing,
    StoreBusy,
    StoreError,
    StoreFull,
    StoreReadOnly,
    StoreUnreachable,
    how_to_install,
)
from fleet.model.states import TaskState
from fleet.store import migrate
from fleet.store.clock import Clock, utc_ms
from fleet.store.engine import Row, Value
from fleet.store.pending import Pending
from fleet.store.rows import STATE_OF_SHELF, counted_block

if TYPE_CHECKING:
    from fleet.store.engine import Tx

try:
    import psycopg
    from psycopg import errors, sql
except ImportError as exc:
    raise ProgramMissing(
        "the store is on PostgreSQL, but psycopg is not installed", hint=how_to_install("psycopg[binary]")
    ) from exc

T = TypeVar("T")
WRITERS = 4
TRIES = 10
NOTIFY_EVERY = 0.02  # seconds: a commit that notifies waits for all others that do
CONNECT_SECONDS = 10
IDLE_SECONDS = 5  # one that hangs in a transaction must not hold back the others' rows, nor the feed
LOCK_SECONDS = 15  # how long one waits for such a row: longer than that, shorter than a lease
STATEMENT_SECONDS = 60
LOST = (errors.DeadlockDetected, errors.SerializationFailure, errors.UniqueViolation)  # a race
CUT_OFF = (errors.IdleInTransactionSessionTimeout,)  # by the server, and rolled back


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
        self.run(f"UPDATE supervisors SET lease_until = {_NOW} + ? WHERE id = ?", int(seconds * 1000), supervisor)

    def holds(self, supervisor: str) -> bool:  # noqa: ARG002  # a lease here ends in time
        return False

    def lapsed(self, supervisor: str) -> bool:
        return not self.rows(f"SELECT 1 FROM supervisors WHERE id = ? AND lease_until > {_NOW}", supervisor)

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


_NOW = "CAST(extract(epoch FROM clock_timestamp()) * 1000 AS BIGINT)"


class PostgresEngine:
    """A database that several machines share. `grouped` starts the writer threads, for a process that lives long."""

    def __init__(
        self,
        url: str,
        *,
        schema: str,
        password: str | None = None,
        clock: Clock = utc_ms,
        grouped: bool = False,
        create: bool = False,
        after_commit: Callable[[], None] | None = None,
    ) -> None:
        self._url = url
        self._schema = schema
        self._password = password
        self._clock = clock
        self._after_commit = after_commit
        self._channel = f"fleet_{schema}"
        self._own = threading.local()
        self._opened: list[psycopg.Connection[Row]] = []
        self._notified = 0.0
        self._writers: _Writers | None = None
        try:
            with translated(url):
                self._prepare(create)
        except BaseException:
            self.close()
            raise
        if grouped:
            self._writers = _Writers(self._commit_and_tell, self._flush)

    def write(self, body: Callable[[Tx], T]) -> Pending[T]:
        pending: Pending[T] = Pending()
        if self._writers is None:
            self._commit_and_tell(body, pending)
            self._flush()
        else:
            self._writers.put(body, pending)
        return pending

    def read(self, ask: Callable[[Tx], T]) -> T:
        with translated(self._url):
            return self._again(lambda: self._transact(ask, writing=False))

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


class _Writers:
    """A few threads, each with its own connection."""

    def __init__(self, commit: Callable[[Callable[[Tx], Any], Pending[Any]], None], idle: Callable[[], None]) -> None:
        self._commit = commit
        self._idle = idle
        self._closed = False
        self._queue: queue.SimpleQueue[tuple[Callable[[Tx], Any], Pending[Any]] | None] = queue.SimpleQueue()
        self._threads = [
            threading.Thread(target=self._loop, name=f"fleet-writer-{n}", daemon=True) for n in range(WRITERS)
        ]
        for thread in self._threads:
            thread.start()

    def put(self, body: Callable[[Tx], Any], pending: Pending[Any]) -> None:
        if self._closed:
            pending.reject(StoreError("the store is closed; nothing was written"))
            return
        self._queue.put((body, pending))

    def close(self) -> None:
        self._closed = True
        for _ in self._threads:
            self._queue.put(None)
        for thread in self._threads:
            thread.join()

    def _loop(self) -> None:
        while True:
            if self._queue.empty():
                self._idle()
            item = self._queue.get()
            if item is None:
                self._idle()
                return
            self._commit(*item)


class PostgresBell:
    """One listener, on a connection of its own."""

    def __init__(self, connection: psycopg.Connection[Row], channel: str) -> None:
        self._connection = connection
        connection.execute(sql.SQL("LISTEN {}").format(sql.Identifier(channel)))

    def wait(self, timeout: float) -> bool:
        with translated("the listening connection"):
            rang = any(True for _ in self._connection.notifies(timeout=0))
            if not rang and timeout:
                select.select([self._connection.fileno()], [], [], timeout)
                rang = any(True for _ in self._connection.notifies(timeout=0))
            return rang

    def fileno(self) -> int:
        return self._connection.fileno()

    def close(self) -> None:
        self._connection.close()


@contextlib.contextmanager
def translated(url: str) -> Iterator[None]:
    """PostgreSQL's errors in Fleet's words. The address holds no password: the settings refuse one."""
    try:
        yield
    except FleetError:
        raise
    except errors.DiskFull as exc:
        raise StoreFull("no space is left on the database server; nothing was written") from exc
    except (errors.ReadOnlySqlTransaction, errors.InsufficientPrivilege) as exc:
        raise StoreReadOnly(f"the database refuses to be written: {_first_line(exc)}") from exc
    except (errors.LockNotAvailable, errors.QueryCanceled, *CUT_OFF) as exc:
        raise StoreBusy(f"the database at {url} is held up: {_first_line(exc)}; nothing was written") from exc
    except (psycopg.OperationalError, psycopg.InterfaceError) as exc:
        raise StoreUnreachable(f"the database at {url} does not answer: {_first_line(exc)}") from exc
    except psycopg.Error as exc:
        raise StoreError(f"the database refused: {_first_line(exc)}") from exc


def _first_line(exc: BaseException) -> str:
    return (str(exc) or type(exc).__name__).split("\n", 1)[0]
