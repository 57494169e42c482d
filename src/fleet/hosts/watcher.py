"""The watcher of a remote host: follows all its sessions over one channel, and picks up exactly where a cut left it.

The far side keeps nothing. Each time the channel is opened it is told how far every session is known here, to the byte;
what was on its way when a channel broke is told again, and only whole frames are believed.
"""

from __future__ import annotations

import asyncio
import contextlib
import re
import secrets
from collections.abc import AsyncGenerator, Callable
from typing import NamedTuple, cast

from fleet.errors import TransportError
from fleet.hosts.facts import Exit, parse_exit
from fleet.hosts.lines import LONGEST_LINE, Read, split_lines
from fleet.hosts.outbox import Request, parse_request
from fleet.hosts.session import HostedSession, program
from fleet.hosts.transport import Transport

SETTLE_SECONDS = 0.05  # sessions that begin together are taken into one opening of the channel
SILENT_SECONDS = 20.0  # the far side says something every five
RETRY_SECONDS = (0.2, 0.5, 1.0, 2.0, 5.0, 10.0, 15.0)
MOST_UNREAD = 8 * LONGEST_LINE  # of all sessions; beyond it the channel waits
CHUNK = 1 << 20  # of lines, handed out at once
LONGEST_HEADER = 512
HEADER = re.compile(rb"([a-z]+) ([A-Za-z0-9._-]+) ([0-9]+) ([0-9]+)")


class Frame(NamedTuple):
    """One thing that the far side told."""

    kind: str
    session: str
    offset: int
    data: bytes


class Watcher:
    """Follows the sessions below one directory of one host. `run` is the loop; it ends only by being cancelled."""

    def __init__(self, transport: Transport, root: str, *, log: Callable[..., object] = lambda *_, **__: None) -> None:
        self.heard_at: float | None = None  # by the loop's clock: when the host last gave a sign of life
        self.failed: str | None = None  # why the channel is closed, while it is
        self._transport = transport
        self._root = root
        self._log = log
        self._followed: dict[str, _Watched] = {}
        self._news = asyncio.Event()  # a session was added, or the last one left
        self._room = asyncio.Event()
        self._room.set()
        self._unread = 0

    def follow(self, hosted: HostedSession, *, cursor: int, requests: int) -> _Watched:
        """Begin with what comes after the cursor and that request."""
        watched = _Watched(self, hosted, cursor, requests)
        self._followed[hosted.session] = watched
        self._news.set()
        return watched

    async def run(self) -> None:
        """Keep the channel open, with all sessions that are followed; after a cut, open it again."""
        failures = 0
        while True:
            while not self._followed:
                self._news.clear()
                await self._news.wait()
            await asyncio.sleep(SETTLE_SECONDS)
            self._news.clear()
            heard = self.heard_at
            try:
                await self._until_news()
            except Exception as exc:  # also what the far side said and nobody expected: other hosts are followed on
                failures = 1 if self.heard_at != heard else failures + 1
                self.failed = str(exc) if isinstance(exc, TransportError) else f"{type(exc).__name__}: {exc}"
                self._log("host_silent", error=self.failed)
                await asyncio.sleep(RETRY_SECONDS[min(failures, len(RETRY_SECONDS)) - 1])

    async def _until_news(self) -> None:
        """Watch until a session is added, the last one has left, or the channel breaks."""
        both = [asyncio.ensure_future(self._watch()), asyncio.ensure_future(self._news.wait())]
        try:
            done, _ = await asyncio.wait(both, return_when=asyncio.FIRST_COMPLETED)
            for each in done:
                each.result()
        finally:
            for each in both:
                each.cancel()
            await asyncio.gather(*both, return_exceptions=True)

    async def _watch(self) -> None:
        """One opening of the channel. It never ends by itself."""
        mark = secrets.token_hex(8)
        words = [word for each in self._followed.values() for word in each.place()]
        argv = ["sh", "-c", program("watch.sh").decode(), "watch", self._root, mark, *words]
        frames = Frames(mark)
        async with contextlib.aclosing(cast("AsyncGenerator[bytes, None]", self._transport.stream(argv))) as chunks:
            try:
                while True:
                    async with asyncio.timeout(SILENT_SECONDS):
                        chunk = await anext(chunks)
                    for frame in frames.feed(chunk):
                        self._take(frame)
                    await self._room.wait()
            except StopAsyncIteration:
                raise TransportError("the watch on the host ended") from None
            except TimeoutError as exc:
                raise TransportError(f"the host gave no sign of life for {SILENT_SECONDS:.0f} s") from exc

    def _take(self, frame: Frame) -> None:
        self.heard_at = asyncio.get_running_loop().time()
        self.failed = None
        watched = self._followed.get(frame.session)
        if watched is not None:
            watched.take(frame)

    # for those that are followed

    def _counted(self, more: int) -> None:
        self._unread += more
        if self._unread > MOST_UNREAD:
            self._room.clear()
        else:
            self._room.set()

    def _forget(self, watched: _Watched) -> None:
        if self._followed.get(watched.session) is watched:
            del self._followed[watched.session]
            if not self._followed:
                self._news.set()  # nothing runs where nothing is followed: a channel keeps some machines awake


class _Watched:
    """One session, as far as it is known here."""

    def __init__(self, watcher: Watcher, hosted: HostedSession, cursor: int, requests: int) -> None:
        self.session = hosted.session
        self._watcher = watcher
        self._hosted = hosted
        self._cursor = cursor  # where the data begins: what is before it was read
        self._data = bytearray()
        self._after = requests  # that request was dealt with, as were those before it
        self._passes = False  # over what comes: nobody will read it but at the end, from the host itself
        self._requests: list[Request] = []
        self._exit: Exit | None = None
        self._gone = False
        self._changed = asyncio.Event()

    @property
    def printed(self) -> int:
        return self._cursor + len(self._data)

    async def read(self, cursor: int, *, ended: bool = False) -> Read:
        """The next lines. At the end the host itself is asked, unless its record of the end said that all is here."""
        if self._passes:
            return await self._hosted.read(cursor, ended=True) if ended else Read((), cursor)
        self._drop(cursor)
        cut = self._data.rfind(b"\n", 0, CHUNK) + 1 or self._data.find(b"\n", 0, LONGEST_LINE) + 1
        if cut or len(self._data) >= LONGEST_LINE:
            piece = bytes(self._data[: cut or LONGEST_LINE])
            return split_lines(cursor, piece, rest=not cut, more=len(self._data) > len(piece))
        if not ended:
            return Read((), cursor)
        if self._exit is not None and self._exit.swept:
            return split_lines(cursor, bytes(self._data), rest=True)
        return await self._hosted.read(cursor, ended=True)

    def pass_over(self) -> None:
        self._passes = True
        self._drop(self.printed)

    async def exit(self) -> Exit | None:
        return self._exit

    def vanished(self) -> bool:
        return self._gone and self._exit is None

    async def requests(self, after: int, *, ended: bool = False) -> list[Request]:
        """What was told. At the end the host itself is asked, as for the lines."""
        self._after = max(self._after, after)
        self._requests = [each for each in self._requests if each.number > after]
        if self._requests or not ended or (self._exit is not None and self._exit.swept):
            return list(self._requests)
        return await self._hosted.requests(after)

    async def changed(self, seconds: float) -> None:
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await self._changed.wait()
        self._changed.clear()

    def wake(self) -> None:
        self._changed.set()

    def close(self) -> None:
        self._watcher._forget(self)
        self._watcher._counted(-len(self._data))
        self._data.clear()

    # what comes

    def place(self) -> tuple[str, str, str]:
        """How far it is known, for the far side."""
        told = self._requests[-1].number if self._requests else self._after
        return self.session, str(self.printed), str(told)

    def take(self, frame: Frame) -> None:
        match frame.kind:
            case "out":
                known = self.printed - frame.offset
                if known < 0:
                    raise TransportError(f"the watch on the host left out a part of session {self.session}")
                new = frame.data[known:]
                self._data += new
                self._watcher._counted(len(new))
                if self._passes:
                    self.pass_over()
            case "request":
                told = self._requests[-1].number if self._requests else self._after
                if frame.offset == told + 1:
                    self._requests.append(parse_request(frame.offset, frame.data))
            case "exit":
                self._exit = parse_exit(frame.data) or self._exit
            case "gone":
                self._gone = True
        self._changed.set()

    def _drop(self, cursor: int) -> None:
        """Forget what was read. A cursor beyond what is here was read from the host itself."""
        gone = min(cursor - self._cursor, len(self._data))
        if gone > 0:
            del self._data[:gone]
            self._watcher._counted(-gone)
        self._cursor = max(self._cursor, cursor)


class Frames:
    """Cuts what the far side says into frames. One that is not as it should be breaks the channel."""

    def __init__(self, mark: str) -> None:
        self._end = f"\n{mark}\n".encode()
        self._data = bytearray()

    def feed(self, chunk: bytes) -> list[Frame]:
        """The frames that are whole by now."""
        self._data += chunk
        found = []
        while (frame := self._first()) is not None:
            found.append(frame)
        return found

    def _first(self) -> Frame | None:
        line_end = self._data.find(b"\n", 0, LONGEST_HEADER)
        if line_end < 0:
            if len(self._data) >= LONGEST_HEADER:
                raise TransportError("the watch on the host said what is no frame")
            return None
        header = HEADER.fullmatch(self._data, 0, line_end)
        if header is None:
            raise TransportError("the watch on the host said what is no frame")
        kind, session, offset, length = (word.decode() for word in header.groups())
        begin, end = line_end + 1, line_end + 1 + int(length)
        if len(self._data) < end + len(self._end):
            return None
        if self._data[end : end + len(self._end)] != self._end:
            raise TransportError("a file went away while the host read it")
        frame = Frame(kind, session, int(offset), bytes(self._data[begin:end]))
        del self._data[: end + len(self._end)]
        return frame
