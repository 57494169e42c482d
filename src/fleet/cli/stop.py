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
from fleet.errors import UsageError

if TYPE_CHECKING:
    from fleet.cli.context import Context
    from fleet.front.views import Decided


def configure(parser: argparse.ArgumentParser) -> None:
    """The options of `fleet stop`."""
    parser.add_argument("ids", metavar="ID", nargs="*", help="a task, its session, or the worker that has it")
    parser.add_argument("--run", metavar="R", help="what has not ended of this run")
    parser.add_argument("--all", action="store_true", help="everything that has not ended")
    add_reason(parser, "stopped by a person")


def run(args: argparse.Namespace, context: Context) -> int:
    """Cancel, and say what became of each."""
    from fleet.model.intent import Intent

    stopped, code = _stop(args, context)
    if context.json:
        context.print_json(stopped)
        return code
    for one in stopped:
        if isinstance(one, Intent):
            tell_asked(context, one)
        elif one.skipped_for:
            context.print(f"Skipped {one.id}: {one.title}  [needs {one.skipped_for}]")
        else:
            context.print(f"Stopped {one.id}: {one.title}")
    if any(isinstance(one, Intent) for one in stopped):
        note_absence(context)
    if not stopped and not code:
        context.note("nothing to stop")
    return code


def _stop(args: argparse.Namespace, context: Context) -> tuple[list[Decided], int]:
    from fleet.cli.beads_queue import refuse_untaken

    front = context.front
    if bool(args.ids) + bool(args.run) + args.all != 1:
        raise UsageError("give tasks, --run R, or --all", hint="`fleet tasks` lists what runs, `fleet runs` the runs")
    if args.all:
        return front.stop_all(args.reason), 0
    if args.run:
        return front.stop_run(args.run, args.reason), 0

    def one(word: str) -> list[Decided]:
        refuse_untaken(word, context, f"close it with `fleet bd close {word}`")
        return front.stop(word, args.reason)

    found, code = each(args.ids, one, context)
    return [decided for several in found for decided in several], code
