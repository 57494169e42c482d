"""List the tasks that could start now: queued, with all that they need completed. Most urgent first, then oldest.

Examples:
  fleet ready
  fleet ready --limit 10 --json
"""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from fleet.cli.parsing import positive

if TYPE_CHECKING:
    from fleet.cli.context import Context
    from fleet.projections.queue import ReadyLine


def configure(parser: argparse.ArgumentParser) -> None:
    """The options of `fleet ready`."""
    parser.add_argument("--limit", metavar="N", type=positive, default=100, help="at most N (100 if not given)")


def run(args: argparse.Namespace, context: Context) -> int:
    """Id, title and directory, a line each."""
    if context.bd_keeps_the_queue:
        from fleet.cli import beads_queue

        return beads_queue.ready(args, context)
    found = context.front.ready(args.limit + 1)  # one more than is shown: whether there is more
    print_lines(found, args.limit, context, nothing=None if found else nothing_ready(context))
    return 0


def print_lines(found: list[ReadyLine], limit: int, context: Context, nothing: str | None) -> None:
    """So many of the lines, and whether there are more; or why there are none."""
    from fleet.cli.words import cells, pad, shown

    more, found = len(found) > limit, found[:limit]
    if context.json:
        context.print_json(found)
        return
    width = max((len(line.id) for line in found), default=0)
    titles = min(60, max((cells(line.title) for line in found), default=0))
    for line in found:
        context.print(f"{line.id:<{width}}  P{line.priority}  {pad(line.title, titles)}  {line.cwd or '-'}")
    if not found:
        context.note(nothing or "nothing is ready")
    elif more:
        context.note(shown(limit))


def nothing_ready(context: Context) -> str:
    """Why the list is empty: nothing is there, or all that is there waits."""
    counts = context.front.counts()
    waiting = counts.get("queued", 0)
    blocked = counts.get("blocked", 0)
    parts = [f"{waiting} queued (waiting for others, or for their time)"] if waiting else []
    parts += [f"{blocked} blocked"] if blocked else []
    if parts:
        return f"nothing is ready: {', '.join(parts)}"
    return 'nothing is ready; add something: fleet add "TITLE"'
