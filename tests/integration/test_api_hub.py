"""The events of the API: one reader for all who follow, nothing left out, nothing twice, nobody waited for."""

from __future__ import annotations

import asyncio
import contextlib
import re
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path
from typing import TypeVar

from fleet.api.hub import BEGIN, HEARTBEAT, Hub
from fleet.projections.happened import Only
from fleet.store.reads import Reads
from fleet.store.store import Store
from fleet.testing.builders import a_task
from tests.support import homes

T = TypeVar("T")
SECONDS = 30


class Counted:
    """Puts questions to the store, and counts them."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self.count = 0

    async def ask(self, question: Callable[[Reads], T]) -> T:
        """At once: the store is here."""
        self.count += 1
        await asyncio.sleep(0)
        return question(self._store)


def ids(data: bytes) -> list[int]:
    """The positions in what a client was sent."""
    return [int(found) for found in re.findall(rb"^id: (\d+)$", data, re.MULTILINE)]


async def read(stream: AsyncIterator[bytes], last: int) -> list[int]:
    """What a client is sent, up to a position."""
    found: list[int] = []
    async with asyncio.timeout(SECONDS):
        async for data in stream:
            found += ids(data)
            if found and found[-1] >= last:
                return found
    return found


def on_a_hub(
    path: Path,
    body: Callable[[Hub, Store, Counted], Awaitable[None]],
    *,
    max_streams: int = 100,
    heartbeat_seconds: float = 15,
) -> None:
    """Run something with a hub that reads."""

    async def run() -> None:
        with homes.opened(homes.make(path / "home")) as store:
            counted = Counted(store)
            hub = Hub(store, counted.ask, max_streams=max_streams, heartbeat_seconds=heartbeat_seconds)
            reading = asyncio.create_task(hub.run())
            try:
                await body(hub, store, counted)
            finally:
                hub.end()
                await reading
                hub.close()

    asyncio.run(run())


def test_everybody_gets_everything_from_one_reader(tmp_path: Path) -> None:
    """Fifty clients get all events in order, and the store is asked no more often than for one."""

    async def body(hub: Hub, store: Store, counted: Counted) -> None:
        streams = [hub.follow(None) for _ in range(50)]
        for stream in streams:
            await anext(stream)
        clients = [asyncio.create_task(read(stream, 40)) for stream in streams]
        while len(hub.clients) < 50:
            await asyncio.sleep(0)
        for n in range(40):
            homes.add(store, str(n))
            await asyncio.sleep(0.001)
        assert await asyncio.gather(*clients) == [list(range(1, 41))] * 50
        assert counted.count <= 40 * 2 + 10, "once for an event and once to see that there is no more, at most"
        for stream in streams:
            await stream.aclose()
        assert (hub.streams, hub.clients) == (0, set())

    on_a_hub(tmp_path, body)


def test_a_client_goes_on_from_where_it_was(tmp_path: Path) -> None:
    """From a position, with events that come while it catches up: none is left out and none comes twice."""

    async def body(hub: Hub, store: Store, counted: Counted) -> None:
        homes.add(store, *(str(n) for n in range(1200)))
        readers = [asyncio.create_task(read(hub.follow(str(at)), 1300)) for at in (0, 7, 1100, 1200)]
        for n in range(100):
            homes.add(store, str(n))
            await asyncio.sleep(0)
        found = await asyncio.gather(*readers)
        assert found == [list(range(at + 1, 1301)) for at in (0, 7, 1100, 1200)]

    on_a_hub(tmp_path, body)


def test_a_client_that_does_not_keep_up_is_let_go(tmp_path: Path) -> None:
    """What waits for a client is bounded; past it the client gets what waits, the word that it was dropped, and ends.

    With its last id it then misses nothing.
    """

    async def body(hub: Hub, store: Store, counted: Counted) -> None:
        slow, quick = hub.follow(None), hub.follow(None)
        await anext(slow)
        await anext(quick)
        first = asyncio.create_task(anext(slow))
        quickly = asyncio.create_task(read(quick, 301))
        while len(hub.clients) < 2:
            await asyncio.sleep(0)
        homes.add(store, "first")
        found = ids(await first)
        for _ in range(3):
            homes.add(store, *["x"] * 100, description="x" * 10_000)
            await asyncio.sleep(0.05)
        assert await quickly == list(range(1, 302)), "the others are not held up"
        rest = b"".join([data async for data in slow])
        found += ids(rest)
        assert b"event: stream.dropped" in rest
        assert (found, hub.dropped) == (list(range(1, len(found) + 1)), 1)
        assert len(found) < 301
        assert await read(hub.follow(str(found[-1])), 301) == list(range(len(found) + 1, 302))

    on_a_hub(tmp_path, body)


def test_silence_is_broken_by_a_comment(tmp_path: Path) -> None:
    """Where nothing happens, a client still hears that the server is there."""

    async def body(hub: Hub, store: Store, counted: Counted) -> None:
        stream = hub.follow(None)
        await anext(stream)
        async with asyncio.timeout(SECONDS):
            assert await anext(stream) == HEARTBEAT

    on_a_hub(tmp_path, body, heartbeat_seconds=0.01)


def test_an_end_lets_everybody_go(tmp_path: Path) -> None:
    """When the server ends, streams end by themselves, and one too many is seen before it begins."""

    async def body(hub: Hub, store: Store, counted: Counted) -> None:
        stream = hub.follow(None)
        await anext(stream)
        assert hub.is_full
        waiting = asyncio.create_task(anext(stream))
        await asyncio.sleep(0)
        hub.end()
        with contextlib.suppress(StopAsyncIteration):
            async with asyncio.timeout(SECONDS):
                await waiting
        assert not hub.is_full

    on_a_hub(tmp_path, body, max_streams=1)


def test_one_that_wants_few_is_given_few(tmp_path: Path) -> None:
    """Of one task alone: what it has missed, how far that was read, what happens then, and silence about all others."""

    async def body(hub: Hub, store: Store, counted: Counted) -> None:
        ours, other = store.submit([a_task("ours"), a_task("other")], by="ana").result()
        store.comment(other.uid, "not wanted", by="ana").result()
        stream = hub.follow("0", Only(task=ours.uid))
        async with asyncio.timeout(SECONDS):
            assert await anext(stream) == BEGIN
            assert ids(await anext(stream)) == [1]
            assert await anext(stream) == b"id: 3\n\n"
            store.comment(other.uid, "not wanted", by="ana").result()
            store.comment(ours.uid, "wanted", by="ana").result()
            said = await anext(stream)
        assert (ids(said), b'"about":{"id":"%s","title":"ours"' % ours.uid.encode() in said) == ([5], True)

    on_a_hub(tmp_path, body)


def test_one_that_wants_few_hears_how_far_it_has_read(tmp_path: Path) -> None:
    """With the comment that breaks a silence comes the position up to which there was nothing for it."""

    async def body(hub: Hub, store: Store, counted: Counted) -> None:
        (task,) = store.submit([a_task("other")], by="ana").result()
        stream = hub.follow("0", Only(kinds=("run.created",)))
        store.comment(task.uid, "not wanted", by="ana").result()
        said = b""
        async with asyncio.timeout(SECONDS):
            while not said.endswith(HEARTBEAT + b"id: 2\n\n"):
                said = await anext(stream)

    on_a_hub(tmp_path, body, heartbeat_seconds=0.01)
