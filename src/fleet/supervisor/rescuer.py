"""The rescuer: takes over the sessions of supervisors that are gone."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from fleet.errors import Conflict, LeaseLost
from fleet.model.outcome import OutcomeKind
from fleet.model.session import Session, pool_of
from fleet.supervisor.house import House, OnlyPools, OnlyVerify, now_ms
from fleet.supervisor.remaining import queued


class Rescuer:
    """Takes over what is within our reach, and gives each session to `start`, which goes on with it."""

    def __init__(self, house: House, start: Callable[[Session], None]) -> None:
        self._house = house
        self._start = start

    async def run_once(self) -> None:
        """Say who is gone, and take over what they left. Those that are taken at the same time share a commit."""
        for gone in await self._house.store.expire(by=self._house.name):
            self._house.log("supervisor_gone", supervisor=gone.id)
        self._recall_limits()
        await asyncio.gather(*(self._adopt(orphan.id) for orphan in self._orphans()))

    def _orphans(self) -> list[Session]:
        """The open sessions without a supervisor that are ours to take."""
        store, only = self._house.store, self._house.only
        found = store.orphans()
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
        now = now_ms()
        for task in queued(self._house):
            if task.not_before is None or task.not_before <= now or not task.epoch:
                continue
            last = self._house.store.sessions(task=task.uid)[-1]
            if last.outcome == OutcomeKind.PLAN_LIMIT.value:
                self._house.pause(last.coder, task.not_before)
