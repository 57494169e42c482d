"""Answer what a blocked task asks. It goes back to the queue, and your answer stands in its Q&A.md.

The first answer wins; a second finds nothing to answer.

Examples:
  fleet answer fleet-abc "Use the staging database."
  fleet answer abc @answer.md
"""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from fleet.cli.context import Context


def configure(parser: argparse.ArgumentParser) -> None:
    """The options of `fleet answer`."""
    parser.add_argument("id", metavar="ID", help="a task")
    from fleet.cli.add import TEXT_WAYS

    parser.add_argument("text", metavar="TEXT", help=f"the answer; {TEXT_WAYS}")


def run(args: argparse.Namespace, context: Context) -> int:
    """Record the answer."""
    from fleet.cli.add import read_text
    from fleet.cli.beads_queue import refuse_untaken

    refuse_untaken(args.id, context, f"see it with `fleet bd show {args.id}`")
    task = context.front.answer(args.id, read_text(args.text))
    if context.json:
        context.print_json(task)
    else:
        context.print(f"Answered {task.id}: it is {task.state.value} again")
    return 0
