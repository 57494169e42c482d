"""Flags as bd takes them: anywhere among the words, `--name value` or `--name=value`, and `--` ends them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from enum import Enum
from typing import NamedTuple

from fleet.errors import UsageError
from fleet.model.nearest import nearest

REAL_BD = 'Fleet\'s own queue has the verbs of daily work; `[queue] source = "beads"` in fleet.toml gives the real bd'


class Takes(Enum):
    """What follows a flag."""

    TEXT = "string"
    NUMBER = "int"
    LIST = "strings"  # repeatable, and several with commas
    TEXTS = "stringArray"  # repeatable, commas kept
    NOTHING = ""


class Flag(NamedTuple):
    """One flag of a verb."""

    name: str
    short: str = ""
    takes: Takes = Takes.TEXT
    help: str = ""


GLOBAL = (
    Flag("json", "", Takes.NOTHING, "print JSON, in bd's envelope"),
    Flag("actor", "", Takes.TEXT, "who acts (else $BEADS_ACTOR, $FLEET_ACTOR, $USER)"),
    Flag("help", "h", Takes.NOTHING, "print this"),
    Flag("quiet", "q", Takes.NOTHING, "print no more than what was asked for"),
    Flag("readonly", "", Takes.NOTHING, "refuse every verb that changes something"),
    Flag("verbose", "v", Takes.NOTHING, "taken for bd's sake; changes nothing"),
    Flag("no-color", "", Takes.NOTHING, "taken for bd's sake; there is no colour"),
    Flag("sandbox", "", Takes.NOTHING, "taken for bd's sake; nothing is ever pushed"),
)


class Given:
    """The words of one call: those that stand alone, and the flags with what was said for them."""

    def __init__(self, words: list[str], said: dict[str, list[str]]) -> None:
        self.words = words
        self._said = said

    def has(self, name: str) -> bool:
        """Whether the flag was given at all, even with an empty value."""
        return name in self._said

    def on(self, name: str) -> bool:
        """Whether a switch was turned on."""
        return self._said.get(name, ["false"])[-1] == "true"

    def text(self, name: str) -> str | None:
        """What was said last for a flag."""
        return self._said[name][-1] if name in self._said else None

    def texts(self, name: str) -> list[str]:
        """Everything that was said for a flag, as it was said."""
        return self._said.get(name, [])

    def list(self, name: str) -> list[str]:
        """Everything that was said for a flag, split at commas."""
        parts = (part.strip() for text in self.texts(name) for part in text.split(","))
        return [part for part in parts if part]

    def number(self, name: str) -> int | None:
        """A whole number."""
        said = self.text(name)
        return None if said is None else int(said)


def parse(words: Sequence[str], flags: Iterable[Flag], verb: str) -> Given:
    """Sort the words of a call. A flag that the verb does not have is a UsageError that names it."""
    known = [*flags, *GLOBAL]
    long = {flag.name: flag for flag in known}
    short = {flag.short: flag for flag in known if flag.short}
    alone: list[str] = []
    said: dict[str, list[str]] = {}
    rest = list(words)
    while rest:
        word = rest.pop(0)
        if word == "--":
            alone += rest
            break
        if word.startswith("--"):
            name, eq, value = word[2:].partition("=")
            flag = long.get(name)
        elif word.startswith("-") and len(word) > 1:
            flag, value = short.get(word[1]), word[2:]
            eq, value = ("=", value.removeprefix("=")) if value else ("", "")
        else:
            alone.append(word)
            continue
        if flag is None:
            raise _unknown(word.partition("=")[0], verb, known)
        if flag.takes is Takes.NOTHING:
            said.setdefault(flag.name, []).append(_switch(word, value) if eq else "true")
            continue
        if not eq:
            if not rest:
                raise UsageError(f"flag needs an argument: {word}", hint=f"see `fleet bd {verb} --help`")
            value = rest.pop(0)
        said.setdefault(flag.name, []).append(_number(word, value) if flag.takes is Takes.NUMBER else value)
    return Given(alone, said)


def _unknown(word: str, verb: str, known: list[Flag]) -> UsageError:
    near = nearest(word.lstrip("-"), [flag.name for flag in known], alike=0.75)
    hint = f"did you mean --{near}? " if near else ""
    return UsageError(f"unknown flag: {word} of `bd {verb}`", hint=hint + REAL_BD)


def _switch(word: str, value: str) -> str:
    if value.lower() not in ("true", "false", "1", "0", "t", "f"):
        raise UsageError(f'invalid argument "{value}" for {word.partition("=")[0]}: it is true or false')
    return "true" if value.lower() in ("true", "1", "t") else "false"


def _number(word: str, value: str) -> str:
    if not value.lstrip("-").isdecimal():
        raise UsageError(f'invalid argument "{value}" for {word.partition("=")[0]}: it takes a whole number')
    return value
