"""What may come next on a command line, found by the parser that will read it."""

from __future__ import annotations

import argparse
import importlib
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, NamedTuple

from fleet.cli.app import FLAGS, VALUES, find, home_in, leading_options, make_parser, set_place
from fleet.cli.commands import COMMANDS
from fleet.cli.offers import Offer, of_beads, of_value

if TYPE_CHECKING:
    from fleet.cli.context import Context

MANY = ("*", "+")
BEFORE = {
    "--json": "print JSON",
    "--insecure": "without TLS on an address that others can reach",
    "--home": "the home to use",
    "--url": "a fleet that is served elsewhere",
    "--token-env": "the variable with the token for it",
    "--help": "every command",
    "--version": "the version",
}


class Place(NamedTuple):
    """Where a line stands: who reads on, what the next word can be, and what was said to that parser."""

    parser: argparse.ArgumentParser
    value: argparse.Action | None
    option_may_follow: bool
    said: list[str]


def next_words(words: Sequence[str], context: Context) -> list[Offer]:
    """What may stand in the place of the last word, which may be empty. Raises where what stands before it is wrong."""
    *before, current = words
    before = leading_options(before, context)
    offered = _all(before, current, context)
    return [one for one in dict.fromkeys(offered) if one.word.startswith(current)]


def _all(before: list[str], current: str, context: Context) -> Iterable[Offer]:
    if not before or before == ["help"]:
        names = [Offer(command.name, command.help) for command in COMMANDS]
        return _leading() if current.startswith("-") and not before else names
    command = find(before[0])
    context.home_flag = home_in(before) or context.home_flag
    set_place(before, context)
    if hasattr(importlib.import_module(f"fleet.cli.{command.module}"), "run_raw"):
        return of_beads(before[1:], context)
    place = reached(make_parser(command), before[1:])
    if place.option_may_follow and current.startswith("-"):
        return _options(place, current, context)
    return [] if place.value is None else of_value(place.value, place.parser.prog, place.said, current, context)


def reached(parser: argparse.ArgumentParser, words: Sequence[str]) -> Place:
    """The place behind some words."""
    left = [action for action in parser._actions if not action.option_strings]
    waits: argparse.Action | None = None
    bare = False  # after `--`, all are values
    for number, word in enumerate(words):
        if not bare and word.startswith("-") and word != "-" and (waits is None or waits.nargs in MANY):
            bare = word == "--"
            name, given, _ = word.partition("=")
            option = parser._option_string_actions.get(name)
            waits = option if option is not None and option.nargs != 0 and not given else None
        elif waits is not None:
            waits = waits if waits.nargs in MANY else None
        elif left and isinstance(left[0], argparse._SubParsersAction):
            verb = left[0].choices.get(word)
            return Place(parser, None, False, list(words)) if verb is None else reached(verb, words[number + 1 :])
        elif left and left[0].nargs not in MANY:
            left.pop(0)
    free = not bare and (waits is None or waits.nargs in MANY)
    return Place(parser, waits or (left[0] if left else None), free, list(words))


def _leading() -> list[Offer]:
    return [Offer(name, BEFORE[name]) for name in (*FLAGS, *VALUES, "--help", "--version")]


def _options(place: Place, current: str, context: Context) -> list[Offer]:
    """The options that were not given yet; the values of one, where its name and `=` stand there already."""
    name, given, value = current.partition("=")
    if given:
        action = place.parser._option_string_actions.get(name)
        found = [] if action is None else of_value(action, place.parser.prog, place.said, value, context)
        return [one._replace(word=f"{name}={one.word}") for one in found]
    once = [action for action in place.parser._actions if not _may_be_repeated(action)]
    gone = {name for action in once if set(action.option_strings) & set(place.said) for name in action.option_strings}
    return [
        Offer(name, action.help or "")
        for action in place.parser._actions
        if action.help != argparse.SUPPRESS
        for name in action.option_strings
        if name.startswith("--") and name not in gone
    ]


def _may_be_repeated(action: argparse.Action) -> bool:
    return isinstance(action, argparse._AppendAction)
