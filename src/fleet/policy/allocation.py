"""Allocation: which workers a pool may have, where each is, and which is the next for a dispatch."""

from __future__ import annotations

from collections.abc import Collection, Iterator

import msgspec

from fleet.config.pools import Pool
from fleet.config.settings import Settings
from fleet.errors import NotFound
from fleet.model.reach import Reach
from fleet.model.session import POOL, WORKER


class Member(msgspec.Struct, frozen=True, kw_only=True):
    """A worker that a pool has, or may have."""

    pool: str
    worker: str
    host: str = ""  # its name; empty: this machine
    own: Reach | None = None  # of a host that is this worker's alone, and is made when it is first needed

    @property
    def capabilities(self) -> frozenset[str]:
        """What a task asks for that may only run there."""
        return frozenset({f"{POOL}{self.pool}", f"{WORKER}{self.worker}"})


class Allocated(msgspec.Struct, frozen=True):
    """A worker for the next dispatch; none: all are busy, and there may be no more."""

    worker: str | None
    reason: str


def members(name: str, pool: Pool) -> Iterator[Member]:
    """The workers that a pool may have, in the order in which they are used."""
    for n in range(1, pool.max_size + 1):
        worker = f"{pool.prefix or name}-{n}"
        if pool.hosts:
            yield Member(pool=name, worker=worker, host=pool.hosts[(n - 1) % len(pool.hosts)])
        elif pool.host == "sprite":
            own = Reach(kind="sprite", host=worker, working_directory=pool.directory)
            yield Member(pool=name, worker=worker, host=worker, own=own)
        else:
            yield Member(pool=name, worker=worker)


def all_members(settings: Settings) -> Iterator[Member]:
    """Those of every pool."""
    for name, pool in settings.pools.items():
        yield from members(name, pool)


def pool_named(settings: Settings, name: str) -> Pool:
    """A pool by its name, or NotFound."""
    if name not in settings.pools:
        known = ", ".join(sorted(settings.pools)) or "none"
        raise NotFound(
            f"no pool `{name}`", hint=f"there are: {known}; declare one: fleet config set pools.{name}.repo=URL"
        )
    return settings.pools[name]


def member_named(settings: Settings, worker: str) -> Member:
    """A worker by its name, or NotFound."""
    for member in all_members(settings):
        if member.worker == worker:
            return member
    pools = ", ".join(sorted(settings.pools)) or "none"
    raise NotFound(f"no pool has a worker `{worker}`", hint=f"the pools are: {pools}; see them: fleet pool status")


def allocate(candidates: Collection[Member], known: Collection[str], busy: Collection[str]) -> Allocated:
    """The first that is idle, else the next number that the pool may have. `known`: those that were set up."""
    for member in candidates:
        if member.worker in known and member.worker not in busy:
            return Allocated(member.worker, "it is set up and idle")
    for member in candidates:
        if member.worker not in known and member.worker not in busy:
            return Allocated(member.worker, "it would be new: all that are set up are busy" if known else "it is new")
    busy_words = "its one worker is" if len(candidates) == 1 else f"all {len(candidates)} workers are"
    return Allocated(None, f"{busy_words} busy, and the pool may have no more")
