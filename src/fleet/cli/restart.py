"""Run tasks again. A live session is ended first and costs no attempt; an ended task goes back to the queue.

It is refused for a task that has passed, that failed with no attempt left, or that is not safe to run twice; --force
overrides that. With --abandon a session whose host does not answer is called lost by your word: a new one may start
though the old agent may still be at work there; what is left of it is ended when the host answers.

Examples:
  fleet restart fleet-abc fleet-xyz --reason "the server is up again"
  fleet restart fleet-abc --abandon
"""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from fleet.cli.steering import add_target, each, note_absence, tell_asked

if TYPE_CHECKING:
    from fleet.cli.context import Context
    from fleet.front.views import Decided


def configure(parser: argparse.ArgumentParser) -> None:
    """The options of `fleet restart`."""
    add_target(parser, "restarted by a person")
    parser.add_argument("--force", action="store_true", help="though it passed, has no attempt left, or is unsafe")
    parser.add_argument("--abandon", action="store_true", help="give up its session: the host does not answer")


def run(args: argparse.Namespace, context: Context) -> int:
    """Queue it again, or ask its supervisor to."""
    from fleet.projections.queue import TaskDetail

    def one(word: str) -> Decided:
        return context.front.restart(word, args.reason, force=args.force, abandon=args.abandon)

    done, code = each(args.ids, one, context)
    if context.json:
        context.print_json(done if len(args.ids) > 1 else done[0])
        return code
    for decided in done:
        if isinstance(decided, TaskDetail):
            context.print(f"Restarted {decided.id}: it is {decided.state.value} again")
        else:
            tell_asked(context, decided)
    if not all(isinstance(decided, TaskDetail) for decided in done):
        note_absence(context)
    return code
