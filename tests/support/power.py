"""A disk that remembers the order of what reaches it, so that the power can be cut at any step afterwards.

What was synced is there after the cut. Of what was not, each piece is there, is not, or is torn between two sectors:
a disk and a kernel promise nothing else.
"""

from __future__ import annotations

import contextlib
import os
import random
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import apsw

from fleet.store.sqlite import log

SECTOR = 512
NAME = "remembered"


class Write(NamedTuple):
    """Bytes of a file."""

    file: str
    offset: int
    data: bytes


class Truncate(NamedTuple):
    """A file is cut off there."""

    file: str
    size: int


class Delete(NamedTuple):
    """A file is gone."""

    file: str


class Sync(NamedTuple):
    """All of a file up to here is on the disk."""

    file: str


class Answer(NamedTuple):
    """Somebody was told that this is done."""

    what: str


Step = Write | Truncate | Delete | Sync | Answer


class Disk:
    """All that was written by way of SQLite, and every sync of ours."""

    def __init__(self) -> None:
        self.steps: list[Step] = []
        self._one = threading.Lock()

    def add(self, step: Step) -> None:
        """Of any thread: the order is that in which they came."""
        with self._one:
            self.steps.append(step)

    def answered(self, until: int) -> list[str]:
        """What somebody was told before a step."""
        return [step.what for step in self.steps[:until] if isinstance(step, Answer)]

    def cut(self, until: int, place: Path, chance: random.Random) -> None:
        """Make the files as the power may have left them when that many steps were taken."""
        synced: dict[str, int] = {}  # when each file was last
        listed = -1  # when the directory was: SQLite does that with the first sync of a file that is new
        for n, step in enumerate(self.steps[:until]):
            if isinstance(step, Sync):
                listed = listed if step.file in synced else n
                synced[step.file] = n
            elif isinstance(step, Delete):
                synced.pop(step.file, None)
        files: dict[str, bytearray] = {}
        for n, step in enumerate(self.steps[:until]):
            if isinstance(step, Sync | Answer):
                continue
            certain = n < (listed if isinstance(step, Delete) else synced.get(step.file, -1))
            if not certain and chance.random() < 0.5:
                continue
            if isinstance(step, Delete):
                files.pop(step.file, None)
                continue
            content = files.setdefault(step.file, bytearray())
            if isinstance(step, Truncate):
                del content[step.size :]
                content.extend(bytes(step.size - len(content)))
                continue
            data = step.data
            if not certain and chance.random() < 0.3:
                data = data[: chance.randrange(len(data) // SECTOR + 1) * SECTOR]
            content.extend(bytes(max(0, step.offset + len(data) - len(content))))
            content[step.offset : step.offset + len(data)] = data
        for name, content in files.items():
            (place / name).write_bytes(content)


class _File(apsw.VFSFile):
    def __init__(self, disk: Disk, base: str, name: str | apsw.URIFilename | None, flags: list[int]) -> None:
        super().__init__(base, name, flags)
        self._disk = disk
        self._name = os.path.basename(name if isinstance(name, str) else name.filename() if name else "")

    def xWrite(self, data: bytes, offset: int) -> None:
        super().xWrite(data, offset)
        self._disk.add(Write(self._name, offset, bytes(data)))

    def xTruncate(self, newsize: int) -> None:
        super().xTruncate(newsize)
        self._disk.add(Truncate(self._name, newsize))

    def xSync(self, flags: int) -> None:
        super().xSync(flags)
        self._disk.add(Sync(self._name))


class _Vfs(apsw.VFS):
    def __init__(self, disk: Disk, base: str) -> None:
        super().__init__(NAME, base)
        self._disk = disk
        self._base = base

    def xOpen(self, name: str | apsw.URIFilename | None, flags: list[int]) -> _File:
        return _File(self._disk, self._base, name, flags)

    def xDelete(self, filename: str, syncdir: bool) -> None:
        super().xDelete(filename, syncdir)
        self._disk.add(Delete(os.path.basename(filename)))


@contextlib.contextmanager
def remembered() -> Iterator[Disk]:
    """While this lasts, every database that is opened is on such a disk."""
    disk = Disk()

    def sync(fd: int) -> None:
        os.fsync(fd)
        disk.add(Sync(os.path.basename(os.readlink(f"/proc/self/fd/{fd}"))))

    before, ours = apsw.vfs_names()[0], log.sync_data
    vfs = _Vfs(disk, before)
    apsw.set_default_vfs(NAME)
    log.sync_data = sync
    try:
        yield disk
    finally:
        log.sync_data = ours
        apsw.set_default_vfs(before)
        vfs.unregister()
