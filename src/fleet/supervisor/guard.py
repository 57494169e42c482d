"""One supervisor for a home on a machine: a lock that says who holds it, and that ends with its process."""

from __future__ import annotations

import fcntl
import os
from pathlib import Path
from types import TracebackType

from fleet.errors import Conflict


class Guard:
    """Held while a supervisor lives."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._fd = -1

    def __enter__(self) -> None:
        self._fd = os.open(self._path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            fcntl.flock(self._fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            who = _written(self._fd)
            os.close(self._fd)
            raise Conflict(
                f"supervisor {who or 'unknown'} already runs this home", hint="`fleet run stop` ends it"
            ) from None
        os.ftruncate(self._fd, 0)
        os.pwrite(self._fd, f"{os.getpid()}\n".encode(), 0)

    def __exit__(self, kind: type[BaseException] | None, exc: BaseException | None, tb: TracebackType | None) -> None:
        os.close(self._fd)


def holder(path: Path) -> int | None:
    """The process that holds it; None when nobody does."""
    try:
        fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    except FileNotFoundError:
        return None
    try:
        fcntl.flock(fd, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return _written(fd)
    finally:
        os.close(fd)
    return None


def _written(fd: int) -> int | None:
    word = os.pread(fd, 20, 0).decode("ascii", "replace").strip()
    return int(word) if word.isdecimal() else None
