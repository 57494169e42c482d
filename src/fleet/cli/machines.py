"""What the commands for machines share: which ones are meant, the ways to them, and how a signal ends the work."""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import signal
from collections.abc import Callable, Coroutine, Sequence
from typing import TYPE_CHECKING, Any

from fleet.config.clock import utc_ms
from fleet.policy.selection import called, select

if TYPE_CHECKING:
    from fleet.cli.context import Context
    from fleet.config.machines import Host
    from fleet.hosts.fanout import Command, Ran, Way
    from fleet.hosts.sight import Look
    from fleet.model import host as model
    from fleet.projections.machines import Machine, Machines

PARALLEL = 50  # machines at a time, where nobody says otherwise


def selected(args: argparse.Namespace, context: Context) -> list[Host]:
    """The machines that are meant."""
    from fleet.config.home import require

    if not context.settings.hosts:
        require(context.home)  # without one, that is what is wrong
    return select(context.settings.hosts, names=args.host, team=args.team, role=args.role)


def way_to(host: Host, context: Context) -> Way:
    """The way to a machine. Made when it is used: one that cannot be made is that machine's trouble alone."""
    from fleet import wiring

    return lambda: wiring.open_transport(host, context.settings, context.home)


def names_of(hosts: Sequence[Host]) -> dict[str, str]:
    """What each machine is called in the output of a command: as its provider calls it."""
    return {host.name: called(host) for host in hosts}


def until_signal(work: Callable[[], Coroutine[Any, Any, None]]) -> int:
    """Run to the end, or until a signal says to stop: then all is cancelled. The exit code of the signal, or 0."""
    caught: list[int] = []

    async def main() -> None:
        loop = asyncio.get_running_loop()
        task = asyncio.ensure_future(work())

        def stop(number: int) -> None:
            caught.append(number)
            task.cancel()

        for number in (signal.SIGINT, signal.SIGTERM):
            loop.add_signal_handler(number, stop, number)
        try:
            await task
        except asyncio.CancelledError:
            if not caught:
                raise
        except ExceptionGroup as group:  # nobody reads what is printed, or the disk under it is full
            raise group.exceptions[0] from None

    asyncio.run(main())
    return 128 + caught[0] if caught else 0


def everywhere(
    command: Command, hosts: Sequence[Host], context: Context, *, parallel: int, tell: Callable[[Ran], None]
) -> tuple[list[Ran], int]:
    """A command on each host; each answer is told as it comes. With the code of a signal that ended it, or 0."""
    from fleet.hosts.fanout import across, run_on, stopped
    from fleet.hosts.transport import Course, course_behind

    answers: dict[str, Ran] = {}
    courses: dict[str, Course | None] = {host.name: Course("it still waited for its turn") for host in hosts}

    def take(ran: Ran) -> None:
        answers[ran.host] = ran
        tell(ran)

    async def run(host: Host) -> Ran:
        try:
            return await run_on(host.name, way_to(host, context), command)
        except asyncio.CancelledError as exc:
            courses[host.name] = course_behind(exc)
            raise

    code = until_signal(lambda: across(hosts, run, parallel=parallel, tell=take))
    for host in hosts:
        if host.name not in answers:
            take(stopped(host.name, courses[host.name]))
    return [answers[host.name] for host in hosts], code


def look(
    hosts: Sequence[Host],
    context: Context,
    *,
    wake: bool,
    tell: Callable[[Machine], None] | None = None,
    rest_seconds: int = 0,
) -> tuple[Machines, int]:
    """Look at these machines; each is told as it is known, and the store hears of it. With the code of a signal, or 0.

    A machine whose answer was not waited for is not among them. One that may sleep is not probed for so long after it
    was: a probe keeps it awake.
    """
    from fleet.policy.health import fault_of
    from fleet.projections.machines import counted, look_everywhere, program_of, seen_now, to_keep

    known = {host.name: host for host in context.reads.hosts()}
    live = context.reads.sessions(live=True)
    looks: dict[str, Look] = {}
    machines: list[Machine] = []

    def take(host: Host, look: Look) -> None:
        here = [session for session in live if session.host == host.name]
        program = program_of(host, context.settings)
        machine = seen_now(host, look, known.get(host.name), program, here)
        looks[host.name] = look
        machines.append(machine)
        if tell is not None:
            tell(machine)

    since = utc_ms() - rest_seconds * 1000
    resting = {host.name for host in known.values() if host.state == "up" and (host.answered_at or 0) > since}
    code = until_signal(
        lambda: look_everywhere(
            hosts,
            lambda host: way_to(host, context),
            context.settings,
            wake=wake,
            tell=take,
            rests=lambda host: host.name in resting,
        )
    )
    found = counted(hosts, machines)
    doubt = found.api_fault or fault_of(known)  # one machine alone cannot tell whether it is still there
    kept = [to_keep(looks[each.name], each, known.get(each.name), api_fault=doubt) for each in machines]
    _keep([host for host in kept if host is not None], found.api_fault, context)
    return found, code


def _keep(found: Sequence[model.Host], api_fault: str | None, context: Context) -> None:
    """Tell the store. A home that cannot be written is no reason to show nothing."""
    from fleet import wiring
    from fleet.control.watching import keep
    from fleet.errors import StoreError

    try:
        with contextlib.closing(wiring.open_store(context.home, context.settings, grouped=True)) as store:
            keep(store, found, api_fault, context.settings.health, by=wiring.whoami())
    except StoreError as exc:
        context.note(f"note: what was found is not kept: {exc}")
