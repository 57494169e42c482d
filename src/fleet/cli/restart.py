"""Run a task again. A live session is ended first and costs no attempt; an ended task goes back to the queue.

It is refused for a task that has passed, that failed with no attempt left, or that is not safe to run twice; --force
overrides that. With --abandon a session whose host does not answer is called lost by your word: a new one may start
though the old agent may still be at work there; what is left of it is ended when the host answers.

Examples:
  fleet restart fleet-abc --reason "the server is up again"
  fleet restart fleet-abc --abandon
"""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from fleet.cli.steering import add_target, note_absence, tell_asked

if TYPE_CHECKING:
    from fleet.cli.context import Context


def configure(parser: argparse.ArgumentParser) -> None:
    """The options of `fleet restart`."""
    add_target(parser, "restarted by a person")
    parser.add_argument("--force", action="store_true", help="though it passed, has no attempt left, or is unsafe")
    parser.add_argument("--abandon", action="store_true", help="give up its session: the host does not answer")


def run(args: argparse.Namespace, context: Context) -> int:
    """Queue it again, or ask its supervisor to."""
    from fleet.projections.queue import TaskDetail

    done = context.front.restart(args.id, args.reason, force=args.force, abandon=args.abandon)
    if context.json:
        context.print_json(done)
    elif isinstance(done, TaskDetail):
        context.print(f"Restarted {done.id}: it is {done.state.value} again")
    else:
        tell_asked(context, done)
        note_absence(context)
    return 0
