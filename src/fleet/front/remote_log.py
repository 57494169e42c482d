"""A log that is elsewhere, as if it were a file here."""

from __future__ import annotations

import io
from typing import Any

from fleet.errors import Conflict
from fleet.front.client import Client

PIECE = 1 << 20  # bytes that are asked for at once


class RemoteBytes(io.RawIOBase):
    """A log elsewhere, read in pieces as if it were a file here, up to the size that it had when it was opened."""

    def __init__(self, client: Client, task: str, size: int) -> None:
        self._client = client
        self._task = task
        self._size = size
        self._at = 0

    def readable(self) -> bool:
        """It is."""
        return True

    def seekable(self) -> bool:
        """It is."""
        return True

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        """Go to a place."""
        base = {io.SEEK_SET: 0, io.SEEK_CUR: self._at, io.SEEK_END: self._size}[whence]
        self._at = max(0, base + offset)
        return self._at

    def readinto(self, buffer: Any) -> int:
        """The next piece."""
        most = min(len(buffer), self._size - self._at, PIECE)
        if most <= 0:
            return 0
        data = self._client.bytes_of("tasks", self._task, "log", "bytes", offset=self._at, limit=most)
        if not data:
            raise Conflict(f"the log of {self._task} became shorter while it was read", hint="ask again")
        buffer[: len(data)] = data
        self._at += len(data)
        return len(data)
