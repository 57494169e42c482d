"""Files that are read within bounds, written whole or not at all, and edited by one process at a time."""

from __future__ import annotations

import contextlib
import errno
import fcntl
import os
import stat
import time
from collections.abc import Iterator
from pathlib import Path

from fleet.errors import ConfigError, Conflict, HomeError

MOST_BYTES = 1 << 20
LOCK_SECONDS = 10.0
HINTS = {
    errno.EACCES: "check its owner and mode, or choose another home with --home",
    errno.EPERM: "check its owner and mode, or choose another home with --home",
    errno.EROFS: "the file system is read-only; choose another home with --home",
    errno.ENOSPC: "free some space on that disk, then run the same command again",
    errno.EDQUOT: "free some of your quota on that disk, then run the same command again",
    errno.ENOTDIR: "a file stands where a directory is needed; move it away, or choose another home with --home",
    errno.EEXIST: "a file stands where a directory is needed; move it away, or choose another home with --home",
    errno.EISDIR: "a directory stands where a file is needed; move it away",
}


def read_bytes(path: Path, most: int = MOST_BYTES) -> bytes | None:
    """The content of a file, or None where there is none. A file of more than `most` bytes is refused."""
    try:
        with open(path, "rb") as file:
            data = file.read(most + 1)
    except FileNotFoundError:
        return None
    except OSError as exc:
        raise failed(exc, "read", path) from exc
    if len(data) > most:
        raise ConfigError(f"cannot read {path}: it is larger than {most // 1024} KiB", hint="is it the right file?")
    return data


def write_atomic(path: Path, data: bytes, *, mode: int | None = None) -> None:
    """Replace a file in one step: whoever reads it, at any moment, sees the old content or the new.

    The file keeps its mode unless one is given; a new one gets 0600. A link stays a link.
    """
    target = Path(os.path.realpath(path))
    try:
        _replace(target, data, mode)
    except OSError as exc:
        raise failed(exc, "write", path) from exc


def _replace(target: Path, data: bytes, mode: int | None) -> None:
    name = target.with_name(f".{target.name}.{os.getpid()}.{time.monotonic_ns()}.tmp")
    handle = os.open(name, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
    try:
        with open(handle, "wb") as file:
            _adopt(handle, target, mode)
            file.write(data)
            file.flush()
            os.fsync(handle)
        os.replace(name, target)
    except BaseException:
        with contextlib.suppress(OSError):
            os.unlink(name)
        raise
    sync_directory(target.parent)


def _adopt(handle: int, target: Path, mode: int | None) -> None:
    """Give the new file the owner and mode of the one that it replaces."""
    try:
        old = target.stat()
    except FileNotFoundError:
        os.fchmod(handle, 0o600 if mode is None else mode)
        return
    if (old.st_uid, old.st_gid) != (os.geteuid(), os.getegid()):
        with contextlib.suppress(PermissionError):  # only root may give a file away
            os.fchown(handle, old.st_uid, old.st_gid)
    os.fchmod(handle, stat.S_IMODE(old.st_mode) if mode is None else mode)


def sync_directory(directory: Path) -> None:
    """Make a rename in this directory survive a power cut."""
    handle = os.open(directory, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def private(path: str, flags: int) -> int:
    """For `open`, as its opener: a file that it makes is ours alone, whatever the umask lets in."""
    return os.open(path, flags | os.O_CLOEXEC, 0o600)


def make_private(path: str | os.PathLike[str]) -> None:
    """A directory of ours alone, with those above it that are missing, which os.makedirs leaves to the umask."""
    try:
        os.mkdir(path, 0o700)
    except FileExistsError:
        if not os.path.isdir(path):
            raise
    except FileNotFoundError:
        above = os.path.dirname(os.fspath(path))
        if not above or os.path.isdir(above):  # not for want of what is above it
            raise
        make_private(above)
        make_private(path)


@contextlib.contextmanager
def locked(path: Path, *, seconds: float = LOCK_SECONDS) -> Iterator[None]:
    """Hold the lock file at `path`. The file stays; the lock ends with the process, however that ends."""
    try:
        handle = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    except OSError as exc:
        raise failed(exc, "lock", path) from exc
    try:
        _lock(handle, path, time.monotonic() + seconds)
        yield
    finally:
        os.close(handle)


def is_locked(path: Path) -> bool:
    """Whether a process holds the lock file at `path`; one that was killed does not."""
    try:
        handle = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    except FileNotFoundError:
        return False
    try:
        fcntl.flock(handle, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    finally:
        os.close(handle)
    return False


def _lock(handle: int, path: Path, deadline: float) -> None:
    while True:
        try:
            return fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            if time.monotonic() >= deadline:
                raise Conflict(f"another process has held {path} too long", hint="run it again in a moment") from None
        except OSError as exc:
            raise failed(exc, "lock", path) from exc
        time.sleep(0.01)  # flock has no deadline of its own


def failed(exc: OSError, verb: str, path: Path) -> HomeError:
    """The error that tells a person what the system refused."""
    hint = HINTS.get(exc.errno or 0, "")
    if isinstance(exc, PermissionError) and (whose := _whose(path)):
        hint = f"{whose}; choose a home of your own with --home"
    return HomeError(f"cannot {verb} {path}: {exc.strerror or exc}", hint=hint)


def _whose(path: Path) -> str:
    """What of a path we may look at, if it is another's; where we may look at all of it, it is not that."""
    for part in (path, *path.parents):
        with contextlib.suppress(OSError):
            return f"{part} belongs to {_owner_of(part)}" if part.stat().st_uid != os.geteuid() else ""
    return ""


def _owner_of(path: Path) -> str:
    """The user that a file belongs to: the name, or the number where that is all that is known."""
    return account_of(path) or f"user {path.stat().st_uid}"


def account_of(path: Path) -> str:
    """The name of the user that a file belongs to; empty where this machine knows nobody of that number."""
    import pwd

    try:
        return pwd.getpwuid(path.stat().st_uid).pw_name
    except KeyError:
        return ""
