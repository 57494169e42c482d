"""Collecting: the files that a session left become evidence, each kept under the sha256 of its content."""

from __future__ import annotations

import asyncio
import hashlib
import os
from pathlib import Path

import msgspec

from fleet.config.files import make_private
from fleet.errors import TransportError
from fleet.hosts.files import CHUNK, Seen, whole
from fleet.hosts.transport import Transport

TRIES = 3  # of a file that changes while it is read


class Bounds(msgspec.Struct, frozen=True, kw_only=True):
    """How much of one session is kept."""

    most_bytes: int = 64 << 20  # of one file
    most_bytes_of_all: int = 256 << 20
    most_files: int = 200


DEFAULT_BOUNDS = Bounds()


class Kept(msgspec.Struct, frozen=True, kw_only=True):
    """A file that is kept, or why it is not."""

    sha256: str | None
    size: int
    note: str = ""


class Shelf:
    """Where contents are kept: `<root>/<first two digits>/<sha256>`. What is there is never changed."""

    def __init__(self, root: Path) -> None:
        self.root = root

    def path(self, sha256: str) -> Path:
        """Where a content is, or would be."""
        if len(sha256) != 64 or not all(c in "0123456789abcdef" for c in sha256):
            raise ValueError(f"`{sha256}` is no sha256")
        return self.root / sha256[:2] / sha256

    def read(self, sha256: str) -> bytes:
        """A content. FileNotFoundError: it is not here."""
        return self.path(sha256).read_bytes()

    def put(self, data: bytes) -> str:
        """Keep a content; returns its sha256. Done again, it changes nothing."""
        name = hashlib.sha256(data).hexdigest()
        path = self.path(name)
        if path.exists() and path.stat().st_size == len(data):
            return name
        make_private(path.parent)
        temporary = path.with_name(f".{name}.{os.getpid()}.{os.urandom(4).hex()}")
        fd = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o400)
        try:
            with open(fd, "wb") as file:
                file.write(data)
                file.flush()
                os.fsync(file.fileno())
            temporary.replace(path)
        except OSError:
            temporary.unlink(missing_ok=True)
            raise
        return name


class Collector:
    """Keeps files of one session, within bounds."""

    def __init__(self, transport: Transport, shelf: Shelf, bounds: Bounds = DEFAULT_BOUNDS) -> None:
        self._transport = transport
        self._shelf = shelf
        self._bounds = bounds
        self._kept: dict[str, Kept] = {}
        self._bytes = 0

    async def keep(self, seen: Seen) -> Kept:
        """Keep a file as it is now; once, however often it is asked for."""
        if seen.path not in self._kept:
            self._kept[seen.path] = await self._keep(seen)
        return self._kept[seen.path]

    async def text(self, data: bytes) -> str:
        """Keep something that is no file of the session."""
        return await asyncio.to_thread(self._shelf.put, data)

    async def _keep(self, seen: Seen) -> Kept:
        bounds = self._bounds
        if len(self._kept) >= bounds.most_files:
            return Kept(sha256=None, size=seen.size, note=f"more than {bounds.most_files} files")
        most = min(bounds.most_bytes, bounds.most_bytes_of_all - self._bytes)
        try:
            data, steady = await self._read(seen.path, most)
        except TransportError:
            if await self._is_readable(seen.path):
                raise  # it is the host that did not answer
            return Kept(sha256=None, size=seen.size, note="it cannot be read")
        if len(data) > most:
            return Kept(sha256=None, size=max(seen.size, len(data)), note=f"larger than {most} bytes")
        self._bytes += len(data)
        note = "" if steady else "it changed while it was read"
        return Kept(sha256=await self.text(data), size=len(data), note=note)

    async def _is_readable(self, path: str) -> bool:
        done = await self._transport.run(["sh", "-c", 'test -r "$1"', "test", path])
        return done.code == 0

    async def _read(self, path: str, most: int) -> tuple[bytes, bool]:
        """What is in the file, and whether that is one state of it: what takes several reads is read twice.

        One that never rests is taken as it was read last.
        """
        data = await whole(self._transport, path, most)
        for _ in range(TRIES):
            if len(data) <= CHUNK or len(data) > most:
                return data, True
            before, data = data, await whole(self._transport, path, most)
            if before == data:
                return data, True
        return data, False
