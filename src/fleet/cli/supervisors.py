"""`fleet run status` and `fleet run stop`: the supervisors of this home, here and on other machines."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

import msgspec

from fleet.errors import Conflict, NotFound

if TYPE_CHECKING:
    from fleet.cli.context import Context
    from fleet.supervisor.guard import Holder

STOP_SECONDS = 60


class Present(msgspec.Struct, frozen=True, kw_only=True):
    """A supervisor that runs; `pid` where it is on this machine and in this home."""

    name: str
    place: str
    sessions: int
    pid: int | None = None


def status(context: Context) -> int:
    """Who runs, and how many sessions each has. Exit code 1 when nobody does."""
    from fleet.cli.words import count

    here = {one.name: one.pid for one in _here(context)}
    live = context.reads.sessions(live=True)
    joined = {one.id: one.machine for one in context.reads.supervisors()}
    names = sorted(here.keys() | joined.keys())
    found = [
        Present(
            name=name,
            place=joined.get(name, ""),
            sessions=sum(session.supervisor == name for session in live),
            pid=here.get(name),
        )
        for name in names
    ]
    if context.json:
        pid = next((one.pid for one in found if one.pid is not None), None)
        context.print_json({"running": bool(found), "pid": pid, "sessions": len(live), "supervisors": found})
        return 0 if found else 1
    for one in found:
        where = f"{one.pid}" if one.pid is not None else f"at {one.place}"
        context.print(f"supervisor {where} ({one.name}) is running, with {count(one.sessions, 'session')}")
    if not found:
        context.print(f"no supervisor is running ({count(len(live), 'session')} open)")
    return 0 if found else 1


def stop(args: argparse.Namespace, context: Context) -> int:
    """Tell those on this machine and in this home to end, and wait until they have."""
    import os
    import signal
    import time

    asked = _chosen(args.supervisor, context)
    for one in asked:
        os.kill(one.pid, signal.SIGUSR1 if args.stop_agents else signal.SIGTERM)
    pids = {one.pid for one in asked}
    deadline = time.monotonic() + STOP_SECONDS
    while left := {one.pid for one in _here(context)} & pids:
        if time.monotonic() > deadline:
            words = ", ".join(map(str, sorted(left)))
            raise Conflict(f"supervisor {words} was told to stop and has not ended yet")
        time.sleep(0.05)
    if context.json:
        context.print_json({"stopped": sorted(pids)})
        return 0
    for one in asked:
        context.print(f"Stopped supervisor {one.pid} ({one.name})")
    return 0


def _chosen(name: str | None, context: Context) -> list[Holder]:
    here = _here(context)
    if name is None:
        if not here:
            raise Conflict("no supervisor is running")
        return here
    found = [one for one in here if name in (one.name, str(one.pid))]
    if not found:
        known = ", ".join(one.name for one in here) or "none"
        raise NotFound(f"no supervisor `{name}` runs here", hint=f"running here: {known}")
    return found


def _here(context: Context) -> list[Holder]:
    from fleet.config.home import require
    from fleet.supervisor.guard import holders

    return holders(require(context.home).path)
