"""When the screen looks: at once when the bell rings, seldom when it does not; and never in the way of the keys."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Awaitable, Callable
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, ParamSpec, TypeVar

from fleet.cli.words import when
from fleet.errors import FleetError

if TYPE_CHECKING:
    from fleet.cli.screen.desk import AnyDesk
    from fleet.projections.board import Board
    from fleet.projections.cost import Cost
    from fleet.store.engine import Bell

P = ParamSpec("P")
T = TypeVar("T")
POLL_SECONDS = 5.0  # the safety net: a supervisor that was killed rings no bell
TICK_SECONDS = 1.0  # while something runs, its times are drawn anew
SLOW_SECONDS = 3.0  # after which a look is late
SPENT_SECONDS = 10.0  # between two looks at what was spent
REST_SECONDS = 0.2  # many commits make one look


class Looking:
    """Keeps a board up to date. A store that cannot be read is tried again; what was seen last stays."""

    def __init__(self, desk: AnyDesk, clock: Callable[[], int], poll_seconds: float = POLL_SECONDS) -> None:
        self.board: Board | None = None
        self.spent: Cost | None = None  # None: it is not known
        self.trouble = ""
        self._desk = desk
        self._clock = clock
        self._poll_seconds = poll_seconds
        self._bell: Bell | None = None
        self._spent_at = float("-inf")
        self._rung = asyncio.Event()
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="desk")

    async def run(self, seen: Callable[[], Awaitable[None]], tick: Callable[[], None]) -> None:
        """Look again and again: `seen` after each look, `tick` when only time has passed."""
        loop, looked = asyncio.get_running_loop(), 0.0
        while True:
            if self._rung.is_set() or self.board is None or loop.time() - looked >= self._poll_seconds:
                self._rung.clear()
                await self._look_on(tick)
                looked = loop.time()
                await seen()
            else:
                tick()
            if loop.time() - self._spent_at >= SPENT_SECONDS:  # after the board: nothing waits for it
                await self._look_spent()
                self._spent_at = loop.time()
                tick()
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(self._pause()):
                    await self._rung.wait()
            await asyncio.sleep(REST_SECONDS)

    def wake(self) -> None:
        """Look now."""
        self._rung.set()

    async def call(self, verb: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        """Do something at the desk, off the loop, one thing after another: a slow store does not freeze the screen."""
        loop = asyncio.get_running_loop()
        return await loop.run_in_executor(self._thread, lambda: verb(*args, **kwargs))

    def close(self) -> None:
        """Let go of everything."""
        self._listen(None)
        self._thread.submit(self._desk.close)
        self._thread.shutdown(wait=False)

    def _pause(self) -> float:
        """While nothing runs, no time on the screen is in a hurry."""
        return TICK_SECONDS if self.board is not None and self.board.running else self._poll_seconds

    async def _look_on(self, tick: Callable[[], None]) -> None:
        """Look; what does not answer is told of while it is waited for."""
        async with asyncio.TaskGroup() as group:
            look = group.create_task(self._look())
            while not (await asyncio.wait({look}, timeout=SLOW_SECONDS))[0]:
                self.trouble = self._troubled("it is waited for")
                tick()

    async def _look(self) -> None:
        try:
            self.board = await self.call(self._desk.look, self._clock())
            self.trouble = ""
        except (FleetError, OSError) as exc:
            self.trouble = self._troubled(str(exc))
        self._listen(self._desk.bell)

    async def _look_spent(self) -> None:
        """What cannot be had is not known; that the store does not answer is told by the board."""
        try:
            self.spent = await self.call(self._desk.spent, self._clock())
        except (FleetError, OSError):
            self.spent = None

    def _troubled(self, why: str) -> str:
        since = f" (shown as of {when(self.board.at)[11:]})" if self.board else ""
        return f"{self._desk.what}{since}: {why}"

    def _listen(self, bell: Bell | None) -> None:
        """Hear this bell from now on, and no other."""
        if bell is self._bell:
            return
        loop = asyncio.get_running_loop()
        if self._bell is not None:
            loop.remove_reader(self._bell.fileno())
            with contextlib.suppress(OSError, FleetError):  # its home may be gone
                self._bell.close()
        self._bell = bell
        if bell is not None:
            loop.add_reader(bell.fileno(), self._ring)

    def _ring(self) -> None:
        if self._bell is not None:
            self._bell.wait(0)
        self._rung.set()
