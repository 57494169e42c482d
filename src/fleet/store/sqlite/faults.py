"""What can be wrong with a SQLite database, in Fleet's words."""

from __future__ import annotations

import contextlib
import errno
import os
import re
from collections.abc import Iterator
from pathlib import Path

import apsw
import msgspec

from fleet.errors import StoreBusy, StoreCorrupt, StoreError, StoreFull, StoreReadOnly

NETWORK = frozenset({"nfs", "nfs4", "cifs", "smb3", "smbfs", "9p", "ceph", "glusterfs", "lustre", "fuse.sshfs", "afs"})


def refuse_damaged_version(path: Path, connection: apsw.Connection) -> None:
    """A database without a version is a new one, unless its mirror says that there has been a ledger."""
    mirror = path.with_suffix(".jsonl")
    mirrored = mirror.exists() and mirror.stat().st_size > 0  # seen first: who mirrors has made the schema before
    version = connection.pragma("user_version")
    if version < 0:
        raise StoreCorrupt(f"the database at {path} is damaged: it has schema {version}")
    if version == 0 and mirrored:
        raise StoreCorrupt(f"the database at {path} is empty, but {mirror.name} has its ledger")


def refuse_network(path: Path, mounts: str | None = None) -> None:
    """SQLite's locks do not hold on network filesystems. `mounts` is the system's list, as in /proc/self/mounts."""
    if mounts is None:
        try:
            mounts = Path("/proc/self/mounts").read_text("utf-8", "surrogateescape")
        except OSError:
            return
    where = os.path.realpath(path.parent)
    best, kind = "", ""
    for line in filter(None, mounts.split("\n")):
        _, point, fstype, *_ = line.split(" ")
        point = re.sub(r"\\([0-7]{3})", lambda octal: chr(int(octal[1], 8)), point)  # space, tab, line end, backslash
        if len(point) >= len(best) and (where == point or where.startswith(point.rstrip("/") + "/")):
            best, kind = point, fstype
    if kind in NETWORK:
        raise StoreError(
            f"{where} is on a network filesystem ({kind}), where SQLite's locks do not hold",
            hint="choose a home on a local disk, or PostgreSQL with [store] url",
        )


@contextlib.contextmanager
def translated(path: Path) -> Iterator[None]:
    """SQLite's errors in Fleet's words."""
    try:
        yield
    except Exception as exc:
        meant = meaning(exc, path)
        if meant is exc:
            raise
        raise meant from exc


def meaning(exc: Exception, path: Path) -> Exception:  # one answer for each kind
    """An error of SQLite or of the system, in Fleet's words; any other as it is."""
    match exc:
        case apsw.BusyError() | apsw.LockedError():
            return StoreBusy(f"the store at {path} is held by another process; nothing was written")
        case apsw.FullError():
            return _full(path)
        case apsw.ReadOnlyError() | apsw.PermissionsError() | apsw.CantOpenError() | apsw.AuthError():
            return StoreReadOnly(f"the store at {path} cannot be opened or written: {exc}")
        case apsw.CorruptError() | apsw.NotADBError() | apsw.FormatError() | apsw.SQLError():
            return StoreCorrupt(f"the database at {path} is damaged: {exc}")
        case msgspec.DecodeError() | UnicodeDecodeError():  # a row that holds what Fleet never wrote
            return StoreCorrupt(f"the database at {path} is damaged: {exc}")
        case apsw.Error():
            if getattr(exc, "extendedresult", 0) == apsw.SQLITE_IOERR_SHMSIZE:  # the shared memory is a file too
                return _full(path)
            return StoreError(f"the store at {path} cannot be read or written: {exc}")
        case PermissionError():
            return StoreReadOnly(f"the store at {path} cannot be written: {exc.strerror}")
        case OSError(errno=errno.ENOSPC):
            return _full(path)
        case OSError(errno=errno.EROFS):
            return StoreReadOnly(f"the store at {path} is on a read-only filesystem")
        case _:
            return exc


def _full(path: Path) -> StoreFull:
    return StoreFull(f"no space is left for the store at {path}; nothing was written")
