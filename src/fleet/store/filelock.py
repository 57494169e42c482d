"""The file lock at which the writers of all processes queue."""

from __future__ import annotations

import contextlib
import fcntl
import os
from pathlib import Path
from types import TracebackType

from fleet.errors import StoreBusy


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

    def __exit__(self, kind: type[BaseException] | None, exc: BaseException | None, tb: TracebackType | None) -> None:
        fcntl.flock(self._fd, fcntl.LOCK_UN)

    def close(self) -> None:
        if self._fd >= 0:
            os.close(self._fd)
        self._fd = -1

    def _wait(self) -> None:
        """Blocking is fair and polling is not, but blocking has no deadline of its own."""
        try:
            with _Alarm(self._seconds):
                return fcntl.flock(self._fd, fcntl.LOCK_EX)
        except TimeoutError:
            fcntl.flock(self._fd, fcntl.LOCK_UN)  # it may have come in the same moment
            raise self._busy() from None
        except _NoAlarm:
            pass
        turn = _Turn(os.dup(self._fd))
        if not turn.wait(self._seconds):
            busy = self._busy()
            os.close(self._fd)  # the thread has its own: it lets go as soon as its turn comes
            self._fd = os.open(self.path, os.O_RDWR | os.O_CLOEXEC)
            raise busy
        return None

    def _busy(self) -> StoreBusy:
        who = holder(self._fd)
        return StoreBusy(f"{who} has held the store's write lock for {self._seconds:g} s; nothing was written")


def holder(fd: int) -> str:
    """Who holds the lock on a file, as far as the system tells."""
    inode = str(os.fstat(fd).st_ino)
    with contextlib.suppress(OSError):
        for line in Path("/proc/locks").read_text("ascii", "replace").splitlines():
            words = line.split()
            if words[1] == "FLOCK" and words[5].rpartition(":")[2] == inode:
                return f"process {words[4]}"
    return "another process"


class _NoAlarm(Exception):
    """This thread cannot have an alarm, or somebody else uses it."""


class _Alarm:
    """A deadline for a call that has none: SIGALRM, in the main thread of a program that does not use it."""

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds

    def __enter__(self) -> None:
        import signal
        import threading

        free = signal.getsignal(signal.SIGALRM) is signal.SIG_DFL and signal.getitimer(signal.ITIMER_REAL)[0] == 0
        if threading.current_thread() is not threading.main_thread() or not free:
            raise _NoAlarm
        signal.signal(signal.SIGALRM, self._ring)
        signal.setitimer(signal.ITIMER_REAL, self._seconds)

    def __exit__(self, kind: type[BaseException] | None, exc: BaseException | None, tb: TracebackType | None) -> None:
        import signal

        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, signal.SIG_DFL)

    @staticmethod
    def _ring(number: int, frame: object) -> None:  # noqa: ARG004  # the signature of a handler
        raise TimeoutError


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
