"""Where a home is served: a file for each process that does, locked as long as it does.

The lock tells whether the process lives, also after kill -9. So an address that is found here belongs to this home, and
to no stranger who has taken its port since: a token may be sent there.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import time
from collections.abc import Iterator
from pathlib import Path

from fleet.config.files import failed, is_locked, read_bytes
from fleet.config.home import Home


@contextlib.contextmanager
def told(home: Home, url: str) -> Iterator[None]:
    """Have it known that this process serves the home at `url`."""
    path = home.serving / f"{os.getpid()}-{time.time_ns()}"  # a name that no other process ever has
    try:
        home.serving.mkdir(mode=0o700, exist_ok=True)
        _clear(home.serving)
        handle = _written(path, url)
    except OSError as exc:
        raise failed(exc, "write", path) from exc
    try:
        yield
    finally:
        path.unlink(missing_ok=True)
        os.close(handle)


def addresses(home: Home) -> list[str]:
    """Where the home is served now, the newest first."""
    if not home.serving.is_dir():
        return []
    found = sorted(_files(home.serving), key=lambda path: int(path.name.rpartition("-")[2]), reverse=True)
    return [url for path in found if is_locked(path) and (url := (read_bytes(path) or b"").decode().strip())]


def _written(path: Path, url: str) -> int:
    """The file, locked before it has its name: whoever finds it finds it locked."""
    unnamed = path.with_name(f".{path.name}")
    handle = os.open(unnamed, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX)
        os.write(handle, f"{url}\n".encode())
        os.rename(unnamed, path)
    except BaseException:
        os.close(handle)
        unnamed.unlink(missing_ok=True)
        raise
    return handle


def _files(directory: Path) -> Iterator[Path]:
    return (path for path in directory.iterdir() if path.name.rpartition("-")[2].isdecimal() and path.name[0] != ".")


def _clear(directory: Path) -> None:
    """Remove what killed processes have left."""
    for path in _files(directory):
        if not is_locked(path):
            path.unlink(missing_ok=True)
