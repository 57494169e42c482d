"""Clearing: the copies of a task's files that its hosts were given go from there, once nobody needs them.

Here is what is kept. A copy goes only where the content of every file in it is here too, in the directory of its task
or among the artifacts of receipts; what is nowhere else stays, and is told.
"""

from __future__ import annotations

import asyncio

from fleet.errors import Conflict
from fleet.hosts.collect import Shelf
from fleet.hosts.copies import Copies
from fleet.model.session import Session
from fleet.model.states import ENDED, LIVE
from fleet.policy.placement import task_there
from fleet.supervisor.carrying import has
from fleet.supervisor.house import House
from fleet.supervisor.site import Site


class Clearing:
    """Clears the hosts of one home."""

    def __init__(self, house: House) -> None:
        self._house = house
        self._kept: set[tuple[str, str]] = set()  # by host and name: those that cannot be taken away; said once

    async def run_once(self, site: Site, before: int, *, most: int) -> int:
        """Take away what is due on one host, and say of how many tasks that was.

        TransportError, TimeoutError: it did not answer.
        """
        copies, count = Copies(site.transport, site.state), 0
        async with asyncio.timeout(self._house.settings.timeouts.command_exec):
            names = await copies.names()
        for name in names:
            task = task_there(name, self.sessions)
            if task is None or (site.name, name) in self._kept or not self._is_due(site, task, before):
                continue  # of a task of another home, or not yet
            try:
                async with asyncio.timeout(self._house.settings.timeouts.command_exec):
                    await self._take(copies, name, task)
            except (Conflict, TimeoutError) as exc:
                self._keep(site, name, task, str(exc) or "to compare it takes too long")
                continue
            self._house.log("copies_removed", task=task, host=site.name)
            count += 1
            if count >= most:
                break
        return count

    def _is_due(self, site: Site, task: str, before: int) -> bool:
        """Whether the task has ended, and had sessions there that ended long ago."""
        store = self._house.store
        if store.task(task).state not in ENDED:
            return False
        there = [one for one in store.sessions(task=task) if self._house.hosts.is_at(one.host, site)]
        return bool(there) and all(one.state not in LIVE and (one.ended_at or before) < before for one in there)

    def sessions(self, task: str) -> list[Session]:
        """Of a task; none where it is not ours."""
        known = self._house.store.tasks_by_uid([task])
        return self._house.store.sessions(task=task) if known else []

    async def _take(self, copies: Copies, name: str, task: str) -> None:
        sums = await copies.sums(name)
        only_there = await asyncio.to_thread(self._not_here, task, sums)
        if only_there:
            raise Conflict(f"{only_there} is nowhere else")
        await copies.take(name, sums)

    def _not_here(self, task: str, sums: dict[str, str]) -> str:
        """The first file of a copy whose content is not here; in a thread, as it reads."""
        kept, shelf = self._house.home.task_dir(task), Shelf(self._house.home.artifacts)
        for name, digest in sums.items():
            if not shelf.path(digest).exists() and not has(kept, name, digest):
                return name
        return ""

    def _keep(self, site: Site, name: str, task: str, why: str) -> None:
        self._kept.add((site.name, name))
        self._house.log("copies_kept", task=task, host=site.name, reason=why)
