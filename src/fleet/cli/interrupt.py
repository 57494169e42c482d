"""End the session of a task. The task is then blocked as interrupted, no attempt is used, and its files stay.

Examples:
  fleet interrupt fleet-abc
  fleet interrupt nightly-x7k-local-1 --reason "wrong branch"
"""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from fleet.cli.steering import add_target, note_absence, tell_asked

if TYPE_CHECKING:
    from fleet.cli.context import Context


def configure(parser: argparse.ArgumentParser) -> None:
    """The options of `fleet interrupt`."""
    add_target(parser, "interrupted by a person")


def run(args: argparse.Namespace, context: Context) -> int:
    """Record the wish; the supervisor of the session carries it out."""
    intent = context.front.interrupt(args.id, args.reason)
    if context.json:
        context.print_json(intent)
    else:
        tell_asked(context, intent)
        note_absence(context)
    return 0
