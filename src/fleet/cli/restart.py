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

from fleet.cli.steering import add_target, each, note_absence, print_each, tell_asked

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
    from fleet.model.intent import Intent

    def tell(decided: Decided) -> None:
        if isinstance(decided, Intent):
            tell_asked(context, decided)
        else:
            context.print(f"Restarted {decided.id}: it is {decided.state.value} again")

    given = context.front.restart_each(args.ids, args.reason, force=args.force, abandon=args.abandon)
    done, code = each(given, context, tell)  # type: ignore[arg-type]  # mypy joins the two kinds into Struct
    if context.json:
        print_each(done, context, args.ids)
    elif any(isinstance(decided, Intent) for decided in done):
        note_absence(context)
    return code
