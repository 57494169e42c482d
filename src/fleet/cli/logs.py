"""Print the tail of a task's log.

Examples:
  fleet logs fleet-abc
  fleet logs fleet-abc -n 500
"""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from fleet.cli.parsing import positive

if TYPE_CHECKING:
    from fleet.cli.context import Context


def configure(parser: argparse.ArgumentParser) -> None:
    """The options of `fleet logs`."""
    parser.add_argument("id", metavar="ID", help="a task")
    parser.add_argument(
        "-n", "--lines", metavar="N", type=positive, default=50, help="how many lines (50 if not given)"
    )


def run(args: argparse.Namespace, context: Context) -> int:
    """The last lines of log.jsonl."""
    from fleet.cli.beads_queue import uid_of
    from fleet.cli.task import print_file

    return print_file(context, uid_of(args.id, context), "log", last=args.lines)
