"""The machines that sessions run on: what is known of each, since when, by what evidence, and what runs there."""

from __future__ import annotations

from collections import Counter

import msgspec

from fleet.config.settings import Settings
from fleet.model.host import Host
from fleet.model.reach import Reach
from fleet.policy.placement import Crew, crews_of, hosts_of
from fleet.store.reads import Reads


class HostView(msgspec.Struct, frozen=True, kw_only=True):
    """One machine."""

    name: str
    kind: str
    address: str
    state: str  # up, down, unknown
    since: int | None
    evidence: str
    latency_ms: int | None
    probed_at: int | None
    draining: bool
    sessions: int  # that live on it
    slots: int  # how many may
    workers: tuple[str, ...]
    titles: tuple[str, ...]  # of the workers: with what people call them
    capabilities: tuple[str, ...]
    working_directory: str


def hosts(reads: Reads, settings: Settings, *, machine: str) -> list[HostView]:
    """This machine, those that are declared, and those of runs that have a session on them."""
    known = {host.name: host for host in reads.hosts()}
    live = Counter(session.host for session in reads.sessions(live=True))
    crews = crews_of(settings)
    declared = hosts_of(settings)
    here = _here(machine, settings, crews, live[machine])
    named = [_view(name, reach, known.get(name), crews, live[name]) for name, reach in declared.items()]
    others = [
        _view(name, Reach(kind="sprite"), known[name], (), live[name])
        for name in sorted(live)
        if name in known and name not in declared
    ]
    return [here, *named, *others]


def _here(machine: str, settings: Settings, crews: tuple[Crew, ...], live: int) -> HostView:
    ours = [crew for crew in crews if not crew.host]
    return HostView(
        name=machine,
        kind="local",
        address="",
        state="up",
        since=None,
        evidence="this machine",
        latency_ms=None,
        probed_at=None,
        draining=False,
        sessions=live,
        slots=settings.supervisor.max_concurrent + sum(crew.most for crew in ours),
        workers=("local", *(crew.name for crew in ours)),
        titles=("local", *(crew.title or crew.name for crew in ours)),
        capabilities=tuple(sorted({name for crew in ours for name in crew.capabilities or ()})),
        working_directory="",
    )


def _view(name: str, reach: Reach, known: Host | None, crews: tuple[Crew, ...], live: int) -> HostView:
    there = [crew for crew in crews if crew.host == name]
    user = f"{reach.user}@" if reach.user else ""
    port = f":{reach.port}" if reach.port else ""
    return HostView(
        name=name,
        kind=known.kind if known else reach.kind,
        address=f"{user}{reach.host}{port}",
        state=known.state if known else "unknown",
        since=known.since if known else None,
        evidence=known.evidence if known else "it was never probed",
        latency_ms=known.latency_ms if known else None,
        probed_at=known.probed_at if known else None,
        draining=known.draining if known else False,
        sessions=live,
        slots=sum(crew.most for crew in there),
        workers=tuple(crew.name for crew in there),
        titles=tuple(crew.title or crew.name for crew in there),
        capabilities=tuple(sorted({name for crew in there for name in crew.capabilities or ()})),
        working_directory=reach.working_directory,
    )
