"""Our ends of the three pipes of a session, as the event loop sees them: fed and read without a task or a thread."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable
from io import FileIO

from fleet.errors import TransportError
from fleet.hosts.transport import MOST_OUTPUT

CHUNK = 1 << 16


class TooMuch(TransportError):
    """It printed more than is collected, and was ended."""


class Pipes:
    """What goes to a program elsewhere and what comes from it. Who opened the files closes them, after `leave`."""

    def __init__(self, stdin: FileIO, stdout: FileIO, stderr: FileIO) -> None:
        self._stdin, self._stdout, self._stderr = stdin, stdout, stderr
        self._loop = asyncio.get_running_loop()
        self._came: dict[FileIO, list[bytes]] = {stdout: [], stderr: []}
        self._room = MOST_OUTPUT  # for what is collected
        for each in (stdin, stdout, stderr):
            os.set_blocking(each.fileno(), False)

    async def communicate(self, stdin: bytes, *, hold: bool) -> tuple[bytes, bytes]:
        """Feed stdin and collect the rest. `hold`: stdin stays open after the last byte. TooMuch: it has no end."""
        self._feed(stdin, hold=hold)
        stdout, stderr = await asyncio.gather(self._whole(self._stdout), self.said())
        return stdout, stderr

    async def read(self) -> bytes:
        """The next that is printed, not taken before it is wanted; b"" at the end."""
        while True:
            await ready(self._loop.add_reader, self._loop.remove_reader, self._stdout.fileno())
            if (chunk := self._stdout.read(CHUNK)) is not None:
                return chunk

    def said(self) -> asyncio.Future[bytes]:
        """All of stderr, once it has ended."""
        return self._whole(self._stderr)

    def so_far(self) -> tuple[bytes, bytes]:
        """What has been collected of stdout and stderr."""
        return b"".join(self._came[self._stdout]), b"".join(self._came[self._stderr])

    def leave(self) -> None:
        """Nobody looks at the pipes any more."""
        for each in (self._stdin, self._stdout, self._stderr):
            if not each.closed:
                self._loop.remove_reader(each)
                self._loop.remove_writer(each)

    def _feed(self, data: bytes, *, hold: bool) -> None:
        left = memoryview(data)

        def write() -> None:
            nonlocal left
            try:
                left = left[self._stdin.write(left) or 0 :]
            except OSError:  # that the far side reads no more is no error
                left = left[:0]
            if not left:
                self._loop.remove_writer(self._stdin)
                if not hold:
                    self._stdin.close()

        write()
        if left:
            self._loop.add_writer(self._stdin, write)

    def _whole(self, file: FileIO) -> asyncio.Future[bytes]:
        chunks = self._came[file]
        whole: asyncio.Future[bytes] = self._loop.create_future()

        def read() -> None:
            chunk = file.read(CHUNK)
            if chunk:
                chunks.append(chunk)
                self._room -= len(chunk)
                if self._room < 0 and not whole.done():
                    self._loop.remove_reader(file)
                    whole.set_exception(TooMuch())
            elif chunk is not None:
                self._loop.remove_reader(file)
                if not whole.done():
                    whole.set_result(b"".join(chunks))

        self._loop.add_reader(file, read)
        return whole


async def ready(add: Callable[..., object], remove: Callable[[int], object], fd: int) -> None:
    """Wait until a file can be read or written, by the two verbs of the loop for it."""
    event = asyncio.Event()
    add(fd, event.set)
    try:
        await event.wait()
    finally:
        remove(fd)
