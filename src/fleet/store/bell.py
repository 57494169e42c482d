"""The doorbell of a SQLite home: after a commit, a datagram to each listener's own socket in `bells/`.

Who comes or goes leaves a new mark in `bells.mark`, so that those who ring know for the price of one short read whether
they know everybody.
"""

from __future__ import annotations

import contextlib
import errno
import os
from pathlib import Path

_MARK = 8  # bytes, never twice the same
_ids = iter(range(1 << 30))


def _address(bells: Path, name: str, directory: int) -> str:
    """A path that fits into a socket address, however long the home's is."""
    if os.path.exists("/proc/self/fd"):
        return f"/proc/self/fd/{directory}/{name}"
    return str(bells / name)


def _marks(bells: Path) -> int:
    return os.open(f"{bells}.mark", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)


def _leave_mark(bells: Path) -> None:
    """Never raises: who is not rung for want of a mark looks by itself, a little later."""
    with contextlib.suppress(OSError):
        fd = _marks(bells)
        try:
            os.pwrite(fd, os.urandom(_MARK), 0)
        finally:
            os.close(fd)


class Ringer:
    """Rings for one process. It looks for listeners anew only when there is a new mark."""

    def __init__(self, bells: Path) -> None:
        bells.mkdir(mode=0o700, exist_ok=True)
        self._bells = bells
        self._marks = _marks(bells)
        self._seen: bytes | None = None
        self._names: list[str] = []

    def ring(self) -> None:
        """Wake every listener; dead ones are removed, full ones were rung before. Never raises: the commit is done."""
        try:
            mark = os.pread(self._marks, _MARK, 0)
            if mark != self._seen:
                self._names = os.listdir(self._bells)
                self._seen = mark
            if self._names:
                _ring(self._bells, self._names)
        except OSError:
            self._names, self._seen = [], None

    def close(self) -> None:
        if self._marks >= 0:
            os.close(self._marks)
        self._marks = -1


def _ring(bells: Path, names: list[str]) -> None:
    import socket

    directory = os.open(bells, os.O_RDONLY | os.O_DIRECTORY)
    try:
        with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as sender:
            sender.setblocking(False)
            for name in names:
                try:
                    sender.sendto(b"!", _address(bells, name, directory))
                except OSError as exc:
                    if exc.errno == errno.ECONNREFUSED:
                        with contextlib.suppress(OSError):
                            os.unlink(bells / name)
                            _leave_mark(bells)
    finally:
        os.close(directory)


class SocketBell:
    """One listener."""

    def __init__(self, bells: Path) -> None:
        import socket

        bells.mkdir(mode=0o700, exist_ok=True)
        self._path = bells / f"{os.getpid()}.{next(_ids)}"
        self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self._socket.setblocking(False)
        try:
            directory = os.open(bells, os.O_RDONLY | os.O_DIRECTORY)
            try:
                self._path.unlink(missing_ok=True)  # left by a dead process of the same number
                self._socket.bind(_address(bells, self._path.name, directory))
            finally:
                os.close(directory)
            _leave_mark(bells)
        except BaseException:
            self._socket.close()
            raise

    def wait(self, timeout: float) -> bool:
        import select

        ready, _, _ = select.select([self._socket], [], [], timeout)
        if not ready:
            return False
        with contextlib.suppress(BlockingIOError):
            while self._socket.recv(16):
                pass
        return True

    def fileno(self) -> int:
        return self._socket.fileno()

    def close(self) -> None:
        self._socket.close()
        self._path.unlink(missing_ok=True)
        _leave_mark(self._path.parent)
