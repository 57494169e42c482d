"""The desk: what every handler works with. Questions and verbs are carried out beside the loop, never in it."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, TypeVar

import msgspec

from fleet.api.hub import Hub
from fleet.api.once import Once
from fleet.config import tokens
from fleet.config.files import read_bytes
from fleet.config.home import Home
from fleet.config.load import load
from fleet.config.settings import Settings
from fleet.config.tokens import Token
from fleet.errors import ConfigError
from fleet.projections.whole import whole
from fleet.store.reads import Reads
from fleet.store.store import Store

if TYPE_CHECKING:
    from fleet.control.control import Control
    from fleet.control.specs import Coders

T = TypeVar("T")
READERS = 4
MOST_CACHED = 256

_encode = msgspec.json.Encoder().encode


def encode(value: object) -> bytes:
    """The same object that the command prints with --json."""
    return _encode(whole(value))


class Desk:
    """One for a server. `control` gives the verbs in somebody's name, over a store that may be fenced."""

    def __init__(
        self,
        home: Home,
        settings: Settings,
        *,
        store: Store,
        control: Callable[[Store, Settings, str], Control],
        coders: Callable[[Settings], Coders],
        base: str,
        report: Callable[[str], object],
    ) -> None:
        self.home = home
        self.store = store
        self.control = control
        self.coders = coders
        self.base = base  # where the relative directories of a spec begin
        self._report = report
        self.once = Once(home.requests)
        self.hub = Hub(store, self.ask, max_streams=settings.api.max_streams)
        self._settings = settings
        self._tokens: tuple[bytes | None, list[Token]] = (None, [])
        self._cached: dict[str, bytes] = {}
        self._cached_at = -1
        self._asking = ThreadPoolExecutor(READERS, "api-ask")
        self._acting = ThreadPoolExecutor(1, "api-act")  # one after the other: fleet.jsonl has one writer here

    def close(self) -> None:
        """Let go of the store, after what was begun."""
        self._asking.shutdown()
        self._acting.shutdown()
        self.hub.close()
        self.store.close()

    async def ask(self, question: Callable[[Reads], T]) -> T:
        """Put a question to the store."""
        return await asyncio.get_running_loop().run_in_executor(self._asking, question, self.store)

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
        import traceback

        place = traceback.extract_tb(exc.__traceback__)[-1]
        self._report(f"error: {where}: {type(exc).__name__}: {exc} ({place.filename}:{place.lineno})")

    def settings(self) -> Settings:
        """The settings as the file has them now; where it cannot be used, as they were."""
        try:
            self._settings = load(self.home)
        except ConfigError:
            return self._settings
        return self._settings

    def tokens(self) -> list[Token]:
        """The tokens that are good now: a line that was removed is good no longer."""
        data = read_bytes(self.home.tokens)
        if data != self._tokens[0] or data is None:
            self._tokens = (data, tokens.read(self.home))
        return self._tokens[1]
