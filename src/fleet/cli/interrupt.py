"""End the sessions of tasks. A task is then blocked as interrupted, no attempt is used, and its files stay.

Examples:
  fleet interrupt fleet-abc
  fleet interrupt nightly-x7k-local-1 --reason "wrong branch"
"""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from fleet.cli.steering import add_target, each, note_absence, tell_asked

if TYPE_CHECKING:
    from fleet.cli.context import Context


def configure(parser: argparse.ArgumentParser) -> None:
    """The options of `fleet interrupt`."""
    add_target(parser, "interrupted by a person")


def run(args: argparse.Namespace, context: Context) -> int:
    """Record the wish; the supervisor of the session carries it out."""
    asked, code = each(args.ids, lambda word: context.front.interrupt(word, args.reason), context)
    if context.json:
        context.print_json(asked if len(args.ids) > 1 else asked[0])
        return code
    for intent in asked:
        tell_asked(context, intent)
    if asked:
        note_absence(context)
    return code
