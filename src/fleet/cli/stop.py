"""Cancel tasks, what is left of a run, or everything that has not ended. What needs a cancelled task is skipped.

A task that is running is stopped by its supervisor: the wish is recorded and carried out as soon as one is up.

Examples:
  fleet stop fleet-abc fleet-xyz --reason "no longer wanted"
  fleet stop --run nightly-x7k
"""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from fleet.cli.steering import add_reason, each, note_absence, tell_asked
from fleet.errors import FleetError, UsageError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from fleet.cli.context import Context
    from fleet.front.views import Decided


def configure(parser: argparse.ArgumentParser) -> None:
    """The options of `fleet stop`."""
    parser.add_argument("ids", metavar="ID", nargs="*", help="a task, its session, or the worker that has it")
    parser.add_argument("--run", metavar="R", help="what has not ended of this run")
    parser.add_argument("--all", action="store_true", help="everything that has not ended")
    add_reason(parser, "stopped by a person")


def run(args: argparse.Namespace, context: Context) -> int:
    """Cancel, and say what became of each as it is done."""
    from fleet.model.intent import Intent

    def tell(several: list[Decided]) -> None:
        for one in several:
            _tell(one, context)

    done, code = each(_stopped(args, context), context, tell)
    stopped = [one for several in done for one in several]
    if context.json:
        if not (code and len(args.ids) == 1):
            context.print_json(stopped)
        return code
    if any(isinstance(one, Intent) for one in stopped):
        note_absence(context)
    if not stopped and not code:
        context.note("nothing to stop")
    return code


def _tell(one: Decided, context: Context) -> None:
    from fleet.model.intent import Intent

    if isinstance(one, Intent):
        tell_asked(context, one)
    elif one.skipped_for:
        context.print(f"Skipped {one.id}: {one.title}  [needs {one.skipped_for}]")
    else:
        context.print(f"Stopped {one.id}: {one.title}")


def _stopped(args: argparse.Namespace, context: Context) -> Iterator[list[Decided] | FleetError]:
    from fleet.cli.beads_queue import untaken

    front = context.front
    if bool(args.ids) + bool(args.run) + args.all != 1:
        raise UsageError("give tasks, --run R, or --all", hint="`fleet tasks` lists what runs, `fleet runs` the runs")
    if not args.ids:
        found = front.stop_all(args.reason) if args.all else front.stop_run(args.run, args.reason)
        yield from ([one] for one in found)
        return
    refused = untaken(args.ids, context, lambda word: f"close it with `fleet bd close {word}`")
    yield from refused.values()
    yield from front.stop_each([word for word in args.ids if word not in refused], args.reason)
