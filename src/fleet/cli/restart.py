"""Run a task again. A live session is ended first and costs no attempt; an ended task goes back to the queue.

Examples:
  fleet restart fleet-abc
  fleet restart fleet-abc --reason "the server is up again"
"""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from fleet.cli.context import Context


def configure(parser: argparse.ArgumentParser) -> None:
    """The options of `fleet restart`."""
    parser.add_argument("id", metavar="ID", help="a task")
    parser.add_argument("--reason", metavar="TEXT", default="restarted by a person", help="stands in the ledger")


def run(args: argparse.Namespace, context: Context) -> int:
    """Queue it again, or ask its supervisor to."""
    from fleet.cli.show import detail_of
    from fleet.model.intent import Intent

    done = context.control.restart(args.id, args.reason)
    if context.json:
        context.print_json(done if isinstance(done, Intent) else detail_of(context, done))
    elif isinstance(done, Intent):
        context.print(f"Restarting {done.target}: its supervisor has been asked")
    else:
        context.print(f"Restarted {done.uid}: it is {done.state.value} again")
    return 0
