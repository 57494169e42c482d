"""Print the supervisor's own log: the newest file, whole or its last N lines.

Examples:
  fleet log
  fleet log 200
"""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from fleet.errors import UsageError

if TYPE_CHECKING:
    from fleet.cli.context import Context


def configure(parser: argparse.ArgumentParser) -> None:
    """The options of `fleet log`."""
    parser.add_argument("n", metavar="N", nargs="?", help="only the last N lines")


def run(args: argparse.Namespace, context: Context) -> int:
    """The lines as they stand in the file."""
    found = context.front.supervisor_log(parse_count(args.n))
    if context.json:
        context.print_json(found)
    else:
        context.print_lines(iter(found.lines))
    if found.file is None:
        place = "there" if context.url else f"in {context.home.logs}"
        context.note(f"there is no log yet {place}: no supervisor has run")
    return 0


def parse_count(word: str | None) -> int | None:
    """A positive number, or an error that says what was meant."""
    if word is None:
        return None
    if word.isascii() and word.isdecimal() and word.strip("0"):
        return int(word.lstrip("0")[:18])  # no file has more lines than that
    hint = "`fleet log 200` prints the last 200 lines"
    if any(letter.isalpha() for letter in word):
        hint = f"the log of one task is `fleet logs {word}`"
    raise UsageError(f"N must be a positive number, not `{word}`", hint=hint)
