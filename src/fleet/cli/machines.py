"""What the commands for machines share: which ones are meant, the ways to them, and how a signal ends the work."""

from __future__ import annotations

import argparse
import asyncio
import signal
from collections.abc import Callable, Coroutine, Sequence
from typing import TYPE_CHECKING, Any

from fleet.policy.selection import select

if TYPE_CHECKING:
    from fleet.cli.context import Context
    from fleet.config.settings import Host
    from fleet.hosts.fanout import Way

PARALLEL = 50  # machines at a time, where nobody says otherwise


def add_selection(parser: argparse.ArgumentParser) -> None:
    """The options that say which machines."""
    parser.add_argument("--team", metavar="T", help="only the hosts of this team (of TEAM-ROLE-ID; may have * and ?)")
    parser.add_argument("--role", metavar="R", help="only the hosts of this role")
    parser.add_argument(
        "--host", metavar="NAME", action="append", default=[], help="only this host, by either name; may be repeated"
    )


def selected(args: argparse.Namespace, context: Context) -> list[Host]:
    """The machines that are meant."""
    return select(context.settings.hosts, names=args.host, team=args.team, role=args.role)


def way_to(host: Host, context: Context) -> Way:
    """The way to a machine. Made when it is used: one that cannot be made is that machine's trouble alone."""
    from fleet import wiring

    return lambda: wiring.open_transport(host, context.settings)


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


def with_team(words: str, args: argparse.Namespace) -> str:
    """`3 sprites (team: agents)`."""
    said = [f"{name}: {value}" for name, value in (("team", args.team), ("role", args.role)) if value]
    return f"{words} ({', '.join(said)})" if said else words


def names_of(hosts: Sequence[Host]) -> dict[str, str]:
    """What each machine is called in the output of a command: as its provider calls it."""
    from fleet.policy.selection import called

    return {host.name: called(host) for host in hosts}
