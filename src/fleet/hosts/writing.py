"""Files of this machine: written whole or not at all; and programs that many directories share."""

from __future__ import annotations

import contextlib
import os
import secrets
from collections.abc import Mapping
from functools import cache

from fleet.config.files import make_private
from fleet.hosts.unpacking import SHARED, digest


def write(path: str, data: bytes, *, mode: int = 0o600, sync: bool = True) -> None:
    """Put a file in its place; `sync`: a crash of the machine does not tear it either."""
    directory, name = os.path.split(path)
    temporary = f"{directory}/.{name}.{secrets.token_hex(6)}.put"
    fd = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, mode)
    try:
        with open(fd, "wb", buffering=0) as file:
            left = memoryview(data)
            while left:
                left = left[file.write(left) :]
            if sync:
                os.fsync(fd)
        os.rename(temporary, path)
    except OSError:
        with contextlib.suppress(FileNotFoundError):
            os.unlink(temporary)
        raise


def share(directory: str, programs: Mapping[str, bytes]) -> None:
    """Programs by name, in a directory that many like it stand beside: kept once for all of them, by their contents.

    A file is linked, a directory is a symbolic link. To make a file costs the system more than to write it.
    """
    items = tuple(programs.items())
    kept = f"{SHARED}/{_digest(items)}"
    root = os.path.dirname(directory)
    if not os.path.exists(f"{root}/{kept}/{items[-1][0]}"):
        for name, data in items:
            make_private(os.path.dirname(f"{root}/{kept}/{name}"))
            write(f"{root}/{kept}/{name}", data, mode=0o700)
    for name in dict.fromkeys(name.partition("/")[0] for name in programs):
        with contextlib.suppress(FileExistsError):
            if name in programs:
                os.link(f"{root}/{kept}/{name}", f"{directory}/{name}")
            else:
                os.symlink(f"../{kept}/{name}", f"{directory}/{name}")


@cache
def _digest(programs: tuple[tuple[str, bytes], ...]) -> str:
    return digest(dict(programs))
