"""Plugins: from a name to what it stands for, by entry point. Built-ins and strangers are found alike."""

from __future__ import annotations

from fleet import coders
from fleet.errors import UsageError

FAMILIES = ("coders", "hosts", "scorers", "channels", "sources")
_BUILT_IN = {"coders": coders.BUILT_IN}


def names(family: str) -> tuple[str, ...]:
    """All registered names of a family, sorted."""
    from importlib.metadata import entry_points

    found = {point.name for point in entry_points(group=f"fleet.{family}")}
    return tuple(sorted(found.union(_BUILT_IN.get(family, ()))))


def check_coder(name: str) -> str:
    """A coder's name, if it is registered. Built-in names cost no search."""
    if name in coders.BUILT_IN or name in names("coders"):
        return name
    from difflib import get_close_matches

    known = names("coders")
    near = get_close_matches(name, known, n=1)
    raise UsageError(
        f"unknown coder `{name}`",
        hint=f"did you mean `{near[0]}`?" if near else f"registered coders: {', '.join(known)}",
    )
