"""`fleet run status` and `fleet run stop`: the supervisors of this home, here and on other machines."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from fleet.errors import Conflict, NotFound

if TYPE_CHECKING:
    from fleet.cli.context import Context
    from fleet.supervisor.guard import Holder

STOP_SECONDS = 60


def status(context: Context) -> int:
    """Who runs, and how many sessions each has. Exit code 1 when nobody does."""
    from fleet.cli.words import count, span

    found = context.front.supervision()
    if context.json:
        context.print_json(found)
        return 0 if found.running else 1
    for one in found.supervisors:
        where = f"{one.pid}" if one.pid is not None else f"at {one.place}"
        silent = f"; it has given no sign of life for {span(one.silent_ms)}" if one.silent_ms else ""
        context.print(f"supervisor {where} ({one.name}) is running, with {count(one.sessions, 'session')}{silent}")
    if not found.running:
        context.print(f"no supervisor is running ({count(found.sessions, 'session')} open)")
    return 0 if found.running else 1


def stop(args: argparse.Namespace, context: Context) -> int:
    """Tell those on this machine and in this home to end, and wait until they have."""
    import os
    import signal
    import time

    asked = _chosen(args.supervisor, context)
    for one in asked:
        try:
            os.kill(one.pid, signal.SIGUSR1 if args.stop_agents else signal.SIGTERM)
        except ProcessLookupError:
            continue  # it ended by itself
        except PermissionError as exc:
            raise Conflict(f"supervisor {one.pid} ({one.name}) belongs to somebody else") from exc
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
