"""SQLite, through apsw: the embedded default. Durable (synchronous=FULL), one writer at a time, readers never wait.

Writers of all processes queue at a file lock before they begin: SQLite's own waiting is unfair and was measured to
starve some of them for most of a second. In a long-lived process one thread writes for everybody and commits what has
gathered together.
"""

from __future__ import annotations

import contextlib
import os
import re
import time
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias, TypeVar

import apsw
import msgspec

from fleet.errors import NoHome, StoreBusy, StoreCorrupt, StoreError, StoreFull, StoreReadOnly
from fleet.store import migrate
from fleet.store.bell import Ringer, SocketBell
from fleet.store.engine import Row, Value
from fleet.store.filelock import FileLock, Leases
from fleet.store.pending import Pending, answer

if TYPE_CHECKING:
    from fleet.store.engine import Tx

T = TypeVar("T")
Clock = Callable[[], int]
Asked: TypeAlias = "tuple[Callable[[Tx], Any], Pending[Any]]"  # a verb, and where its answer goes
MOST_IN_A_BATCH = 512
CHECKPOINT_PAGES = 4000
COUNT = "INSERT INTO counts (scope, key, n) VALUES (?, ?, ?) ON CONFLICT (scope, key) DO UPDATE SET n = n + excluded.n"
OLDEST_SAFE = (3, 51, 3)  # before it, several writing processes could corrupt a WAL database
NETWORK = frozenset({"nfs", "nfs4", "cifs", "smb3", "smbfs", "9p", "ceph", "glusterfs", "lustre", "fuse.sshfs", "afs"})


def utc_ms() -> int:
    """The clock."""
    return time.time_ns() // 1_000_000


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


class SqliteReader:
    """Questions to a home. Opens what is there and creates nothing, in a home that may be read-only too."""

    def __init__(self, path: Path, *, bells: Path, leases: Path, clock: Clock = utc_ms) -> None:
        self.path = path
        self._bells = bells
        self._leases = Leases(leases)
        self._clock = clock
        self._copy: Any = None
        if not path.exists():
            raise NoHome(f"there is no ledger at {path}")
        with translated(path):
            self._connection = self._open()
            try:
                self._check_version()
            except BaseException:
                self.close()
                raise

    def read(self, ask: Callable[[Tx], T]) -> T:
        with translated(self.path):
            self._connection.execute("BEGIN")  # one snapshot
            try:
                return ask(SqliteTx(self._connection, self._clock(), self._leases))
            finally:
                self._connection.execute("ROLLBACK")

    def write(self, body: Callable[[Tx], T]) -> Pending[T]:  # noqa: ARG002  # refused, whatever it is
        raise StoreReadOnly("this view of the store is for reading")

    def listen(self) -> SocketBell:
        with translated(self.path):
            return SocketBell(self._bells)

    def close(self) -> None:
        self._connection.close()
        if self._copy is not None:
            self._copy.cleanup()

    def _check_version(self) -> None:
        version = self._connection.pragma("user_version")
        if migrate.check(version, str(self.path)):
            refuse_damaged_version(self.path, self._connection)
            raise StoreError(
                f"{self.path} has schema {version}, which this Fleet must bring up to date first",
                hint="run `fleet init`",
            )

    def _open(self) -> apsw.Connection:
        try:
            return self._connect("mode=ro")
        except (apsw.CantOpenError, apsw.ReadOnlyError):
            if os.access(self.path.parent, os.W_OK) or not os.access(self.path, os.R_OK):
                raise
        except apsw.IOError as exc:
            if getattr(exc, "extendedresult", 0) != apsw.SQLITE_IOERR_SHMSIZE:
                raise
        # A home that cannot be written, or a full disk, has no place for the reader's shared memory.
        wal = Path(f"{self.path}-wal")
        if not wal.exists() or not wal.stat().st_size:
            return self._connect("immutable=1")
        import shutil
        import tempfile

        self._copy = tempfile.TemporaryDirectory(prefix="fleet-read-")
        copied = Path(self._copy.name) / self.path.name
        shutil.copyfile(self.path, copied)
        shutil.copyfile(wal, f"{copied}-wal")
        return self._connect("mode=rw", copied)

    def _connect(self, how: str, path: Path | None = None) -> apsw.Connection:
        from urllib.parse import quote

        uri = f"file:{quote(str(path or self.path))}?{how}"
        connection = apsw.Connection(uri, flags=apsw.SQLITE_OPEN_READWRITE | apsw.SQLITE_OPEN_URI)
        try:
            connection.set_busy_timeout(5000)
            connection.config(apsw.SQLITE_DBCONFIG_ENABLE_QPSG, 1)
            connection.execute("SELECT count(*) FROM sqlite_schema").fetchall()
        except BaseException:
            connection.close()
            raise
        return connection


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
    ) -> None:
        import threading

        self.path = path
        self._bells = bells
        self._ringer = Ringer(bells)
        self._name = str(path)
        self._wal_pages = 0
        self._clock = clock
        self._after_commit = after_commit
        self._leases = Leases(leases)
        self._reader: SqliteReader | None = None
        self._reading = threading.Lock()
        self._writing = threading.Lock()
        refuse_network(path)
        with translated(path):
            self._lock = FileLock(Path(f"{path}.lock"), busy_seconds)
            try:
                self._connection = self._open()
            except BaseException:
                self._lock.close()
                raise
        self._group = _Group(self._commit) if grouped else None

    def write(self, body: Callable[[Tx], T]) -> Pending[T]:
        pending: Pending[T] = Pending()
        if self._group is None:
            self._commit([(body, pending)])
        else:
            self._group.put(body, pending)
        return pending

    def read(self, ask: Callable[[Tx], T]) -> T:
        with self._reading:
            if self._reader is None:
                self._reader = SqliteReader(
                    self.path, bells=self._bells, leases=self._leases.directory, clock=self._clock
                )
            return self._reader.read(ask)

    def listen(self) -> SocketBell:
        with translated(self.path):
            return SocketBell(self._bells)

    def close(self) -> None:
        if self._group is not None:
            self._group.close()
        if self._reader is not None:
            self._reader.close()
        self._connection.close()
        self._leases.close()
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
            connection.pragma("synchronous", "full")
            connection.set_wal_hook(self._note_wal)
            self._file = os.stat(self._name).st_ino
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
            connection.pragma("journal_mode", "wal")
            run_migrations(connection)

    def _commit(self, batch: list[Asked]) -> None:
        """Run everything that has gathered and commit it together. What refuses one verb does not touch the others."""
        try:
            with translated(self.path), self._writing, self._lock:
                self._refuse_replaced()
                done, refused = self._transact(batch)
        except Exception as exc:
            answer([], [(pending, exc) for _, pending in batch])
            return
        if done:
            self._ringer.ring()
            if self._after_commit is not None:
                self._after_commit()
        answer(done, refused)
        if self._wal_pages >= CHECKPOINT_PAGES:
            self._checkpoint()

    def _note_wal(self, connection: apsw.Connection, name: str, pages: int) -> int:  # noqa: ARG002  # SQLite's signature
        self._wal_pages = pages
        return apsw.SQLITE_OK

    def _checkpoint(self) -> None:
        """Move what was committed from the log into the database. Not under the lock: other writers go on meanwhile."""
        self._wal_pages = 0
        with contextlib.suppress(apsw.Error):  # nothing is lost by leaving it to the next one
            self._connection.wal_checkpoint(mode=apsw.SQLITE_CHECKPOINT_PASSIVE)

    def _refuse_replaced(self) -> None:
        """What is written to a database that was put aside would be lost."""
        try:
            same = os.stat(self._name).st_ino == self._file
        except FileNotFoundError:
            same = False
        if not same:
            raise StoreError(f"the database at {self.path} was replaced; nothing was written", hint="start it again")

    def _transact(
        self, batch: list[Asked]
    ) -> tuple[list[tuple[Pending[Any], Any]], list[tuple[Pending[Any], Exception]]]:
        """All in one transaction. Refusals are rare: only after one is the batch run again, with savepoints."""
        try:
            return self._run(batch, apart=False)
        except Exception:
            if len(batch) == 1:
                raise
        return self._run(batch, apart=True)

    def _run(
        self, batch: list[Asked], *, apart: bool
    ) -> tuple[list[tuple[Pending[Any], Any]], list[tuple[Pending[Any], Exception]]]:
        done: list[tuple[Pending[Any], Any]] = []
        refused: list[tuple[Pending[Any], Exception]] = []
        counted: dict[tuple[str, str], int] = {}
        self._connection.execute("BEGIN IMMEDIATE")
        try:
            for body, pending in batch:
                tx = SqliteTx(self._connection, self._clock(), self._leases)
                try:
                    done.append((pending, self._apart(body, tx) if apart else body(tx)))
                    for key, by in tx.counted.items():
                        counted[key] = counted.get(key, 0) + by
                except Exception as exc:
                    if not apart or not self._connection.in_transaction:  # SQLite gave up on all of it: no space
                        raise
                    refused.append((pending, exc))
            if any(counted.values()):
                self._connection.executemany(COUNT, [(*key, by) for key, by in counted.items() if by])
            self._connection.execute("COMMIT")
        except BaseException:
            if self._connection.in_transaction:
                self._connection.execute("ROLLBACK")
            raise
        return done, refused

    def _apart(self, body: Callable[[Tx], T], tx: SqliteTx) -> T:
        """Run one of several; what it wrote before it was refused is taken back."""
        self._connection.execute("SAVEPOINT one")
        try:
            with translated(self.path):
                return body(tx)
        except Exception:
            if self._connection.in_transaction:
                self._connection.execute("ROLLBACK TO one")
            raise
        finally:
            if self._connection.in_transaction:
                self._connection.execute("RELEASE one")


class _Group:
    """The writer thread: takes all that was asked for while the last commit was on its way."""

    def __init__(self, commit: Callable[[list[Asked]], None]) -> None:
        import queue
        import threading

        self._commit = commit
        self._queue: queue.SimpleQueue[Asked | None] = queue.SimpleQueue()
        self._thread = threading.Thread(target=self._loop, name="fleet-writer", daemon=True)
        self._thread.start()

    def put(self, body: Callable[[Tx], Any], pending: Pending[Any]) -> None:
        self._queue.put((body, pending))

    def close(self) -> None:
        self._queue.put(None)
        self._thread.join()

    def _loop(self) -> None:
        closing = False
        while not closing:
            item = self._queue.get()
            batch = []
            while item is not None:
                batch.append(item)
                if len(batch) == MOST_IN_A_BATCH or self._queue.empty():
                    break
                item = self._queue.get()
            closing = item is None
            if batch:
                self._commit(batch)


def run_migrations(connection: apsw.Connection) -> None:
    """Bring the schema up to date. Each step is whole or not at all; a second process finds nothing left to do."""
    for step in migrate.migrations("sqlite"):
        connection.execute("BEGIN IMMEDIATE")
        if connection.pragma("user_version") < step.number:
            connection.execute(step.sql)
            connection.pragma("user_version", step.number)
        connection.execute("COMMIT")


def refuse_damaged_version(path: Path, connection: apsw.Connection) -> None:
    """A database without a version is a new one, unless its mirror says that there has been a ledger."""
    mirror = path.with_suffix(".jsonl")
    mirrored = mirror.exists() and mirror.stat().st_size > 0  # seen first: who mirrors has made the schema before
    version = connection.pragma("user_version")
    if version < 0:
        raise StoreCorrupt(f"the database at {path} is damaged: it has schema {version}")
    if version == 0 and mirrored:
        raise StoreCorrupt(f"the database at {path} is empty, but {mirror.name} has its ledger")


def refuse_network(path: Path, mounts: str | None = None) -> None:
    """SQLite's locks do not hold on network filesystems. `mounts` is the system's list, as in /proc/self/mounts."""
    if mounts is None:
        try:
            mounts = Path("/proc/self/mounts").read_text("utf-8", "surrogateescape")
        except OSError:
            return
    where = os.path.realpath(path.parent)
    best, kind = "", ""
    for line in filter(None, mounts.split("\n")):
        _, point, fstype, *_ = line.split(" ")
        point = re.sub(r"\\([0-7]{3})", lambda octal: chr(int(octal[1], 8)), point)  # space, tab, line end, backslash
        if len(point) >= len(best) and (where == point or where.startswith(point.rstrip("/") + "/")):
            best, kind = point, fstype
    if kind in NETWORK:
        raise StoreError(
            f"{where} is on a network filesystem ({kind}), where SQLite's locks do not hold",
            hint="choose a home on a local disk, or PostgreSQL with [store] url",
        )


@contextlib.contextmanager
def translated(path: Path) -> Iterator[None]:
    """SQLite's errors in Fleet's words."""
    try:
        yield
    except (apsw.BusyError, apsw.LockedError) as exc:
        raise StoreBusy(f"the store at {path} is held by another process; nothing was written") from exc
    except apsw.FullError as exc:
        raise StoreFull(f"no space is left for the store at {path}; nothing was written") from exc
    except (apsw.ReadOnlyError, apsw.PermissionsError, apsw.CantOpenError, apsw.AuthError) as exc:
        raise StoreReadOnly(f"the store at {path} cannot be opened or written: {exc}") from exc
    except (apsw.CorruptError, apsw.NotADBError, apsw.FormatError, apsw.SQLError) as exc:
        raise StoreCorrupt(f"the database at {path} is damaged: {exc}") from exc
    except (msgspec.DecodeError, UnicodeDecodeError) as exc:  # a row that holds what Fleet never wrote
        raise StoreCorrupt(f"the database at {path} is damaged: {exc}") from exc
    except apsw.Error as exc:
        if getattr(exc, "extendedresult", 0) == apsw.SQLITE_IOERR_SHMSIZE:  # the shared memory is a file too
            raise StoreFull(f"no space is left for the store at {path}; nothing was written") from exc
        raise StoreError(f"the store at {path} cannot be read or written: {exc}") from exc
    except PermissionError as exc:
        raise StoreReadOnly(f"the store at {path} cannot be written: {exc.strerror}") from exc
    except OSError as exc:
        import errno

        if exc.errno == errno.ENOSPC:
            raise StoreFull(f"no space is left for the store at {path}; nothing was written") from exc
        if exc.errno == errno.EROFS:
            raise StoreReadOnly(f"the store at {path} is on a read-only filesystem") from exc
        raise
