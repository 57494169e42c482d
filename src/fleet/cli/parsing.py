"""What the parsers of the commands share."""

from __future__ import annotations

import argparse
from typing import Any

WIDTH = 100


class Formatter(argparse.RawDescriptionHelpFormatter):
    """Help of one width. argparse asks for the terminal's at every option it is given, which slows each start."""

    def __init__(self, prog: str) -> None:
        super().__init__(prog, width=WIDTH)


def positive(word: str) -> int:
    """A whole number above zero."""
    if not (word.isascii() and word.isdecimal()) or int(word) < 1:
        raise argparse.ArgumentTypeError(f"must be a positive number, not `{word}`")
    return min(int(word), (1 << 31) - 1)


def add_selection(parser: argparse.ArgumentParser) -> None:
    """The options that say which machines."""
    parser.add_argument("--team", metavar="T", help="only the hosts of this team (of TEAM-ROLE-ID; may have * and ?)")
    parser.add_argument("--role", metavar="R", help="only the hosts of this role")
    parser.add_argument(
        "--host", metavar="NAME", action="append", default=[], help="only this host, by either name; may be repeated"
    )


def add_verb(verbs: Any, name: str, text: str, *examples: str) -> argparse.ArgumentParser:
    """The parser of one verb of a command. The options of all commands may follow it too."""
    parser: argparse.ArgumentParser = verbs.add_parser(
        name,
        help=text,
        description=text[0].upper() + text[1:] + ".",
        epilog="\n  ".join(["examples:", *examples]),
        formatter_class=Formatter,
        allow_abbrev=False,
    )
    parser.add_argument("--json", action="store_true", default=argparse.SUPPRESS, help="print JSON")
    parser.add_argument("--home", metavar="DIR", default=argparse.SUPPRESS, help="the home to use")
    return parser
