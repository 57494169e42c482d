"""Questions to a SQLite database. Kept apart from the writer: commands that only look start faster without it."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import apsw

from fleet.config.clock import Clock, utc_ms
from fleet.errors import NoHome, StoreError, StoreReadOnly
from fleet.store import migrate
from fleet.store.leases import Leases
from fleet.store.sqlite.faults import refuse_damaged_version, translated
from fleet.store.sqlite.tx import SqliteTx

if TYPE_CHECKING:
    from fleet.store.bell import SocketBell
    from fleet.store.engine import Asked, Tx
    from fleet.store.pending import Pending

T = TypeVar("T")


class SqliteReader:
    """Questions to a home. Opens what is there and creates nothing, in a home that may be read-only too."""

    def __init__(self, path: Path, *, bells: Path, leases: Path, clock: Clock = utc_ms) -> None:
        self.path = path
        self._bells = bells
        self._leases = Leases(leases)
        self._clock = clock
        self._copy: Any = None
        self.settled = 0  # the last event that is known to be on the disk
        if not path.exists():
            raise NoHome(f"there is no ledger at {path}")
        with translated(path):
            self._connection = self._open()
            try:
                self._check_version()
                self._cursor = self._connection.cursor()
            except BaseException:
                self.close()
                raise

    def read(self, ask: Callable[[Tx], T]) -> T:
        with translated(self.path):
            self._cursor.execute("BEGIN")  # one snapshot
            try:
                return ask(SqliteTx(self._cursor, self._clock(), self._leases, settle=self._settle))
            finally:
                self._cursor.execute("ROLLBACK")

    def write(self, body: Callable[[Tx], T]) -> Pending[T]:  # noqa: ARG002  # refused, whatever it is
        raise StoreReadOnly("this view of the store is for reading")

    def write_each(self, asked: Sequence[Asked]) -> None:  # noqa: ARG002  # refused, whatever it is
        raise StoreReadOnly("this view of the store is for reading")

    def now(self) -> int:
        return self._clock()

    def listen(self) -> SocketBell:
        from fleet.store.bell import SocketBell

        with translated(self.path):
            return SocketBell(self._bells)

    def close(self) -> None:
        self._connection.close()
        if self._copy is not None:
            self._copy.cleanup()

    def _settle(self, seq: int) -> None:
        """Before an event is told on: who wrote it may still wait for the disk."""
        if seq > self.settled:
            from fleet.store.sqlite.log import settle

            settle(str(self.path))
            self.settled = seq

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
