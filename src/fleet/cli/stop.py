"""Cancel a task, a run, or everything that has not ended. What needs a cancelled task is skipped.

A task that is running is stopped by its supervisor: the wish is recorded and carried out as soon as one is up.

Examples:
  fleet stop fleet-abc --reason "no longer wanted"
  fleet stop --all
"""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from fleet.errors import UsageError

if TYPE_CHECKING:
    from fleet.cli.context import Context


def configure(parser: argparse.ArgumentParser) -> None:
    """The options of `fleet stop`."""
    parser.add_argument("id", metavar="ID", nargs="?", help="a task")
    parser.add_argument("--all", action="store_true", help="everything that has not ended")
    parser.add_argument("--run", metavar="R", help="every task of a run that has not ended")
    parser.add_argument("--reason", metavar="TEXT", default="stopped by a person", help="stands in the receipt")


def run(args: argparse.Namespace, context: Context) -> int:
    """Cancel, and say what became of each."""
    from fleet.cli.beads_queue import refuse_untaken
    from fleet.cli.show import detail_of
    from fleet.model.intent import Intent

    if bool(args.id) + args.all + bool(args.run) != 1:
        raise UsageError("give one task, --run or --all")
    if args.id:
        refuse_untaken(args.id, context, f"close it with `fleet bd close {args.id}`")
    stopped = context.control.stop(args.id, args.reason) if args.id else context.control.stop_all(args.reason, args.run)
    if context.json:
        context.print_json([one if isinstance(one, Intent) else detail_of(context, one) for one in stopped])
        return 0
    for one in stopped:
        if isinstance(one, Intent):
            context.print(f"Stopping {one.target}: its supervisor has been asked")
        elif one.skipped_for:
            context.print(f"Skipped {one.uid}: {one.title}  [needs {one.skipped_for}]")
        else:
            context.print(f"Stopped {one.uid}: {one.title}")
    if not stopped:
        context.note("nothing to stop")
    return 0
