"""The write-ahead log of a SQLite database: how it gets to the disk, its room, when it is moved into the database."""

from __future__ import annotations

import contextlib
import fcntl
import os
from collections.abc import Iterator

import apsw

from fleet.errors import StoreBusy

PAGES = 4000  # with so many, the log is moved into the database
HEADER, FRAME_HEADER = 32, 24  # bytes, as SQLite writes them
PIECE = 1 << 20
sync_data = getattr(os, "fdatasync", os.fsync)  # not everywhere


def settle(database: str) -> None:
    """Wait until all that was committed to a database, by whomever, is on the disk."""
    try:
        fd = os.open(f"{database}-wal", os.O_RDONLY | os.O_CLOEXEC)
    except FileNotFoundError:  # nobody writes, and what was in it went into the database by way of the disk
        return
    try:
        sync_data(fd)
    finally:
        os.close(fd)


class Log:
    """What one connection knows of the log that all processes share."""

    def __init__(self, connection: apsw.Connection, path: str, pages: int) -> None:
        self._connection = connection
        self._path = f"{path}-wal"
        self._fd = -1
        self._most = pages
        self._pages = 0  # now
        self._move_at = pages
        self.has_room = False
        self.grew = False  # by a commit, since somebody last looked
        connection.set_wal_hook(self._note)

    @property
    def is_long(self) -> bool:
        return self._pages >= self._move_at

    def settle(self) -> None:
        """Wait until all that was committed is on the disk. Others write on meanwhile, and one sync may do for many.

        It is the same file as long as our connection is open.
        """
        if self._fd < 0:
            self._fd = os.open(self._path, os.O_RDONLY | os.O_CLOEXEC)
        sync_data(self._fd)

    def close(self) -> None:
        if self._fd >= 0:
            os.close(self._fd)
            self._fd = -1

    def make_room(self) -> None:
        """Fill the file with zeros as far as the log will grow. Only for who holds the write lock, and writes on.

        A commit that makes the file longer waits for the file system's own records too: two to three times as long as
        one that writes over what is there. SQLite takes no notice of what follows the last commit.
        """
        self.has_room = True
        frame = FRAME_HEADER + self._connection.pragma("page_size")
        whole = HEADER + frame * (self._most + self._most // 4)
        with contextlib.suppress(OSError), open(self._path, "r+b", buffering=0) as file:
            fd = file.fileno()
            before = size = os.fstat(fd).st_size
            try:
                while size < whole:
                    size += os.pwrite(fd, bytes(min(PIECE, whole - size)), size)
                if size > before:
                    sync_data(fd)
            except OSError:  # a full disk has better uses for what is left of it
                os.ftruncate(fd, before)

    def move(self, lock: contextlib.AbstractContextManager[None]) -> None:
        """Move what was committed into the database: first without the lock, so that other writers go on meanwhile;
        then, under it, the little that they have added. Only a log that was moved whole begins anew.

        Not at once again: somebody reads what is in the log, or another process is at it.
        """
        self._move_at = self._pages + self._most // 4
        with contextlib.suppress(apsw.Error, StoreBusy, BlockingIOError), self._alone():  # it is left to the next one
            self._connection.wal_checkpoint(mode=apsw.SQLITE_CHECKPOINT_PASSIVE)
            with lock:
                self._connection.wal_checkpoint(mode=apsw.SQLITE_CHECKPOINT_PASSIVE)

    @contextlib.contextmanager
    def _alone(self) -> Iterator[None]:
        """One process at a time: all of them see at once that the log is long. SQLite itself never locks this file."""
        fd = os.open(self._path, os.O_RDONLY | os.O_CLOEXEC)
        try:
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
            yield
        finally:
            os.close(fd)

    def _note(self, connection: apsw.Connection, name: str, pages: int) -> int:  # noqa: ARG002  # SQLite's signature
        if pages < self._pages:  # it began anew
            self._move_at = self._most
        self._pages = pages
        self.grew = True
        return apsw.SQLITE_OK
