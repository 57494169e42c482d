"""The claimer: fills all free slots at once with ready tasks."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Sequence

from msgspec.structs import replace

from fleet.errors import Conflict, UsageError
from fleet.model.run import Run
from fleet.model.session import Claimed, Session, Slot, pool_of
from fleet.policy.placement import Crew, Withheld, crews_of, crews_of_pools, crews_of_run, offer
from fleet.supervisor import handwritten
from fleet.supervisor.house import House, OnlyPools, OnlyVerify

LOOKED_AT = 1000
RUNS_SECONDS = 1.0  # how old what we know of the workers of runs may be


class Claimer:
    """Claims for one supervisor."""

    def __init__(self, house: House) -> None:
        self._house = house
        self._runs: list[Run] = []  # those that are active and have workers of their own
        self._runs_at = 0.0
        self._withheld: dict[tuple[str, str], str] = {}

    async def run_once(self, running: Sequence[Session]) -> list[Claimed]:
        """Claim for every slot that is free; nothing when there is none. `running` are the sessions that we drive."""
        house = self._house
        if isinstance(house.only, OnlyVerify):
            return await self._verify(house.only.task) if not running else []
        runs = house.runs()
        crews = self._crews(runs)
        free = self._free_here(running, crews)
        if not free and not crews:
            return []
        paused = house.paused()
        like = Slot(worker="", host=house.machine, runs=runs, paused_coders=paused, shares=house.shares)
        slots = [replace(like, worker=name) for name in free]
        if crews:
            slots = self._everywhere(slots, crews, like)
        if not slots:
            return []
        for run in runs or (None,):
            await self._take_file_edits(len(slots), paused, run)
        claimed = await house.store.claim(house.name, slots, house.defaults)
        for found in claimed:
            house.at("taken")
            house.log("task_claimed", task=found.task.uid, session=found.session.id, coder=found.session.coder)
        return claimed

    def _free_here(self, running: Sequence[Session], crews: Sequence[Crew]) -> list[str]:
        """The names of free slots on this machine, but those of declared workers.

        A session that was taken over from another may have a name that one of ours has too: then both count.
        """
        house = self._house
        declared = {crew.name for crew in crews if not crew.host}
        here = [one.worker for one in running if one.host == house.machine]
        busy = [name for name in here if name.partition("#")[0] not in declared] if declared else here
        wanted = house.slots
        if len(busy) >= wanted:
            return []
        taken = frozenset(busy)  # looked at for every slot: with a thousand agents, many times a second
        free = [name for name in (f"local#{n}" for n in range(1, wanted + 1)) if name not in taken]
        return free[: wanted - len(busy)]

    def _crews(self, runs: frozenset[str] | None) -> tuple[Crew, ...]:
        """The workers beside the usual slots: those of the settings, and those that runs brought with them."""
        house = self._house
        now = asyncio.get_running_loop().time()
        if now >= self._runs_at:
            self._runs_at = now + RUNS_SECONDS
            self._runs = [run for run in house.store.active_runs() if run.workers]
        brought = [
            crew for run in self._runs if runs is None or run.id in runs for crew in crews_of_run(run, house.settings)
        ]
        used = {name for name, until in house.occupied.items() if until > now}
        pools = [crew for crew in crews_of_pools(house.settings) if f"{crew.name}#1" not in used]
        return tuple(pools) if isinstance(house.only, OnlyPools) else (*crews_of(house.settings), *brought, *pools)

    def _everywhere(self, here: list[Slot], crews: tuple[Crew, ...], like: Slot) -> list[Slot]:
        """The free slots of all hosts that are up; the others are asked for, and used once they answer."""
        house = self._house
        for crew in crews:
            if crew.host and not crew.made:
                house.hosts.attend(crew.host)
        draining = {host.name for host in house.store.hosts() if host.draining}
        health = {name: replace(host, draining=name in draining) for name, host in dict(house.hosts.health).items()}
        away = frozenset(run.id for run in self._runs if not any(worker.is_here for worker in run.workers))
        busy = {(one.host, one.worker) for one in house.store.sessions(live=True)}
        here = [replace(slot, not_runs=away) for slot in here]
        offered = offer(here, crews, health, busy, machine=house.machine, like=like)
        self._tell(offered.withheld)
        return list(offered.slots)

    def _tell(self, withheld: Sequence[Withheld]) -> None:
        """Who takes nothing, and why: said when it changes."""
        reasons = {(each.worker, each.host): each.reason for each in withheld}
        for (worker, host), reason in reasons.items():
            if self._withheld.get((worker, host)) != reason:
                self._house.log("worker_withheld", worker=worker, host=host, reason=reason)
        self._withheld = reasons

    async def _verify(self, uid: str) -> list[Claimed]:
        """The one task whose verifier is to run, if it is due: where its work was done."""
        house = self._house
        task = house.store.task(uid)
        awaits = task.awaits
        host = (awaits.host if awaits else None) or house.machine
        here = host == house.machine
        pool = pool_of(task.capabilities)
        slot = Slot(worker="local#1", host=host, here=here, paused_coders=house.paused(), pool=pool)
        found = await self._house.store.claim_verify(self._house.name, uid, slot, self._house.defaults)
        return [found] if found is not None else []

    async def _take_file_edits(self, n: int, paused: frozenset[str], run: str | None) -> None:
        """What people changed by hand in the task.json of those that come next."""
        default = self._house.defaults.coder
        for task in self._house.store.ready(limit=LOOKED_AT if paused else n, run=run):
            if (task.coder or default) in paused or task.host not in (None, self._house.machine):  # edited where it is
                continue
            n -= 1
            if n < 0:
                return
            try:
                await handwritten.take(self._house, task)
            except UsageError as exc:
                with contextlib.suppress(Conflict):  # it was claimed or changed by another in between
                    await self._house.store.block(task.uid, "needs_human", f"task.json: {exc}", by=self._house.name)
