"""The desk: what every handler works with. Questions and verbs are carried out beside the loop, never in it."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, TypeVar

import msgspec

from fleet.api.hub import Hub
from fleet.api.once import Once
from fleet.api.spending import Sums
from fleet.config import tokens
from fleet.config.clock import utc_ms
from fleet.config.home import Home
from fleet.config.load import Current
from fleet.projections.whole import whole
from fleet.store.reads import Reads
from fleet.store.store import Store

if TYPE_CHECKING:
    from fleet.front.front import Front

T = TypeVar("T")
READERS = 4
REACHERS = 4
MOST_CACHED = 256

_encode = msgspec.json.Encoder().encode


def encode(value: object) -> bytes:
    """The same object that the command prints with --json."""
    return _encode(whole(value))


class Desk:
    """One for a server. `front` gives the verbs in somebody's name, over a store that may be fenced."""

    def __init__(
        self,
        home: Home,
        settings: Current,
        *,
        store: Store,
        front: Callable[[Store, str], Front],
        report: Callable[[str], object],
    ) -> None:
        self.home = home
        self.store = store
        self.front = front
        self._looks = front(store, "")
        self._report = report
        self.once = Once(home.requests)
        self.hub = Hub(store, self.ask, max_streams=settings().api.max_streams)
        self.settings = settings
        self.tokens = tokens.Current(home)
        self.began = utc_ms()
        self.sums = Sums(utc_ms)
        self.metered = Sums(utc_ms)  # apart: who collects does not wait for who asks about a year
        self._cached: dict[str, bytes] = {}
        self._cached_at = -1
        self._asking = ThreadPoolExecutor(READERS, "api-ask")
        self._reaching = ThreadPoolExecutor(REACHERS, "api-reach")  # what takes long holds up no other look
        self._acting = ThreadPoolExecutor(1, "api-act")  # one after the other: fleet.jsonl has one writer here

    def close(self) -> None:
        """Let go of the store, after what was begun."""
        self._asking.shutdown()
        self._reaching.shutdown()
        self._acting.shutdown()
        self.hub.close()
        self.store.close()

    async def ask(self, question: Callable[[Reads], T]) -> T:
        """Put a question to the store."""
        return await asyncio.get_running_loop().run_in_executor(self._asking, question, self.store)

    async def look(self, question: Callable[[Front], T]) -> T:
        """Put a question to the front."""
        return await asyncio.get_running_loop().run_in_executor(self._asking, question, self._looks)

    async def reach(self, question: Callable[[Front], T]) -> T:
        """The same, of a question that may take long: a machine is asked for it, or much is read."""
        return await asyncio.get_running_loop().run_in_executor(self._reaching, question, self._looks)

    async def seen(self, about: Callable[[Reads], str], question: Callable[[Front], T]) -> tuple[T, int]:
        """The same, and the sequence of the newest event of what it is about: from before, so that it is no newer."""

        def look(reads: Reads) -> tuple[T, int]:
            seq = reads.newest(about(reads))
            return question(self._looks), seq

        return await self.ask(look)

    async def act(self, verb: Callable[[], T]) -> T:
        """Do something that changes things."""
        done = await asyncio.get_running_loop().run_in_executor(self._acting, verb)
        self.hub.generation += 1
        return done

    async def cached(self, name: str, question: Callable[[Reads], object]) -> bytes:
        """The encoded answer to a question that rows alone decide: asked again when something was committed since."""
        self.hub.heard()
        if self._cached_at != self.hub.generation or len(self._cached) >= MOST_CACHED:
            self._cached, self._cached_at = {}, self.hub.generation
        found = self._cached.get(name)
        if found is None:
            kept = self._cached  # of this generation, whatever comes meanwhile
            found = kept[name] = await self.ask(lambda reads: encode(question(reads)))
        return found

    def failed(self, exc: BaseException, where: str) -> None:
        """Tell the operator of something that nobody expected."""
        self._report(words_of(exc, where))


def words_of(exc: BaseException, where: str) -> str:
    """Something that nobody expected, and where it happened."""
    import traceback

    place = traceback.extract_tb(exc.__traceback__)[-1]
    return f"error: {where}: {type(exc).__name__}: {exc} ({place.filename}:{place.lineno})"
