"""The table of machines in `fleet status`: a row for each, as soon as it is known; then the totals."""

from __future__ import annotations

import argparse
import time
from typing import TYPE_CHECKING

from fleet.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from fleet.cli.context import Context
    from fleet.config.machines import Host
    from fleet.projections.machines import Machine, Machines

NAMES, STATUS, RESPONSIVE, MS, CODER = 50, 14, 8, 10, 8  # columns
LEAST_NAMES = 19  # for the head of the column
WATCH_SECONDS = 5.0
REST_SECONDS = 300  # between two probes of what may fall asleep
CLEAR = "\x1b[H\x1b[2J"


def machine_part(args: argparse.Namespace, hosts: list[Host], context: Context) -> int:
    """Look, or recall, and print. On a terminal the rows come as the answers do; else in the order of the settings."""
    if args.no_probe:
        _print(args, hosts, _recalled(hosts, context), context, recalls=True)
        return 0
    if not context.out.isatty():
        found, code = _looked(args, hosts, context)
        _print(args, hosts, found, context)
        _tell_who_is_missing(found, hosts, context)
        return code
    from fleet.cli.machines import look

    width = _width(hosts, context)
    context.print(head(args, hosts, width, context))
    context.out.flush()

    def tell(machine: Machine) -> None:
        context.print(row(machine, width))
        context.out.flush()

    found, code = look(hosts, context, wake=_wakes(args, context), tell=tell)
    context.print(foot(found, width))
    _tell_who_is_missing(found, hosts, context)
    if found.asleep:
        context.note("note: who sleeps was left asleep; --wake wakes and probes them, which costs money")
    return code


def machines(args: argparse.Namespace, hosts: list[Host], context: Context) -> tuple[Machines, int]:
    """The machines as an object, and the exit code."""
    return (_recalled(hosts, context), 0) if args.no_probe else _looked(args, hosts, context)


def watch(args: argparse.Namespace, hosts: list[Host], context: Context) -> int:
    """The table again and again, in its place; until Ctrl-C.

    The settings alone wake nobody here, and who may sleep is probed seldom: a machine that is asked every few seconds
    never sleeps, and is paid for.
    """
    if context.json or not context.redraws(context.out):
        raise UsageError("--watch needs a terminal", hint="run `fleet status --json` again and again")
    while True:
        found, code = (_recalled(hosts, context), 0) if args.no_probe else _again(args, hosts, context)
        context.out.write(CLEAR)
        _print(args, hosts, found, context, recalls=True)
        context.out.flush()
        if code:
            return code
        time.sleep(WATCH_SECONDS)


def _again(args: argparse.Namespace, hosts: list[Host], context: Context) -> tuple[Machines, int]:
    from fleet.cli.machines import look

    return look(hosts, context, wake=args.wake, rest_seconds=0 if args.wake else REST_SECONDS)


def head(args: argparse.Namespace, hosts: Sequence[Host], width: int, context: Context) -> str:
    """The title, and the names of the columns."""
    from fleet.cli.words import count
    from fleet.config.settings import MODELLESS
    from fleet.policy.selection import noun

    one = noun(hosts)
    said = [f"{name}: {value}" for name, value in (("team", args.team), ("role", args.role)) if value]
    title = f"{count(len(hosts), one)} ({', '.join(said)})" if said else count(len(hosts), one)
    coder = context.settings.supervisor.coder
    shown = "Claude" if coder in MODELLESS else coder.capitalize()
    names = _cells(f"{one.capitalize()} (API Name)", "Status", "Resp", "ms", shown, width=width)
    return "\n".join([f"Fleet Status ({title})", "=" * _rule(width), names, "-" * _rule(width)])


def row(machine: Machine, width: int, *, recalls: bool = False) -> str:
    """One machine. What is wrong with it, or not known, stands behind the columns; and when, where it is recalled."""
    return _cells(
        _names(machine.name, machine.api_name),
        machine.status,
        _yes(machine.responsive),
        "-" if machine.ms is None else str(machine.ms),
        _yes(machine.coder),
        _note(machine, recalls=recalls),
        width=width,
    )


def foot(found: Machines, width: int) -> str:
    """The totals; a fault of the provider goes before them."""
    totals = [f"Total: {found.total}", f"Healthy: {found.healthy}", f"Unhealthy: {found.unhealthy}"]
    totals += [f"{word}: {n}" for word, n in (("Asleep", found.asleep), ("Unknown", found.unknown)) if n]
    fault = [f"API fault: {found.api_fault}"] if found.api_fault else []
    return "\n".join(["-" * _rule(width), *fault, " | ".join(totals)])


def _print(
    args: argparse.Namespace, hosts: list[Host], found: Machines, context: Context, *, recalls: bool = False
) -> None:
    width = _width(hosts, context)
    context.print(head(args, hosts, width, context))
    for machine in found.machines:
        context.print(row(machine, width, recalls=recalls))
    context.print(foot(found, width))


def _recalled(hosts: list[Host], context: Context) -> Machines:
    from fleet.projections.machines import recalled

    return recalled(hosts, context.reads)


def _looked(args: argparse.Namespace, hosts: list[Host], context: Context) -> tuple[Machines, int]:
    from fleet.cli.machines import look

    return look(hosts, context, wake=_wakes(args, context))


def _wakes(args: argparse.Namespace, context: Context) -> bool:
    return bool(args.wake or context.settings.status.wake)


def _note(machine: Machine, *, recalls: bool) -> str:
    from fleet.cli.transcript import one_line
    from fleet.cli.words import ago, lasting, printable

    answered = [f"answered {ago(machine.answered_at)}" if machine.answered_at else "never answered"]
    told = [printable(one_line(each)) for each in (machine.detail, *machine.warnings) if each]
    told += ["it takes no new work"] if machine.draining else []
    if machine.asleep:
        told = ["asleep", *answered, *told]
    elif machine.healthy is not True:
        if machine.since is not None and machine.since < (machine.probed_at or 0):
            told.append(f"{'unhealthy' if machine.healthy is False else 'unknown'} {lasting(machine.since)}")
        told += answered if machine.probed_at or machine.answered_at else []
    if not recalls or not machine.probed_at:
        return "; ".join(told)
    if machine.asleep:
        return "; ".join([*told, f"its provider said so {ago(machine.probed_at)}"])
    if machine.healthy and 0 < (machine.answered_at or 0) < machine.probed_at:  # it was let sleep since
        return "; ".join([*told, *answered, f"its provider knew it {ago(machine.probed_at)}"])
    return "; ".join([*told, f"probed {ago(machine.probed_at)}"])


def _names(name: str, api_name: str) -> str:
    return f"{name} ({api_name})" if api_name != name else name


def _tell_who_is_missing(found: Machines, hosts: Sequence[Host], context: Context) -> None:
    """Of a look that was ended."""
    if missing := len(hosts) - found.total:
        context.note(f"note: stopped; the answer of {missing} of {len(hosts)} was not waited for")


def _width(hosts: Sequence[Host], context: Context) -> int:
    """Of the names. On a terminal that is too narrow for the usual column they have only what they need."""
    from shutil import get_terminal_size

    from fleet.policy.selection import called

    needed = max(LEAST_NAMES, *(len(_names(host.name, called(host))) + 2 for host in hosts))
    narrow = context.out.isatty() and get_terminal_size().columns < _rule(max(NAMES, needed))
    return needed if narrow else max(NAMES, needed)


def _rule(width: int) -> int:
    return width + STATUS + RESPONSIVE + MS + CODER


def _cells(*cells: str, width: int) -> str:
    """The cells of a line, each filled up to its column; the last may be as long as it likes."""
    widths = (width, STATUS, RESPONSIVE, MS, CODER, 0)
    return "".join(f"{cell:<{each}}" for cell, each in zip(cells, widths, strict=False)).rstrip()


def _yes(fact: bool | None) -> str:
    return "-" if fact is None else "yes" if fact else "no"
