"""The hub: one reader of the feed for all clients of the events.

However many follow, the ledger is read once, each event becomes bytes once, and the same bytes go to everybody. A
client that does not keep up is let go with the position from which it can go on; nothing is kept for it.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections import deque
from collections.abc import AsyncGenerator, Awaitable, Callable
from typing import TYPE_CHECKING, TypeVar

import msgspec

from fleet.errors import FleetError
from fleet.model.event import kind_of
from fleet.store.reads import Batch, Reads, order_of

if TYPE_CHECKING:
    from fleet.model.event import Entry
    from fleet.store.engine import Bell

T = TypeVar("T")
Ask = Callable[[Callable[[Reads], T]], Awaitable[T]]

HEARTBEAT_SECONDS = 15.0
POLL_SECONDS = 1.0  # the safety net; the bell wakes us at once
GAP_SECONDS = 0.25  # at most, between two sendings
GAP_FOR_EACH = 0.00025  # that each client adds to it: what a sending to it costs, and some room
MOST_WAITING = 1 << 20  # bytes that a client may be behind
AT_ONCE = 100  # events that are read together
HEARTBEAT = b": still here\n\n"
BEGIN = b"retry: 1000\n\n"  # milliseconds, before a client comes back by itself

Order = tuple[int, ...]


def line_of(entry: Entry, position: str) -> bytes:
    """An event as an object: where it stands, and the stored bytes."""
    return b'{"position":"%s","seq":%d,"hash":"%s","event":%s}' % (
        position.encode(),
        entry.seq,
        entry.hash.hex().encode(),
        entry.body,
    )


def frame_of(entry: Entry, position: str) -> bytes:
    """An event as a server-sent one."""
    kind = kind_of(entry.event).encode()
    return b"id: %s\nevent: %s\ndata: %s\n\n" % (position.encode(), kind, line_of(entry, position))


class Client:
    """One that follows: what it has yet to be sent, and why it is let go."""

    def __init__(self, since: Order) -> None:
        self.since = since  # what it has read by itself
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
        self, reads: Reads, ask: Ask[Batch], *, max_streams: int, heartbeat_seconds: float = HEARTBEAT_SECONDS
    ) -> None:
        self.position = reads.end()
        self.generation = 0  # goes up with every commit that was heard of
        self.clients: set[Client] = set()
        self.streams = 0
        self.dropped = 0
        self._ask = ask
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

    async def follow(self, after: str | None) -> AsyncGenerator[bytes, None]:
        """What happens after a position (None: from now on), for one client, as long as it keeps up."""
        self.streams += 1
        try:
            yield BEGIN
            since = order_of(self.position)
            if after is not None:
                while True:
                    batch = await self._batch(after)
                    after = batch.position
                    if batch.entries:
                        yield b"".join(_frames(batch))
                    since = order_of(after)
                    if since >= order_of(self.position):  # nothing may wait between this and joining
                        break
            async with contextlib.aclosing(self._live(Client(since))) as live:  # it leaves when its client does
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
                    yield HEARTBEAT
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
                batch = await self._batch(self.position)
            except FleetError as exc:  # the database is away: clients are told, and it is asked again
                body = msgspec.json.encode({"detail": str(exc)})
                self._send(b"event: stream.error\ndata: %s\n\n" % body)
                return
            if not batch.entries:
                return
            self.position = batch.position
            frames = list(_frames(batch))
            orders = [order_of(position) for position in batch.positions]
            data = b"".join(frames)
            for client in self.clients:
                if client.since >= orders[0]:  # it has read some of them by itself
                    later = (frame for order, frame in zip(orders, frames, strict=True) if order > client.since)
                    client.put(b"".join(later))
                else:
                    client.put(data)

    def _send(self, data: bytes) -> None:
        for client in self.clients:
            client.put(data)

    async def _batch(self, after: str) -> Batch:
        return await self._ask(lambda reads: reads.feed(after, limit=AT_ONCE))


def _frames(batch: Batch) -> list[bytes]:
    return [frame_of(entry, at) for entry, at in zip(batch.entries, batch.positions, strict=True)]
