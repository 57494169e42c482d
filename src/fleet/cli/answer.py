"""Answer what blocked tasks ask. They go back to the queue, and your answer stands in the Q&A.md of each.

The first answer wins; a second finds nothing to answer. Where one of several ids is not found, none is answered.

Examples:
  fleet answer fleet-abc "Use the staging database."
  fleet answer abc xyz @answer.md
"""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from fleet.cli.steering import each, print_each
from fleet.errors import NotFound

if TYPE_CHECKING:
    from fleet.cli.context import Context


def configure(parser: argparse.ArgumentParser) -> None:
    """The options of `fleet answer`."""
    from fleet.cli.add import TEXT_WAYS

    parser.add_argument("ids", metavar="ID", nargs="+", help="a task; several get the same answer")
    parser.add_argument("text", metavar="TEXT", help=f"the answer; {TEXT_WAYS}")


def run(args: argparse.Namespace, context: Context) -> int:
    """Record the answer."""
    from fleet.cli.add import read_text
    from fleet.cli.beads_queue import refuse_untaken

    for word in args.ids:
        refuse_untaken(word, context, f"see it with `fleet bd show {word}`")
    given = context.front.answer_each(args.ids, read_text(args.text))
    try:
        done, code = each(
            given, context, lambda task: context.print(f"Answered {task.id}: it is {task.state.value} again")
        )
    except NotFound as exc:
        if len(args.ids) > 1:
            raise NotFound(
                f"{exc}; nothing was answered", hint="a TEXT of several words needs quotes around it"
            ) from exc
        raise
    if context.json:
        print_each(done, context, args.ids)
    return code
