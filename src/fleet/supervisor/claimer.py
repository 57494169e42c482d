"""The claimer: fills all free slots at once with ready tasks."""

from __future__ import annotations

import contextlib
from collections.abc import Sequence
from typing import Any

from fleet.errors import Conflict, NotFound, UsageError
from fleet.model.session import Claimed, Slot
from fleet.model.task import TaskEdit
from fleet.store import taskfile
from fleet.supervisor.house import House, OnlyVerify

LOOKED_AT = 1000


class Claimer:
    """Claims for one supervisor."""

    def __init__(self, house: House) -> None:
        self._house = house

    async def run_once(self, busy: Sequence[str]) -> list[Claimed]:
        """Claim for every slot that is not busy; nothing when there is none.

        `busy` has a name for each session that runs. One that was taken over from another may have a name twice.
        """
        house = self._house
        wanted = house.slots
        free = [name for name in (f"local#{n}" for n in range(1, wanted + 1)) if name not in busy]
        free = free[: max(0, wanted - len(busy))]
        if not free:
            return []
        if isinstance(house.only, OnlyVerify):
            return await self._verify(house.only.task, free[0])
        paused, runs = house.paused(), house.runs()
        for run in runs or (None,):
            await self._take_file_edits(len(free), paused, run)
        slots = [
            Slot(worker=name, host=house.machine, runs=runs, paused_coders=paused, shares=house.shares) for name in free
        ]
        claimed = await house.store.claim(house.name, slots, house.defaults)
        for found in claimed:
            house.at("taken")
            house.log("task_claimed", task=found.task.uid, session=found.session.id, coder=found.session.coder)
        return claimed

    async def _verify(self, uid: str, name: str) -> list[Claimed]:
        """The one task whose verifier is to run, if it is due."""
        slot = Slot(worker=name, host=self._house.machine, paused_coders=self._house.paused())
        found = await self._house.store.claim_verify(self._house.name, uid, slot, self._house.defaults)
        return [found] if found is not None else []

    async def _take_file_edits(self, n: int, paused: frozenset[str], run: str | None) -> None:
        """What people changed by hand in the task.json of those that come next."""
        default = self._house.defaults.coder
        for task in self._house.store.ready(limit=LOOKED_AT if paused else n, run=run):
            if (task.coder or default) in paused or task.host not in (None, self._house.machine):
                continue
            n -= 1
            if n < 0:
                return
            try:
                edits: dict[str, Any] = taskfile.edits(self._house.home, task)
                if edits:
                    if edits.get("coder"):
                        self._house.coder(edits["coder"])
                    after = await self._house.store.edit(task.uid, TaskEdit(**edits), by="task.json")
                    taskfile.write(self._house.home, after)
            except (UsageError, NotFound) as exc:
                with contextlib.suppress(Conflict):  # it was claimed or changed by another in between
                    await self._house.store.block(task.uid, "needs_human", f"task.json: {exc}", by=self._house.name)
