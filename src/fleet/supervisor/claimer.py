"""The claimer: fills all free slots at once with ready tasks."""

from __future__ import annotations

from typing import Any

from fleet.errors import FleetError
from fleet.model.session import Claimed, Slot
from fleet.model.task import TaskEdit
from fleet.store import taskfile
from fleet.supervisor.house import House


class Claimer:
    """Claims for one supervisor."""

    def __init__(self, house: House) -> None:
        self._house = house

    async def run_once(self, busy: set[str]) -> list[Claimed]:
        """Claim for every slot that is not busy; nothing when there is none."""
        house = self._house
        wanted = house.settings.supervisor.max_concurrent
        free = [name for name in (f"local#{n}" for n in range(1, wanted + 1)) if name not in busy]
        free = free[: max(0, wanted - len(busy))]
        if not free:
            return []
        await self._take_file_edits(len(free))
        paused = house.paused()
        slots = [Slot(worker=name, host=house.machine, paused_coders=paused) for name in free]
        claimed = await house.store.claim(house.name, slots, house.defaults)
        for found in claimed:
            house.log("task_claimed", task=found.task.uid, session=found.session.id, coder=found.session.coder)
        return claimed

    async def _take_file_edits(self, n: int) -> None:
        """What people changed by hand in the task.json of those that come next."""
        for task in self._house.store.ready(limit=n):
            try:
                edits: dict[str, Any] = taskfile.edits(self._house.home, task)
                if edits:
                    if edits.get("coder"):
                        self._house.coder(edits["coder"])
                    after = await self._house.store.edit(task.uid, TaskEdit(**edits), by="task.json")
                    taskfile.write(self._house.home, after)
            except FleetError as exc:
                await self._house.store.block(task.uid, "needs_human", f"task.json: {exc}", by=self._house.name)
