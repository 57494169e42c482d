"""The rescuer: takes over the sessions of supervisors that are gone."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Container

from fleet.config.clock import Clock, steady_ms
from fleet.errors import Conflict, LeaseLost
from fleet.model.outcome import OutcomeKind
from fleet.model.session import Session, pool_of
from fleet.model.supervisor import Supervisor
from fleet.supervisor.guard import is_supervising
from fleet.supervisor.house import House, OnlyPools, OnlyVerify
from fleet.supervisor.remaining import queued

SET_BACK_MS = 1000  # by less, a clock is only kept right


class Rescuer:
    """Takes over what is within our reach, and gives each session to `start`, which goes on with it."""

    def __init__(
        self, house: House, start: Callable[[Session], None], driven: Container[str], *, clock: Clock = steady_ms
    ) -> None:
        self._house = house
        self._start = start
        self._clock = clock  # one that nobody sets
        self._driven = driven  # the sessions that somebody here goes on with already
        self._ahead: int | None = None  # of the clock that nobody sets: the store's
        self._lapsed_at: dict[str, int] = {}  # since when leases are seen to have ended

    async def run_once(self) -> None:
        """Say who is gone, and take over what they left. Those that are taken at the same time share a commit."""
        await self._expire()
        await self._mend_waits()
        self._recall_limits()
        await asyncio.gather(*(self._adopt(orphan.id) for orphan in self._orphans()))
        for ours in self._house.store.sessions(live=True, supervisor=self._house.name):
            if ours.id not in self._driven:  # a claim that was committed, though its answer was lost
                self._house.log("session_found", session=ours.id)
                self._start(ours)

    async def _expire(self) -> None:
        """Say of whom the lease has ended that they are gone. Where it ends in time, that clock may have been set:
        whoever lives has renewed it before half of ours has passed. Here, we see whether its process lives."""
        house, now = self._house, self._clock()
        lapsed = house.store.lapsed()
        self._lapsed_at = {one.id: self._lapsed_at.get(one.id, now) for one in lapsed}
        late = now - house.lease_seconds * 500
        ended = [one.id for one in lapsed if self._lapsed_at[one.id] <= late or house.alone or self._is_dead(one)]
        for gone in await house.store.expire(by=house.name, only=ended) if ended else ():
            self._lapsed_at.pop(gone.id, None)
            house.log("supervisor_gone", supervisor=gone.id)

    def _is_dead(self, supervisor: Supervisor) -> bool:
        return supervisor.machine == self._house.place and not is_supervising(self._house.home.path, supervisor.id)

    def is_watching(self) -> bool:
        """Whether something will be ours to take, unless its supervisor gives a sign of life."""
        found = self._house.store.sessions(live=True) if self._lapsed_at else []
        return bool(self._within_reach([one for one in found if one.supervisor in self._lapsed_at]))

    async def _mend_waits(self) -> None:
        """When we begin, and once the clock was set back: what waits for its time would wait for that much longer."""
        house, before = self._house, self._ahead
        self._ahead = house.store.now() - self._clock()
        if before is None or self._ahead < before - SET_BACK_MS:
            for task in await house.store.mend_waits(by=house.name):
                house.log("wait_mended", task=task.uid, not_before=task.not_before)

    def _orphans(self) -> list[Session]:
        """The open sessions without a supervisor that are ours to take."""
        return self._within_reach(self._house.store.orphans())

    def _within_reach(self, found: list[Session]) -> list[Session]:
        store, only = self._house.store, self._house.only
        if isinstance(only, OnlyVerify):
            found = [orphan for orphan in found if orphan.task == only.task]
        if isinstance(only, OnlyPools):
            found = [orphan for orphan in found if pool_of(store.task(orphan.task).capabilities)]
        if not found:
            return []
        near = {one.id for one in store.supervisors(present=False) if one.machine == self._house.place}
        runs = self._house.runs()
        return [orphan for orphan in found if orphan.supervisor in near and (runs is None or orphan.run in runs)]

    async def _adopt(self, orphan: str) -> None:
        house = self._house
        try:
            adopted = await house.store.adopt(orphan, house.name)
        except LeaseLost:
            raise
        except Conflict as exc:  # another was first
            house.log("not_adopted", session=orphan, error=str(exc))
            return
        house.log("session_adopted", session=adopted.id, epoch=adopted.epoch)
        house.at("adopted")
        self._start(adopted)

    def _recall_limits(self) -> None:
        """The plan limits that were met before we began, or by others: they are in the tasks that wait for them."""
        now = self._house.store.now()
        for task in queued(self._house):
            if task.not_before is None or task.not_before <= now or not task.epoch:
                continue
            last = self._house.store.sessions(task=task.uid)[-1]
            if last.outcome == OutcomeKind.PLAN_LIMIT.value:
                self._house.pause(last.coder, task.not_before)
