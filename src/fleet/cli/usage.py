"""What is wrong with the words of a command, and what helps. Imported only then."""

from __future__ import annotations

import argparse
import re
from collections.abc import Iterable

from fleet.errors import UsageError
from fleet.model.nearest import nearest

TEXTS = ("TITLE", "TEXT", "CMD")  # arguments that are several words to a person, and one to a shell with quotes
ALIKE = 0.7  # how much an option must look like another to be proposed
CHOICE = re.compile(r"(.+): invalid choice: '?(.*?)'? \(choose from (.*)\)", re.DOTALL)


def explained(parser: argparse.ArgumentParser, message: str) -> UsageError:
    """What argparse says, in our words."""
    help_of = f"see `{parser.prog} --help`"
    verbs = next((each.choices for each in parser._actions if each.metavar == "VERB" and each.choices), ())
    message = message.removeprefix("argument ")
    choice = CHOICE.fullmatch(message)
    if verbs and choice and choice[1] == "VERB":
        near = nearest(choice[2], verbs)
        hint = f"did you mean `{parser.prog} {near}`?" if near else f"one of: {', '.join(verbs)}; {help_of}"
        return UsageError(f"unknown command `{parser.prog} {choice[2]}`", hint=hint)
    if verbs and message.endswith("required: VERB"):
        return UsageError(f"{parser.prog} does what?", hint=f"one of: {', '.join(verbs)}; {help_of}")
    if choice:
        names = choice[3].replace("'", "")
        near = nearest(choice[2], names.split(", "))
        return UsageError(
            f"{choice[1]}: `{choice[2]}` is none of {names}", hint=f"did you mean {near}?" if near else help_of
        )
    what, _, rest = message.partition(": ")
    if what == "unrecognized arguments":
        return UsageError(message, hint=f"{_meant(parser, rest.split()[0])}{help_of}")
    if what == "the following arguments are required":
        lists = "`fleet tasks --status all` lists the ids; " if rest == "ID" else ""
        return UsageError(f"{rest} must be given", hint=f"{lists}{_example(parser)}{help_of}")
    return UsageError(message, hint=help_of)


def nearest_option(word: str, known: Iterable[str]) -> str:
    """The same of options, which all begin alike."""
    bare = {name.lstrip("-"): name for name in known}
    return bare.get(nearest(word.partition("=")[0].lstrip("-"), bare, ALIKE), "")


def _meant(parser: argparse.ArgumentParser, stray: str) -> str:
    """What a word that nobody knows was probably meant to be."""
    if stray.startswith("-"):
        near = nearest_option(stray, (name for each in parser._actions for name in each.option_strings))
        if near or stray.startswith("--"):
            return f"did you mean {near}? " if near else ""
    texts = [each.metavar for each in parser._actions if not each.option_strings and each.metavar in TEXTS]
    return f"a {texts[0]} of several words needs quotes around it; " if texts else ""


def _example(parser: argparse.ArgumentParser) -> str:
    found = [line.strip() for line in (parser.epilog or "").splitlines()[1:] if line.strip()]
    return f"such as `{found[0]}`; " if found else ""
