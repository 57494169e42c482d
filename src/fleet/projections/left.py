"""What lies in the directory of a task in this home: its files by their names, kept as evidence or not.

A name is only ever compared with those that are there, so that whoever asks for one cannot lead anywhere else; links
are neither listed nor followed.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO

import msgspec

from fleet.config.home import Home
from fleet.errors import NotFound

MOST = 500  # files
PLACE = "artifacts"
BESIDE = ("stderr.log", "log.stderr")  # the second: where an older supervisor wrote it


class LeftFile(msgspec.Struct, frozen=True, kw_only=True):
    """A file of a task, by its path below the directory of the task."""

    path: str
    size: int


def left_files(home: Home, uid: str) -> list[LeftFile]:
    """What is there, so many at most."""
    return [LeftFile(path=path, size=size) for path, size, _, _ in _files(home, uid)]


def open_left(home: Home, uid: str, path: str) -> BinaryIO:
    """One of them."""
    for each, _, name, directory in _files(home, uid):
        if each == path:
            try:
                return open(os.open(name, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK, dir_fd=directory), "rb")
            except OSError as exc:
                raise NotFound(f"{uid} has no file `{path}` that can be read: {exc.strerror}") from exc
    raise NotFound(f"{uid} has no file `{path}` here")


def _files(home: Home, uid: str) -> Iterator[tuple[str, int, str, int]]:
    """Of each what it is called, its size, its name in its directory, and that directory while it is looked at."""
    top, number = home.task_dir(uid), 0
    if not top.is_dir():
        return
    for root, names, found, directory in os.fwalk(top):
        names[:] = sorted(names) if root != str(top) else [name for name in names if name == PLACE]
        for name in sorted(found if root != str(top) else set(BESIDE).intersection(found)):
            size = _size(name, directory)
            if size is None:
                continue
            number += 1
            if number > MOST:
                return
            path = str(Path(root, name).relative_to(top))
            yield path.encode("utf-8", "surrogateescape").decode("utf-8", "replace"), size, name, directory


def _size(name: str, directory: int) -> int | None:
    """None of what is no file, or is gone."""
    try:
        found = os.stat(name, dir_fd=directory, follow_symlinks=False)
    except FileNotFoundError:
        return None
    return found.st_size if stat.S_ISREG(found.st_mode) else None
