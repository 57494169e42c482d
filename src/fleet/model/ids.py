"""Ids: how they look, and how a short form finds the whole."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from fleet.errors import Ambiguous, NotFound, UsageError

ALPHABET = "abcdefghjkmnpqrstuvwxyz23456789"  # none that looks or sounds like another in most type: no i, l, o, 0, 1
LISTS = {"task": "`fleet tasks --status all` lists them", "run": "`fleet runs` lists them"}
MOST_NAMED = 10
TOKEN = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,127}")


def check_token(word: str, what: str) -> str:
    """A word that may name a thing and a path: letters, digits, dot, dash, underscore."""
    if not TOKEN.fullmatch(word):
        raise UsageError(f"{what} `{word}` must be letters, digits, `.`, `-` or `_`, at most 128 of them")
    return word


def resolve(word: str, found: Sequence[str], what: str = "task") -> str:
    """The one id among those found that `word` stands for: itself, or the only one it begins or ends."""
    if word in found:
        return word
    if not found:
        raise NotFound(f"no {what} `{word}`", hint=LISTS.get(what, ""))
    if len(found) > 1:
        some = ", ".join(sorted(found)[:5]) + (", ..." if len(found) > 5 else "")
        raise Ambiguous(f"`{word}` fits {len(found)} {what}s: {some}", hint="give more of the id")
    return found[0]


def some_of(names: Iterable[str]) -> str:
    """Names for a hint: all of a few, the first of many."""
    known = sorted(names)
    more = f" and {len(known) - MOST_NAMED} more" if len(known) > MOST_NAMED else ""
    return ", ".join(known[:MOST_NAMED]) + more or "none"


def run_subject(run: str) -> str:
    """The chain of a run."""
    return f"run/{run}"


def host_subject(host: str) -> str:
    """The chain of a host."""
    return f"host/{host}"


def supervisor_subject(supervisor: str) -> str:
    """The chain of a supervisor."""
    return f"supervisor/{supervisor}"


CHECK = "check-"  # how a command names itself that sends alerts and is no supervisor


def channel_subject(channel: str) -> str:
    """The chain of a channel: what was sent there."""
    return f"channel/{channel}"


def slug(name: str, *, most: int = 32) -> str:
    """A name as a word that may stand in an id."""
    words = re.sub(r"[^a-z0-9]+", "-", name.lower()).strip("-")[:most].strip("-")
    return words or "run"
