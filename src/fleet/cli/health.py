"""Check that every host is well: its provider knows it, and a command runs on it. For cron and for scripts.

Sleeping sprites are woken, which costs money. The exit code is 0 when all are healthy, else 1. A line of each check
goes to a log (`health.log_file`). Where all sprites vanish at once, one fault of the API is told, not dead machines.
With --url nothing is woken or asked: the last probes there tell.

Examples:
  fleet health
  fleet health --quiet --log /var/log/fleet-healthcheck.log
"""

from __future__ import annotations

import argparse
import os
import time
from pathlib import Path
from typing import TYPE_CHECKING

from fleet.cli.parsing import add_selection
from fleet.errors import NotFound

if TYPE_CHECKING:
    from fleet.cli.context import Context
    from fleet.projections.machines import Machines
    from fleet.supervisor.messenger import Messenger

SEND_SECONDS = 30.0  # for alerts; what is left is sent by the next check


def configure(parser: argparse.ArgumentParser) -> None:
    """The options of `fleet health`."""
    parser.add_argument("-q", "--quiet", action="store_true", help="print nothing when all are healthy")
    parser.add_argument("--log", metavar="FILE", type=Path, help="the log to add a line to (else health.log_file)")
    add_selection(parser)


def run(args: argparse.Namespace, context: Context) -> int:
    """Look at all, judge, log, tell."""
    if context.url:
        if args.log or args.team or args.role or args.host:
            context.here("a choice of hosts or a log")
        found = context.front.machines()
        if not found.total:
            raise NotFound("there are no hosts", hint="the fleet that is served there declares none")
        ill = ill_of(found)
    else:
        from fleet.cli.machines import look, selected

        hosts = selected(args, context)
        messenger = _messenger(context)
        try:
            found, signalled = look(hosts, context, wake=True)
            if signalled:
                return signalled
            _tell(messenger, context)
        finally:
            if messenger is not None:
                messenger.close()
        ill = ill_of(found)
        _log(args.log or _log_file(context), ill, found, context)
    if context.json:
        context.print_json({"ok": not ill, "machines": found})
        return int(bool(ill))
    if ill:
        context.print("\n".join([f"UNHEALTHY {found.noun}s:", *(f"  {name}: {reason}" for name, reason in ill)]))
    elif not args.quiet:
        context.print(f"OK: {_well(found)}")
    if ill or not args.quiet:
        _warn(found, context)
    return int(bool(ill))


def _well(found: Machines) -> str:
    if found.asleep:
        return f"{found.healthy} of {found.total} {found.noun}s healthy, {found.asleep} asleep"
    return f"All {found.total} {found.noun}s healthy" if found.total > 1 else f"1 {found.noun} healthy"


def ill_of(found: Machines) -> list[tuple[str, str]]:
    """Who is ill, and of what: first whom the provider does not know. A fault of its own stands for all of them.

    What is not known of a machine is not health; one that is asleep, where nobody was to wake it, is not ill.
    """
    fault = [("api", found.api_fault)] if found.api_fault else []
    ill = [
        (machine.api_name, machine.reason)
        for machine in found.machines
        if machine.healthy is not True and not machine.asleep and not (fault and machine.kind == "sprite")
    ]
    return fault + sorted(ill, key=lambda one: not one[1].startswith("api:"))


def _messenger(context: Context) -> Messenger | None:
    """Who tells people of what changes; None where nobody is to be told, or nothing can be recorded."""
    from fleet import wiring
    from fleet.errors import StoreError

    if not context.settings.alerts.enabled:
        return None
    try:
        return wiring.open_messenger(context.home, context.settings)
    except StoreError as exc:
        context.note(f"note: nobody is alerted: {exc}")
        return None


def _tell(messenger: Messenger | None, context: Context) -> None:
    """Send the alerts. The check is what it is, whether they arrive or not."""
    for left in messenger.send(SEND_SECONDS) if messenger is not None else ():
        context.note(f"note: the alert to {left.channel} is not sent yet; the next check tries again")


def _warn(found: Machines, context: Context) -> None:
    from fleet.cli.transcript import one_line
    from fleet.cli.words import printable

    for machine in found.machines:
        details = [] if found.api_fault and machine.kind == "sprite" else [machine.detail]
        for text in (*details, *machine.warnings):
            if text:
                context.note(f"{machine.api_name}: {printable(one_line(text, 200))}")


def _log_file(context: Context) -> Path:
    return context.home.path / Path(context.settings.health.log_file).expanduser()


def _log(file: Path, ill: list[tuple[str, str]], found: Machines, context: Context) -> None:
    """A line, in one write: checks that overlap do not mix. A log that cannot be written does not hide the result."""
    words = ", ".join(f"{name} ({reason})" for name, reason in ill)
    said = f"ALERT - UNHEALTHY: {words}" if ill else f"OK - All {found.noun}s healthy"
    line = f"[{time.strftime('%Y-%m-%d %H:%M:%S')}] {' '.join(said.split())}\n"
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        fd = os.open(file, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o644)
        try:
            os.write(fd, line.encode())
        finally:
            os.close(fd)
    except (OSError, ValueError) as exc:  # the latter for a NUL in the name
        context.note(f"note: the check is not logged: {exc}")
