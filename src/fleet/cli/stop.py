"""Cancel a task, what is left of a run, or everything that has not ended. What needs a cancelled task is skipped.

A task that is running is stopped by its supervisor: the wish is recorded and carried out as soon as one is up.

Examples:
  fleet stop fleet-abc --reason "no longer wanted"
  fleet stop --run nightly-x7k
"""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from fleet.cli.steering import add_reason, note_absence, tell_asked
from fleet.errors import UsageError

if TYPE_CHECKING:
    from fleet.cli.context import Context
    from fleet.front.views import Decided


def configure(parser: argparse.ArgumentParser) -> None:
    """The options of `fleet stop`."""
    parser.add_argument("id", metavar="ID", nargs="?", help="a task, its session, or the worker that has it")
    parser.add_argument("--run", metavar="R", help="what has not ended of this run")
    parser.add_argument("--all", action="store_true", help="everything that has not ended")
    add_reason(parser, "stopped by a person")


def run(args: argparse.Namespace, context: Context) -> int:
    """Cancel, and say what became of each."""
    from fleet.model.intent import Intent

    stopped = _stop(args, context)
    if context.json:
        context.print_json(stopped)
        return 0
    for one in stopped:
        if isinstance(one, Intent):
            tell_asked(context, one)
        elif one.skipped_for:
            context.print(f"Skipped {one.id}: {one.title}  [needs {one.skipped_for}]")
        else:
            context.print(f"Stopped {one.id}: {one.title}")
    if any(isinstance(one, Intent) for one in stopped):
        note_absence(context)
    if not stopped:
        context.note("nothing to stop")
    return 0


def _stop(args: argparse.Namespace, context: Context) -> list[Decided]:
    from fleet.cli.beads_queue import refuse_untaken

    front = context.front
    if bool(args.id) + bool(args.run) + args.all != 1:
        raise UsageError("give one task, --run R, or --all")
    if args.all:
        return front.stop_all(args.reason)
    if args.run:
        return front.stop_run(args.run, args.reason)
    refuse_untaken(args.id, context, f"close it with `fleet bd close {args.id}`")
    return front.stop(args.id, args.reason)
