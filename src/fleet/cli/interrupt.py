"""End the sessions of tasks. A task is then blocked as interrupted, no attempt is used, and its files stay.

Examples:
  fleet interrupt fleet-abc
  fleet interrupt nightly-x7k-local-1 --reason "wrong branch"
"""

from __future__ import annotations

import argparse
from functools import partial
from typing import TYPE_CHECKING

from fleet.cli.steering import add_target, each, note_absence, print_each, tell_asked

if TYPE_CHECKING:
    from fleet.cli.context import Context


def configure(parser: argparse.ArgumentParser) -> None:
    """The options of `fleet interrupt`."""
    add_target(parser, "interrupted by a person")


def run(args: argparse.Namespace, context: Context) -> int:
    """Record the wish; the supervisor of the session carries it out."""
    given = context.front.interrupt_each(args.ids, args.reason)
    asked, code = each(given, context, partial(tell_asked, context))
    if context.json:
        print_each(asked, context, args.ids)
    elif asked:
        note_absence(context)
    return code
