"""What can be wrong with a SQLite database, in Fleet's words."""

from __future__ import annotations

import contextlib
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
    except (apsw.BusyError, apsw.LockedError) as exc:
        raise StoreBusy(f"the store at {path} is held by another process; nothing was written") from exc
    except apsw.FullError as exc:
        raise StoreFull(f"no space is left for the store at {path}; nothing was written") from exc
    except (apsw.ReadOnlyError, apsw.PermissionsError, apsw.CantOpenError, apsw.AuthError) as exc:
        raise StoreReadOnly(f"the store at {path} cannot be opened or written: {exc}") from exc
    except (apsw.CorruptError, apsw.NotADBError, apsw.FormatError, apsw.SQLError) as exc:
        raise StoreCorrupt(f"the database at {path} is damaged: {exc}") from exc
    except (msgspec.DecodeError, UnicodeDecodeError) as exc:  # a row that holds what Fleet never wrote
        raise StoreCorrupt(f"the database at {path} is damaged: {exc}") from exc
    except apsw.Error as exc:
        if getattr(exc, "extendedresult", 0) == apsw.SQLITE_IOERR_SHMSIZE:  # the shared memory is a file too
            raise StoreFull(f"no space is left for the store at {path}; nothing was written") from exc
        raise StoreError(f"the store at {path} cannot be read or written: {exc}") from exc
    except PermissionError as exc:
        raise StoreReadOnly(f"the store at {path} cannot be written: {exc.strerror}") from exc
    except OSError as exc:
        import errno

        if exc.errno == errno.ENOSPC:
            raise StoreFull(f"no space is left for the store at {path}; nothing was written") from exc
        if exc.errno == errno.EROFS:
            raise StoreReadOnly(f"the store at {path} is on a read-only filesystem") from exc
        raise
