"""What the parsers of the commands share."""

from __future__ import annotations

import argparse
import os
from functools import cache
from typing import Any

WIDTH = 100  # of help, unless the terminal has less
NARROWEST = 40
EXAMPLES = "examples:"


class Formatter(argparse.RawDescriptionHelpFormatter):
    """Help as wide as the terminal, up to a bound. argparse would ask for that at every option, which slows a start."""

    def __init__(self, prog: str) -> None:
        super().__init__(prog, width=_width())

    def _fill_text(self, text: str, width: int, indent: str) -> str:
        """Paragraphs are filled; examples, and what is set in, are to be pasted or read as they stand."""
        from textwrap import fill

        if text.startswith(EXAMPLES):
            return super()._fill_text(text, width, indent)
        parts = text.split("\n\n")
        return "\n\n".join(part if "\n " in part else fill(part, width, break_on_hyphens=False) for part in parts)


@cache
def _width() -> int:
    try:
        return max(NARROWEST, min(WIDTH, os.get_terminal_size(1).columns - 2))
    except (OSError, ValueError):  # a pipe, or closed
        return WIDTH


def positive(word: str) -> int:
    """A whole number above zero."""
    if not (word.isascii() and word.isdecimal()) or int(word) < 1:
        raise argparse.ArgumentTypeError(f"must be a positive number, not `{word}`")
    return min(int(word), (1 << 31) - 1)


def moment(word: str) -> int:
    """A moment in UTC milliseconds: so long ago (`90s`, `10m`, `3d`), `today`, or a local date or time of today."""
    import re
    import time
    from datetime import datetime

    from fleet.config.clock import utc_ms

    ago = re.fullmatch(r"(\d{1,9})(s|m|h|d)", word, re.ASCII)
    if ago:
        seconds = int(ago[1]) * {"s": 1, "m": 60, "h": 3600, "d": 86400}[ago[2]]
        return max(0, utc_ms() - seconds * 1000)
    word = "00:00" if word == "today" else word
    clock = re.fullmatch(r"\d\d:\d\d(:\d\d)?", word, re.ASCII)
    try:
        found = datetime.fromisoformat(f"{time.strftime('%Y-%m-%d')}T{word}" if clock else word)
        return max(0, int(found.timestamp() * 1000))  # without a zone it is the local time
    except (ValueError, OverflowError) as exc:
        raise argparse.ArgumentTypeError(
            f"must be like 10m, 2h, 14:30, today or 2026-01-31T14:30, not `{word}`"
        ) from exc


def add_selection(parser: argparse.ArgumentParser) -> None:
    """The options that say which machines."""
    team = "only the hosts of this team (of TEAM-ROLE-ID; may have * and ?)"
    parser.add_argument("--team", metavar="T", type=_filled, help=team)
    parser.add_argument("--role", metavar="R", type=_filled, help="only the hosts of this role")
    name = "only this host, by either name; may be repeated"
    parser.add_argument("--host", metavar="NAME", type=_filled, action="append", default=[], help=name)


def _filled(word: str) -> str:
    """A word. An empty one is a variable that was not set, and would mean other machines than the person did."""
    if not word.strip():
        raise argparse.ArgumentTypeError("must not be empty")
    return word


def add_verb(verbs: Any, name: str, text: str, *examples: str) -> argparse.ArgumentParser:
    """The parser of one verb of a command. The options of all commands may follow it too."""
    parser: argparse.ArgumentParser = verbs.add_parser(
        name,
        help=text,
        description=text[0].upper() + text[1:] + ".",
        epilog="\n  ".join([EXAMPLES, *examples]),
        formatter_class=Formatter,
        allow_abbrev=False,
    )
    parser.add_argument("--json", action="store_true", default=argparse.SUPPRESS, help="print JSON")
    parser.add_argument("--home", metavar="DIR", default=argparse.SUPPRESS, help="the home to use")
    return parser
