"""The feeder: takes what an outside queue has ready into Fleet's own, and what people change there.

An issue is claimed there first, under our name, and enters Fleet's queue under its own id. So after a crash between
the two the claim is found again, and nobody else can have begun it.
"""

from __future__ import annotations

import asyncio
import contextlib
from concurrent.futures import ThreadPoolExecutor

import msgspec

from fleet.errors import Conflict, Fenced, FleetError, ProgramError
from fleet.model.states import OPEN
from fleet.sources.source import Source
from fleet.store import feedfile
from fleet.supervisor.guard import Guard
from fleet.supervisor.house import House
from fleet.supervisor.intake import Intake
from fleet.supervisor.reporter import Reporter
from fleet.supervisor.upkeep import Upkeep

LOOK_SECONDS = 0.5  # between two cheap looks: has something been touched?
POLL_SECONDS = 10.0  # between two real ones, where the cheap look says nothing
LONGEST_WAIT = 60.0  # after failures, and for how long a drain puts up with them


class Fed(msgspec.Struct, frozen=True):
    """What one round did."""

    told: int = 0
    changed: int = 0
    taken: int = 0
    left: int = 0  # ready there, and no room here
    waits: int = 0  # of ours, that moved while we looked: their turn is the next round


class Feeder:
    """Feeds one supervisor from one source. Of several supervisors of a home one feeds at a time."""

    def __init__(self, house: House, source: Source) -> None:
        self._house = house
        self._source = source
        self._pool = ThreadPoolExecutor(1, thread_name_prefix="fleet-source")
        self._reporter = Reporter(house, source, self._pool)
        self._intake = Intake(house, source, self._reporter)
        self._upkeep = Upkeep(house, source, self._reporter, self._intake)
        self.wake = asyncio.Event()
        self._idle = False  # the last round had nothing to do
        self._other_feeds = False
        self._failing_since = 0.0
        self._failures = 0
        self._error = ""
        self._newest = 0  # the newest event when the last round began

    async def run(self) -> None:
        """Feed until cancelled; while another supervisor of this home does, wait."""
        try:
            while True:
                guard = Guard(self._house.home.path / "feeder.lock")
                try:
                    guard.__enter__()
                except Conflict:
                    self._other_feeds = True
                    await asyncio.sleep(POLL_SECONDS)
                    continue
                self._other_feeds = False
                try:
                    await self._feed()
                finally:
                    guard.__exit__(None, None, None)
        finally:
            self._source.stop()
            self._pool.shutdown(wait=False, cancel_futures=True)

    def quiet(self) -> bool:
        """Whether nothing is to be had or told, or somebody else sees to it.

        Raises when the source has failed for too long to know.
        """
        if self._other_feeds:
            return True
        if self._failures and asyncio.get_running_loop().time() - self._failing_since > LONGEST_WAIT:
            raise ProgramError(f"the queue of bd cannot be read: {self._error}", hint="run `fleet doctor`")
        return self._idle and self._newest == self._newest_event()

    async def _feed(self) -> None:
        loop = asyncio.get_running_loop()
        look_at, seen = 0.0, None
        while True:
            self.wake.clear()
            try:
                touched = self._source.touched()
                if loop.time() >= look_at or touched != seen or self._reporter.news().told:
                    seen, self._idle = touched, False
                    look_at = loop.time() + (POLL_SECONDS if await self._round() else 0)
            except Exception as exc:
                self._fail(exc)
                await asyncio.sleep(min(LONGEST_WAIT, 0.5 * 2**self._failures))
                look_at = 0.0
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(LOOK_SECONDS):
                    await self.wake.wait()

    async def _round(self) -> bool:
        """One round, and what follows from it. True: there is nothing more to do for now."""
        newest = self._newest_event()
        fed = await self.run_once()
        if self._failures:
            self._house.log("queue_back", after=self._failures)
        self._failures = 0
        feedfile.write(self._house.home, left=fed.left)
        if fed.taken or fed.changed:
            self._house.wake.set()
        busy = bool(fed.told or fed.changed or fed.waits)
        self._newest, self._idle = newest, not (busy or fed.taken or fed.left)
        return not busy

    def _fail(self, exc: Exception) -> None:
        """A failure of the source, or one of ours that may pass, is shown and tried again; any other ends us."""
        ours = isinstance(exc, FleetError) and not isinstance(exc, ProgramError) and not exc.retryable
        if ours and (isinstance(exc, Fenced) or not isinstance(exc, Conflict)):
            raise exc
        self._failing_since = self._failing_since if self._failures else asyncio.get_running_loop().time()
        self._failures = min(10, self._failures + 1)
        self._error = str(exc) if isinstance(exc, FleetError | OSError) else f"{type(exc).__name__}: {exc}"
        self._house.log("queue_failed", error=self._error, times=self._failures)
        feedfile.write(self._house.home, error=self._error)

    def _newest_event(self) -> int:
        newest = self._house.store.last(1)
        return newest[-1].seq if newest else 0

    async def run_once(self) -> Fed:
        """Tell, then look, then take."""
        told = await self._reporter.run_once()
        listed = {issue.id: issue for issue in await self._reporter.ask(self._source.listed)}
        ours = [task for task in self._house.store.tasks(OPEN) if self._reporter.is_ours(task)]
        mine = [issue for issue in listed.values() if issue.is_claimed_by(self._source.name)]
        changed = waits = 0
        for task in ours:
            if self._reporter.has_told(task.uid):
                changed += await self._upkeep.follow(task, listed)
            else:
                waits += 1
        for issue in mine:  # one of them may never have entered: a crash came between
            if self._reporter.has_told(issue.id):  # not one that was held just now
                changed += await self._intake.enter(issue)
        taken, left = await self._intake.take_ready()
        return Fed(told=told, changed=changed, taken=taken, left=left, waits=waits)
