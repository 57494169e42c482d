"""What a task may use: a tool profile and a list of tools, in words that all coders share; each has its own for them.

A word of the list is a kind of tool (`read`, `edit`, `shell`, `web`), a program that the shell may run (`git`, `rg`),
or a tool by the coder's own name for it (`WebFetch`, `mcp__tracker__search`). Reading is always allowed, and so are
Fleet's own commands and the paths of `Work.writable`: without them an agent could neither report nor ask.
"""

from __future__ import annotations

import re
from collections.abc import Collection

import msgspec

from fleet.coders.coder import Coder, Work
from fleet.errors import UsageError
from fleet.model.permission import Hold, Permission

READ_ONLY, DEFAULT, FULL = PROFILES = ("read-only", "default", "full")
KINDS = {
    "read": "read",
    "edit": "edit",
    "write": "edit",
    "shell": "shell",
    "bash": "shell",
    "sh": "shell",
    "web": "web",
}
WRITING = frozenset({"edit", "shell"})  # kinds that do not go with reading only
PROGRAM = re.compile(r"[a-z0-9][a-z0-9.+-]*")
OURS = ("fleet", "bd")  # programs that are always allowed: they only write to the session's outbox


class Named(msgspec.Struct, frozen=True):
    """A list of tools, sorted by what its words are."""

    kinds: tuple[str, ...]
    programs: tuple[str, ...]
    own: tuple[str, ...]


def named(tools: Collection[str]) -> Named:
    """The kinds, the programs and the coder's own names in a list; Fleet's commands are among the programs."""
    kinds = {KINDS[word]: None for word in tools if word in KINDS}
    rest = [word for word in tools if word not in KINDS]
    programs = {word: None for word in (*rest, *OURS) if PROGRAM.fullmatch(word)}
    return Named(tuple(kinds), tuple(programs), tuple(word for word in rest if not PROGRAM.fullmatch(word)))


def limited(work: Work) -> bool:
    """Whether anything is held back from it."""
    return bool(work.tools) or work.tool_profile == READ_ONLY


def judged(
    tools: tuple[str, ...],
    profile: str | None,
    *,
    tools_by: str = "",
    profile_by: str = "",
    writing: Collection[str] = (),
) -> tuple[Permission, ...]:
    """What a coder makes of them. `…_by` says by what it enforces one; without that it refuses it.

    `writing`: its own names of tools that change things, which do not go with reading only.
    """
    found = []
    if profile is not None and profile not in PROFILES:
        found.append(Permission("tool_profile", Hold.REFUSED, f"`{profile}` is none of {', '.join(PROFILES)}"))
    elif profile == READ_ONLY:
        found.append(_held("tool_profile", profile_by, "it cannot be kept from writing"))
    elif profile == FULL:
        found.append(Permission("tool_profile", Hold.ENFORCED, "nothing is held back"))
    if tools:
        wrong = _clash(tools, profile, writing)
        found.append(
            Permission("tools", Hold.REFUSED, wrong)
            if wrong
            else _held("tools", tools_by, "it cannot be held to a list")
        )
    return tuple(found)


def not_applicable(tools: tuple[str, ...], profile: str | None) -> tuple[Permission, ...]:
    """What a coder without tools of its own makes of them."""
    wrong = tuple(each for each in judged((), profile, profile_by="-") if each.hold is Hold.REFUSED)
    asked = [name for name, given in (("tools", tools), ("tool_profile", profile)) if given and given != DEFAULT]
    return wrong or tuple(Permission(name, Hold.NOT_APPLICABLE, "it has no tools of its own") for name in asked)


def refuse(coder: Coder, work: Work) -> None:
    """Raise when the work asks for a permission that the coder cannot be held to."""
    for each in coder.permissions(work.tools, work.tool_profile):
        if each.hold is Hold.REFUSED:
            raise UsageError(
                f"`{coder.name}` refuses {each.field}: {each.why}",
                hint=f"leave out {each.field}, or use a coder that enforces it, such as claude",
            )


def _held(field: str, by: str, why_not: str) -> Permission:
    return Permission(field, Hold.ENFORCED, by) if by else Permission(field, Hold.REFUSED, why_not)


def _clash(tools: tuple[str, ...], profile: str | None, writing: Collection[str]) -> str:
    if profile == FULL:
        return f"`{FULL}` allows every tool; a list does not go with it"
    changing = [word for word in tools if KINDS.get(word) in WRITING or word in writing]
    return f"`{changing[0]}` can write, and the profile is {READ_ONLY}" if profile == READ_ONLY and changing else ""
