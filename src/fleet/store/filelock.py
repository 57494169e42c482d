"""The file lock at which the writers of all processes queue."""

from __future__ import annotations

import contextlib
import os
from fcntl import LOCK_EX, LOCK_NB, LOCK_UN, flock
from pathlib import Path
from time import perf_counter
from types import TracebackType
from typing import TYPE_CHECKING

from fleet.errors import StoreBusy

if TYPE_CHECKING:
    from threading import Event

AT_ONCE = LOCK_EX | LOCK_NB
AWAKE_SECONDS = 0.0005  # for which the one in front looks again and again; a commit takes half of it


class FileLock:
    """Held by one writer at a time, of all threads and processes; those that wait are served in turn.

    A lock alone is not fair: who lets go of it and asks again has it before the one that is being woken. So there is a
    place in front of it, `FILE.next`, and one must stand there to ask for the lock. Who has the lock keeps the place
    until it is nearly done (`next_please`): the next one is there when the lock is let go, and who has just had it
    queues behind everybody else.
    """

    def __init__(self, path: Path, seconds: float) -> None:
        import threading

        self._mutex = threading.Lock()
        self._paths = (Path(f"{path}.next"), path)
        self._seconds = seconds
        self._place = self._lock = -1
        self._stands = False  # in front of the lock
        self._open()

    def __enter__(self) -> None:
        self._mutex.acquire()
        try:
            if self._lock < 0:
                self._open()
            try:
                flock(self._place, AT_ONCE)
                flock(self._lock, AT_ONCE)
            except BlockingIOError:
                self._wait()
        except BaseException:
            self._step_back()
            self._mutex.release()
            raise
        self._stands = True

    def __exit__(self, kind: type[BaseException] | None, exc: BaseException | None, tb: TracebackType | None) -> None:
        if self._stands:
            self.next_please()
        flock(self._lock, LOCK_UN)
        self._mutex.release()

    def next_please(self) -> None:
        """What is left to do is short: the next one may step up."""
        if self._stands:
            self._stands = False
            flock(self._place, LOCK_UN)

    def close(self) -> None:
        for fd in (self._place, self._lock):
            if fd >= 0:
                os.close(fd)
        self._place = self._lock = -1

    def _open(self) -> None:
        place, lock = self._paths
        self._place = os.open(place, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            self._lock = os.open(lock, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        except OSError:
            self.close()
            raise

    def _wait(self) -> None:
        """Blocking is fair and polling is not, but blocking has no deadline of its own."""
        try:
            with _Alarm(self._seconds):
                return _block(self._place, self._lock)
        except TimeoutError:
            self._step_back()
            raise self._busy() from None
        except _NoAlarm:
            pass
        came, has_come = _turn(os.dup(self._place), os.dup(self._lock)), False
        try:
            has_come = came.wait(self._seconds)
        finally:
            if not has_come:
                self.close()  # the thread has its own: it lets go as soon as its turn comes
                self._open()
        if not has_come:
            raise self._busy()
        return None

    def _step_back(self) -> None:
        """Hold neither: one of them may have come when we gave up."""
        for fd in (self._lock, self._place):
            if fd >= 0:  # else they could not be opened again
                flock(fd, LOCK_UN)

    def _busy(self) -> StoreBusy:
        who = holder(self._lock) or holder(self._place) or "another process"
        return StoreBusy(f"{who} has held the store's write lock for {self._seconds:g} s; nothing was written")


def holder(fd: int) -> str | None:
    """Who holds the lock on a file, as far as the system tells."""
    inode = str(os.fstat(fd).st_ino)
    with contextlib.suppress(OSError):
        for line in Path("/proc/locks").read_text("ascii", "replace").splitlines():
            words = line.split()
            if words[1] == "FLOCK" and words[5].rpartition(":")[2] == inode:
                return f"process {words[4]}"
    return None


def _block(place: int, lock: int) -> None:
    """Wait for both. Who is woken begins late and with cold caches, so the one in front stays awake for a moment."""
    flock(place, LOCK_EX)
    until = perf_counter() + AWAKE_SECONDS
    while perf_counter() < until:
        try:
            return flock(lock, AT_ONCE)
        except BlockingIOError:
            os.sched_yield()
    return flock(lock, LOCK_EX)


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


def _turn(place: int, lock: int) -> Event:
    """Told once both are held, by a thread that blocks for them. They stay held while the caller's own are open."""
    import threading

    came = threading.Event()

    def block() -> None:
        try:
            _block(place, lock)
            came.set()
        except OSError:  # the turn does not come
            return
        finally:
            os.close(place)
            os.close(lock)

    threading.Thread(target=block, daemon=True).start()
    return came
