"""The writer of a SQLite database.

Writers of all processes queue at a file lock before they begin: SQLite's own waiting is unfair and was measured to
starve some of them for most of a second. What was committed is synced when the next one may write already, and answered
after that. In a long-lived process one thread writes for everybody and commits what has gathered together.
"""

from __future__ import annotations

import os
from array import array
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

import apsw

from fleet.config.clock import Clock, utc_ms
from fleet.errors import StoreError
from fleet.store import migrate
from fleet.store.bell import Ringer, SocketBell
from fleet.store.filelock import FileLock
from fleet.store.leases import Leases
from fleet.store.pending import Outcome, Pending, answer
from fleet.store.sqlite import counts, log
from fleet.store.sqlite.faults import meaning, refuse_damaged_version, refuse_network, translated
from fleet.store.sqlite.group import Body, Group
from fleet.store.sqlite.reader import SqliteReader
from fleet.store.sqlite.tx import SqliteTx

if TYPE_CHECKING:
    from fleet.store.engine import Asked, Tx

T = TypeVar("T")
PAGE = 2048  # bytes, of a new database: a commit changes a few small rows, and the log has every page of them whole
OLDEST_SAFE = (3, 51, 3)  # before it, several writing processes could corrupt a WAL database


class SqliteWriter:
    """Questions and transactions. `grouped` starts the writer thread, for a process that lives long."""

    def __init__(
        self,
        path: Path,
        *,
        bells: Path,
        leases: Path,
        clock: Clock = utc_ms,
        grouped: bool = False,
        after_commit: Callable[[], None] | None = None,
        busy_seconds: float = 30,
        log_pages: int = log.PAGES,
    ) -> None:
        import threading

        self.path = path
        self._bells = bells
        self._name = str(path)
        self._taken_over = 0  # the last event that the counts were brought up to, as far as is known here
        self._moved = array("i", [0])  # where SQLite says whether its file is still the one of that name
        self._moved_at = self._moved.buffer_info()[0]
        self._clock = clock
        self._after_commit = after_commit
        self._leases = Leases(leases)
        self._reader: SqliteReader | None = None
        self._reading = threading.Lock()
        self._settled = 0  # the last event that we have synced ourselves
        refuse_network(path)
        with translated(path):
            self._lock = FileLock(Path(f"{path}.lock"), busy_seconds)
            try:
                self._connection = self._open()
                self._cursor = self._connection.cursor()
                self._tx = SqliteTx(self._cursor, 0, self._leases)
                self._log = log.Log(self._connection, self._name, log_pages)
                self._ringer = Ringer(bells)
            except BaseException:
                self._lock.close()
                raise
        self._group = Group(self._commit, self._keep_log_short) if grouped else None

    def write(self, body: Callable[[Tx], T]) -> Pending[T]:
        if self._group is not None:
            pending: Pending[T] = Pending()
            self._group.put(body, pending)
            return pending
        (outcome,) = self._commit([body])
        self._keep_log_short()
        return Pending.of(outcome)

    def write_each(self, asked: Sequence[Asked]) -> None:
        if self._group is not None:
            for body, pending in asked:
                self._group.put(body, pending)
            return
        outcomes = self._commit([body for body, _ in asked])
        answer([(pending, outcome) for (_, pending), outcome in zip(asked, outcomes, strict=True)])
        self._keep_log_short()

    def read(self, ask: Callable[[Tx], T]) -> T:
        with self._reading:
            if self._reader is None:
                self._reader = SqliteReader(
                    self.path, bells=self._bells, leases=self._leases.directory, clock=self._clock
                )
            self._reader.settled = max(self._reader.settled, self._settled)
            return self._reader.read(ask)

    def now(self) -> int:
        return self._clock()

    def listen(self) -> SocketBell:
        with translated(self.path):
            return SocketBell(self._bells)

    def close(self) -> None:
        if self._group is not None:
            self._group.close()
        if self._reader is not None:
            self._reader.close()
        self._connection.close()
        self._log.close()
        self._leases.close()
        self._ringer.close()
        self._lock.close()

    def _open(self) -> apsw.Connection:
        if tuple(int(part) for part in apsw.sqlite_lib_version().split(".")[:3]) < OLDEST_SAFE:
            raise StoreError(f"apsw brings SQLite {apsw.sqlite_lib_version()}, which can corrupt a shared database")
        is_new = not self.path.exists()
        connection = apsw.Connection(str(self.path))
        try:
            connection.set_busy_timeout(30_000)
            connection.config(apsw.SQLITE_DBCONFIG_ENABLE_QPSG, 1)  # else every new value plans the query anew
            if is_new:
                os.chmod(self.path, 0o600)
            self._bring_up(connection, is_new=is_new)
            connection.pragma("synchronous", "normal")  # no sync under the lock: `_commit` waits for it afterwards
        except BaseException:
            connection.config(apsw.SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1)  # what is not ours to write stays as it is
            connection.close()
            raise
        return connection

    def _bring_up(self, connection: apsw.Connection, *, is_new: bool) -> None:
        """Check the schema, and bring it up to date."""
        if not migrate.check(connection.pragma("user_version"), str(self.path)):
            return
        if not is_new:
            refuse_damaged_version(self.path, connection)
        with self._lock:
            connection.pragma("page_size", PAGE)  # is not heeded where there are pages already
            connection.pragma("journal_mode", "wal")
            run_migrations(connection)

    def _commit(self, bodies: list[Body]) -> list[Outcome]:
        """Run everything that has gathered and commit it together. What refuses one verb does not touch the others."""
        try:
            with self._lock:
                self._refuse_replaced()
                self._log.grew = False
                try:
                    outcomes = self._run(bodies, apart=False)
                except Exception:  # refusals are rare: only after one is the batch run again, each verb by itself
                    if len(bodies) == 1:
                        raise
                    outcomes = self._run(bodies, apart=True)
                grew, newest = self._log.grew, self._tx.newest  # after the lock they are another thread's
                if not self._log.has_room and self._leases.any():  # a process with a lease goes on writing
                    self._log.make_room()
            if grew:
                self._settle(newest)
        except Exception as exc:
            meant = meaning(exc, self.path)
            if meant is not exc:
                meant.__cause__ = exc
            return [(None, meant)] * len(bodies)
        if grew:  # a claim that found nothing is no news
            self._ringer.ring()
            if self._after_commit is not None:
                self._after_commit()
        return outcomes

    def _settle(self, newest: int) -> None:
        """Nothing is answered, or told on, that is not on the disk: wait for it."""
        try:
            self._log.settle()
        except OSError as exc:
            raise StoreError(
                f"the disk did not take what was written to the store at {self.path}: {exc.strerror};"
                " whether it is kept is not known",
                hint="look at the disk, then at what stands there",
            ) from exc
        self._settled = max(self._settled, newest)

    def _keep_log_short(self) -> None:
        """After the answers: nobody waits for it."""
        if self._log.is_long:
            self._log.move(self._lock)

    def _refuse_replaced(self) -> None:
        """What is written to a database that was put aside would be lost."""
        self._connection.file_control("main", apsw.SQLITE_FCNTL_HAS_MOVED, self._moved_at)
        if self._moved[0]:
            raise StoreError(f"the database at {self.path} was replaced; nothing was written", hint="start it again")

    def _run(self, bodies: list[Body], *, apart: bool) -> list[Outcome]:
        """All in one transaction; `apart` has a savepoint for each, so that what refuses one takes back it alone."""
        outcomes: list[Outcome] = []
        connection, tx, execute = self._connection, self._tx, self._cursor.execute
        tx.begin()
        execute("BEGIN IMMEDIATE")
        try:
            for body in bodies:
                tx.now = self._clock()
                if not apart:
                    outcomes.append((body(tx), None))
                    continue
                try:
                    outcomes.append((self._apart(body, tx), None))
                except Exception as exc:
                    if not connection.in_transaction:  # SQLite gave up on all of it: no space
                        raise
                    outcomes.append((None, exc))
            if tx.counted or tx.newest - self._taken_over >= counts.BEHIND:
                self._taken_over = counts.keep_up(connection, tx.newest, tx.counted)
            self._lock.next_please()
            execute("COMMIT")
        except BaseException:
            self._leases.present.clear()  # who was seen in what is now undone
            if connection.in_transaction:
                connection.execute("ROLLBACK")
            raise
        return outcomes

    def _apart(self, body: Callable[[Tx], T], tx: SqliteTx) -> T:
        """Run one of several; what it wrote before it was refused is taken back."""
        own = SqliteTx(self._cursor, tx.now, self._leases)
        self._connection.execute("SAVEPOINT one")
        try:
            with translated(self.path):
                value = body(own)
        except Exception:
            self._leases.present.clear()
            if self._connection.in_transaction:
                self._connection.execute("ROLLBACK TO one")
            raise
        finally:
            if self._connection.in_transaction:
                self._connection.execute("RELEASE one")
        for (scope, key), by in own.counted.items():
            tx.count(scope, key, by)
        tx.newest = max(tx.newest, own.newest)
        return value


def run_migrations(connection: apsw.Connection) -> None:
    """Bring the schema up to date. Each step is whole or not at all; a second process finds nothing left to do."""
    for step in migrate.migrations("sqlite"):
        connection.execute("BEGIN IMMEDIATE")
        if connection.pragma("user_version") < step.number:
            connection.execute(step.sql)
            connection.pragma("user_version", step.number)
        connection.execute("COMMIT")
