"""Who supervises: the supervisors of a fleet, where each is, and how many sessions it has."""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from fleet.store.reads import Reads


class Present(msgspec.Struct, frozen=True, kw_only=True):
    """A supervisor that runs; `pid` where it is in the home, on its machine."""

    name: str
    place: str
    sessions: int
    pid: int | None = None
    silent_ms: int = 0  # for so long it has given no sign of life, where that is too long


class Supervision(msgspec.Struct, frozen=True, kw_only=True):
    """Whether anybody supervises; `pid` is the first that is known, `sessions` are all that are open."""

    running: bool
    pid: int | None
    sessions: int
    supervisors: list[Present]


def supervision(reads: Reads, here: Mapping[str, int]) -> Supervision:
    """Those that have joined, and those whose processes are here by name."""
    live = reads.sessions(live=True)
    silent = reads.silent()
    joined = {one.id: one.machine for one in reads.supervisors()}
    found = [
        Present(
            name=name,
            place=joined.get(name, ""),
            sessions=sum(session.supervisor == name for session in live),
            pid=here.get(name),
            silent_ms=silent.get(name, 0),
        )
        for name in sorted(here.keys() | joined.keys())
    ]
    pid = next((one.pid for one in found if one.pid is not None), None)
    return Supervision(running=bool(found), pid=pid, sessions=len(live), supervisors=found)
