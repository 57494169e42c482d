"""Who supervises a home on this machine: locks that say who holds them, and that end with their process.

On SQLite there is one lock for the home. Where several supervisors share a queue, each holds one of its own.
"""

from __future__ import annotations

import fcntl
import os
import time
from pathlib import Path
from types import TracebackType

import msgspec

from fleet.config.files import is_locked
from fleet.errors import Supervised

ONE = "supervisor.lock"
EACH = "supervisors"  # a directory of locks, each named for its supervisor
LOOKED_AT_SECONDS = 10.0  # a look takes the lock for a moment; nobody looks for so long


class Holder(msgspec.Struct, frozen=True):
    """A process that holds a lock."""

    pid: int
    name: str = ""


class Guard:
    """Held while its process lives. Supervised: somebody else holds it."""

    def __init__(self, path: Path, name: str = "") -> None:
        self._path = path
        self._name = name
        self._fd = -1

    def __enter__(self) -> None:
        self._path.parent.mkdir(mode=0o700, exist_ok=True)
        deadline = time.monotonic() + LOOKED_AT_SECONDS
        while True:
            self._fd = os.open(self._path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
            try:
                fcntl.flock(self._fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                os.close(self._fd)
                if is_locked(self._path) or time.monotonic() > deadline:
                    raise self._refusal() from None
                time.sleep(0.001)  # somebody only looked whether it is held
                continue
            if _is(self._fd, self._path):
                break
            os.close(self._fd)  # it was swept away between the two steps
        os.ftruncate(self._fd, 0)
        os.pwrite(self._fd, f"{os.getpid()} {self._name}\n".encode(), 0)

    def _refusal(self) -> Supervised:
        held = _written(self._path)
        who = f"{held.pid}{f' ({held.name})' if held.name else ''}" if held else "unknown"
        return Supervised(f"supervisor {who} already runs this home")

    def __exit__(self, kind: type[BaseException] | None, exc: BaseException | None, tb: TracebackType | None) -> None:
        if self._path.parent.name == EACH:
            self._path.unlink(missing_ok=True)
        os.close(self._fd)


def guard(home: Path, name: str, *, alone: bool) -> Guard:
    """The lock that a supervisor needs."""
    if not alone:
        _sweep(home / EACH)
    return Guard(home / ONE if alone else home / EACH / name, name)


def holders(home: Path) -> list[Holder]:
    """The supervisors of a home on this machine, by their names."""
    each = sorted((home / EACH).iterdir()) if (home / EACH).is_dir() else []
    found = [held for path in (home / ONE, *each) if (held := holder(path)) is not None]
    return sorted(found, key=lambda one: one.name)


def is_supervising(home: Path, name: str) -> bool:
    """Whether the process of a supervisor of this home lives, on this machine, where several share a queue."""
    return is_locked(home / EACH / name)


def holder(path: Path) -> Holder | None:
    """The process that holds a lock; None when nobody does."""
    return _written(path) if is_locked(path) else None


def _sweep(directory: Path) -> None:
    """Take away the locks of those that were killed. Only what we hold ourselves is taken away."""
    for path in directory.iterdir() if directory.is_dir() else ():
        try:
            fd = os.open(path, os.O_RDWR | os.O_CLOEXEC)
        except FileNotFoundError:
            continue
        try:
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
            path.unlink(missing_ok=True)
        except BlockingIOError:
            pass
        finally:
            os.close(fd)


def _is(fd: int, path: Path) -> bool:
    """Whether a path still leads to an open file."""
    try:
        found = path.stat()
    except FileNotFoundError:
        return False
    return os.path.samestat(found, os.fstat(fd))


def _written(path: Path) -> Holder | None:
    """What stands in a lock, of who holds it or last did."""
    try:
        with path.open("rb") as file:
            line = file.read(200).decode("utf-8", "replace")
    except FileNotFoundError:
        return None
    pid, _, name = line.strip().partition(" ")
    return Holder(int(pid), name) if pid.isdecimal() else None
