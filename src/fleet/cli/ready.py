"""List the tasks that could start now: queued, with all that they need completed. Most urgent first, then oldest.

Examples:
  fleet ready
  fleet ready --limit 10 --json
"""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from fleet.cli.context import Context


def configure(parser: argparse.ArgumentParser) -> None:
    """The options of `fleet ready`."""
    parser.add_argument("--limit", metavar="N", type=positive, default=100, help="at most N (100 if not given)")


def run(args: argparse.Namespace, context: Context) -> int:
    """Id, title and directory, a line each."""
    from fleet.cli.beads_queue import refuse_beads
    from fleet.projections.queue import ready

    refuse_beads(context, "fleet bd ready")
    found = ready(context.reads, args.limit)
    if context.json:
        context.print_json(found)
        return 0
    width = max((len(line.id) for line in found), default=0)
    titles = max((len(line.title) for line in found), default=0)
    for line in found:
        context.print(f"{line.id:<{width}}  P{line.priority}  {line.title:<{min(titles, 60)}}  {line.cwd or '-'}")
    if not found:
        context.note(nothing_ready(context))
    elif len(found) == args.limit:
        context.note(f"({args.limit} shown; --limit N shows more)")
    return 0


def nothing_ready(context: Context) -> str:
    """Why the list is empty: nothing is there, or all that is there waits."""
    counts = context.reads.counts()
    waiting = counts.get("queued", 0)
    blocked = counts.get("blocked", 0)
    if waiting or blocked:
        return f"nothing is ready: {waiting} queued (waiting for others, or for their time), {blocked} blocked"
    return 'nothing is ready; add something: fleet add "TITLE"'


def positive(word: str) -> int:
    """A whole number above zero."""
    if not word.isdecimal() or int(word) < 1:
        raise argparse.ArgumentTypeError(f"must be a positive number, not `{word}`")
    return min(int(word), 1 << 31)
