"""The hub: one reader of the feed for all clients of the events.

However many follow, the ledger is read once, each event becomes bytes once, and the same bytes go to everybody. A
client that does not keep up is let go with the position from which it can go on; nothing is kept for it.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections import deque
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterable
from typing import TYPE_CHECKING, TypeVar

import msgspec

from fleet.errors import FleetError
from fleet.model.event import Entry, kind_of
from fleet.projections.happened import EVERYTHING, Names, Only, Piece
from fleet.store.reads import Reads, order_of

if TYPE_CHECKING:
    from fleet.projections.happened import Happened
    from fleet.store.engine import Bell

T = TypeVar("T")
Ask = Callable[[Callable[[Reads], T]], Awaitable[T]]

HEARTBEAT_SECONDS = 5.0  # a few bytes, so that a client soon knows of a server that is frozen
POLL_SECONDS = 1.0  # the safety net; the bell wakes us at once
GAP_SECONDS = 0.25  # at most, between two sendings
GAP_FOR_EACH = 0.00025  # that each client adds to it: what a sending to it costs, and some room
MOST_WAITING = 1 << 20  # bytes that a client may be behind
AT_ONCE = 100  # events that are read together
MOST_PASSED_OVER = 1000  # and where a client wants few of them
HEARTBEAT = b": still here\n\n"
BEGIN = b"retry: 1000\n\n"  # milliseconds, before a client comes back by itself

Order = tuple[int, ...]


def line_of(one: Happened) -> bytes:
    """An event as an object: where it stands, the task that it is about, and the stored bytes."""
    return b'{"position":"%s","seq":%d,"hash":"%s","about":%s,"event":%s}' % (
        one.position.encode(),
        one.entry.seq,
        one.entry.hash.hex().encode(),
        msgspec.json.encode(one.about),
        one.entry.body,
    )


def lines_of(reads: Reads, entries: Iterable[Entry]) -> bytes:
    """Events as a list of such objects."""
    placed = ((entry, place[1]) for entry in entries if (place := reads.place(entry.seq)))
    return b"[%s]" % b",".join(map(line_of, Names().placed(reads, placed)))


def frame_of(one: Happened) -> bytes:
    """An event as a server-sent one."""
    kind = kind_of(one.entry.event).encode()
    return b"id: %s\nevent: %s\ndata: %s\n\n" % (one.position.encode(), kind, line_of(one))


class Client:
    """One that follows: what it has yet to be sent, and why it is let go."""

    def __init__(self, since: Order, only: Only = EVERYTHING) -> None:
        self.since = since  # what it has read by itself
        self.only = only  # what it wants
        self.waiting: deque[bytes] = deque()
        self.size = 0
        self.dropped = False
        self.wake = asyncio.Event()

    def put(self, data: bytes) -> None:
        """Have it sent, unless it is too far behind for more."""
        if self.dropped or not data:
            return
        if self.size and self.size + len(data) > MOST_WAITING:
            self.dropped = True
        else:
            self.waiting.append(data)
            self.size += len(data)
        self.wake.set()

    def take(self) -> bytes:
        """All that waits, at once."""
        data = b"".join(self.waiting)
        self.waiting.clear()
        self.size = 0
        self.wake.clear()
        return data


class Hub:
    """Reads the feed while it runs. `ask` puts a question to the store, beside the loop."""

    def __init__(
        self, reads: Reads, ask: Ask[Piece], *, max_streams: int, heartbeat_seconds: float = HEARTBEAT_SECONDS
    ) -> None:
        self.position = reads.end()
        self.generation = 0  # goes up with every commit that was heard of
        self.clients: set[Client] = set()
        self.streams = 0
        self.dropped = 0
        self._ask = ask
        self._names = Names()
        self._max_streams = max_streams
        self._heartbeat_seconds = heartbeat_seconds
        self._bell: Bell = reads.listen()
        self._rung = asyncio.Event()
        self._ended = False

    async def run(self) -> None:
        """Until `end`."""
        loop = asyncio.get_running_loop()
        loop.add_reader(self._bell.fileno(), self.heard)
        try:
            while not self._ended:
                await self._read_on()
                await asyncio.sleep(min(GAP_SECONDS, GAP_FOR_EACH * len(self.clients)))
                with contextlib.suppress(TimeoutError):
                    async with asyncio.timeout(POLL_SECONDS):
                        await self._rung.wait()
                self._rung.clear()
        finally:
            loop.remove_reader(self._bell.fileno())

    def close(self) -> None:
        """Stop listening. The reader has ended, or never began."""
        self._bell.close()

    def heard(self) -> None:
        """Take the ring, if there was one. What was committed before is not the newest any more."""
        if not self._ended and self._bell.wait(0):
            self.generation += 1
            self._rung.set()

    def end(self) -> None:
        """Let everybody go; the reader ends."""
        self._ended = True
        self._rung.set()
        for client in self.clients:
            client.wake.set()

    @property
    def is_full(self) -> bool:
        """Whether one more client would be too many."""
        return self.streams >= self._max_streams

    async def follow(self, after: str | None, only: Only = EVERYTHING) -> AsyncGenerator[bytes, None]:
        """What happens after a position (None: from now on), for one client, as long as it keeps up.

        One that does not want all is told how far it has read: it may be given nothing to go on from for long.
        """
        self.streams += 1
        try:
            yield BEGIN
            since, names = order_of(self.position), Names()
            if after is not None:
                while True:
                    piece = await self._piece(after, names, only)
                    after = piece.position
                    if piece.happened:
                        yield b"".join(map(frame_of, piece.happened))
                    since = order_of(after)
                    if since >= order_of(self.position):  # nothing may wait between this and joining
                        break
            client = Client(since, only)
            if after is not None:
                client.put(_read_to(client, after))
            async with contextlib.aclosing(self._live(client)) as live:  # it leaves when its client does
                async for data in live:
                    yield data
        finally:
            self.streams -= 1

    async def _live(self, client: Client) -> AsyncGenerator[bytes, None]:
        self.clients.add(client)
        try:
            while not self._ended:
                try:
                    async with asyncio.timeout(self._heartbeat_seconds):
                        await client.wake.wait()
                except TimeoutError:
                    yield HEARTBEAT + _read_to(client, self.position)
                    continue
                data = client.take()
                if data:
                    yield data
                if client.dropped and not client.waiting:
                    self.dropped += 1
                    yield b'event: stream.dropped\ndata: {"detail":"too slow; go on with the last id"}\n\n'
                    return
        finally:
            self.clients.discard(client)

    async def _read_on(self) -> None:
        """All that has happened since the last look, to everybody."""
        while not self._ended:
            try:
                piece = await self._piece(self.position, self._names)
            except FleetError as exc:  # the database is away: clients are told, and it is asked again
                body = msgspec.json.encode({"detail": str(exc)})
                self._send(b"event: stream.error\ndata: %s\n\n" % body)
                return
            if not piece.happened:
                return
            self.position = piece.position
            frames = [(order_of(one.position), one, frame_of(one)) for one in piece.happened]
            data = b"".join(frame for _, _, frame in frames)
            for client in self.clients:
                if client.since >= frames[0][0] or client.only is not EVERYTHING:  # it has read some, or wants few
                    client.put(b"".join(f for at, one, f in frames if at > client.since and client.only.has(one)))
                else:
                    client.put(data)

    def _send(self, data: bytes) -> None:
        for client in self.clients:
            client.put(data)

    async def _piece(self, after: str, names: Names, only: Only = EVERYTHING) -> Piece:
        limit = AT_ONCE if only is EVERYTHING else MOST_PASSED_OVER
        return await self._ask(lambda reads: names.piece(reads, after, only=only, limit=limit))


def _read_to(client: Client, position: str) -> bytes:
    """For one that does not want all: how far was read for it, so that it need not begin anew when it comes back."""
    if client.only is EVERYTHING or order_of(position) < client.since:
        return b""
    return b"id: %s\n\n" % position.encode()
