"""End the session of a task. The task is then blocked as interrupted, no attempt is used, and its files stay.

Examples:
  fleet interrupt fleet-abc
  fleet interrupt fleet-abc --reason "wrong branch"
"""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from fleet.cli.context import Context


def configure(parser: argparse.ArgumentParser) -> None:
    """The options of `fleet interrupt`."""
    parser.add_argument("id", metavar="ID", help="a task")
    parser.add_argument("--reason", metavar="TEXT", default="interrupted by a person", help="stands in the ledger")


def run(args: argparse.Namespace, context: Context) -> int:
    """Record the wish; the supervisor of the session carries it out."""
    intent = context.control.interrupt(args.id, args.reason)
    if context.json:
        context.print_json(intent)
    else:
        context.print(f"Interrupting {intent.target}: its supervisor has been asked")
    return 0
