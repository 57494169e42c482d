"""File locks: the queue of writers, and the leases of supervisors on one machine."""

from __future__ import annotations

import contextlib
import fcntl
import os
from pathlib import Path
from types import TracebackType

from fleet.errors import StoreBusy
from fleet.model.ids import check_token


class FileLock:
    """Held by one writer at a time, of all processes; those that wait are served in turn."""

    def __init__(self, path: Path, seconds: float) -> None:
        self.path = path
        self._seconds = seconds
        self._fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)

    def __enter__(self) -> None:
        try:
            fcntl.flock(self._fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            self._wait()
        with contextlib.suppress(OSError):  # a note, for the error of one who waits in vain
            os.pwrite(self._fd, f"{os.getpid():<10}\n".encode(), 0)

    def __exit__(self, kind: type[BaseException] | None, exc: BaseException | None, tb: TracebackType | None) -> None:
        fcntl.flock(self._fd, fcntl.LOCK_UN)

    def close(self) -> None:
        os.close(self._fd)

    def _wait(self) -> None:
        """Blocking is fair and polling is not, but blocking has no deadline: so a thread blocks, and we wait for it."""
        turn = _Turn(os.dup(self._fd))
        if not turn.wait(self._seconds):
            holder = os.pread(self._fd, 10, 0).decode("ascii", "replace").strip() or "unknown"
            os.close(self._fd)  # the thread has its own: it lets go as soon as its turn comes
            self._fd = os.open(self.path, os.O_RDWR | os.O_CLOEXEC)
            raise StoreBusy(
                f"process {holder} has held the store's write lock for {self._seconds:g} s; nothing was written"
            )


class _Turn:
    """One place in the queue for a lock, which may be given up."""

    def __init__(self, fd: int) -> None:
        import threading

        self._fd = fd
        self._mutex = threading.Lock()
        self._came = threading.Event()
        self._given_up = False
        threading.Thread(target=self._block, daemon=True).start()

    def wait(self, seconds: float) -> bool:
        """True when the turn came; then the lock is held through the caller's own descriptor."""
        self._came.wait(seconds)
        with self._mutex:
            self._given_up = not self._came.is_set()
            return not self._given_up

    def _block(self) -> None:
        try:
            fcntl.flock(self._fd, fcntl.LOCK_EX)
            with self._mutex:
                if not self._given_up:
                    self._came.set()
        except OSError:  # the turn does not come
            return
        finally:
            os.close(self._fd)


class Leases:
    """A supervisor's lease is a lock on its own file: it ends when the process does, and never by a slow clock."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self._held: dict[str, int] = {}

    def take(self, supervisor: str) -> None:
        """Hold the lease until this process ends."""
        if supervisor in self._held:
            return
        self.directory.mkdir(mode=0o700, exist_ok=True)
        fd = os.open(self._path(supervisor), os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            os.close(fd)
            raise
        self._held[supervisor] = fd

    def is_held(self, supervisor: str) -> bool:
        """Whether the process that took the lease still lives."""
        if supervisor in self._held:
            return True
        try:
            fd = os.open(self._path(supervisor), os.O_RDONLY | os.O_CLOEXEC)
        except FileNotFoundError:
            return False
        except PermissionError:  # who may not look knows nothing: silence is not evidence
            return True
        try:
            fcntl.flock(fd, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except BlockingIOError:
            return True
        finally:
            os.close(fd)
        return False

    def close(self) -> None:
        for fd in self._held.values():
            os.close(fd)
        self._held.clear()

    def _path(self, supervisor: str) -> Path:
        return self.directory / check_token(supervisor, "supervisor")
