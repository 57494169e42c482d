"""What git ignores in a worktree: which of it is kept when the worktree goes, and which can be made anew."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Literal

import msgspec

from fleet.errors import Conflict

Fate = Literal["keep", "discard"]
MOST_KEPT = 16 << 20  # bytes that are put aside without being asked for
SHOWN = 5
MEASURED = re.compile(r"(\d+)\t(.*)")
# What programs fill and fill again: packages that were installed, and what was made of sources. A directory that has a
# CACHEDIR.TAG, or is an environment of Python, says so itself.
REMADE = frozenset(
    {
        *(".DS_Store", ".eggs", ".gradle", ".mypy_cache", ".next", ".nox", ".nuxt", ".parcel-cache", ".pytest_cache"),
        *(".ruff_cache", ".svelte-kit", ".terraform", ".tox", ".turbo", ".venv", ".vite", "__pycache__"),
        *("bower_components", "node_modules"),
    }
)
REMADE_ENDINGS = (".pyc", ".pyo", ".class", ".o", ".egg-info")


class Leftover(msgspec.Struct, frozen=True, kw_only=True):
    """A file, or a directory that is ignored as a whole."""

    name: str
    bytes: int  # on the disk
    remade: bool = False  # whether a program makes it anew


class Sorted(msgspec.Struct, frozen=True, kw_only=True):
    """What is put aside when a worktree goes, and what goes with it."""

    kept: tuple[Leftover, ...] = ()
    gone: tuple[Leftover, ...] = ()


def leftovers(said: str) -> tuple[Leftover, ...]:
    """What `ignored` of workspace.sh told. What the checkout has just so is none."""
    measured, *tagged, same = said.split("\0")
    copies, anew = _sizes(same), {name.rstrip("/") for name in tagged}
    found = []
    for name, size in _sizes(measured).items():
        if name == ".git" or name in copies:
            continue
        own = size - sum(copies[copy] for copy in copies if copy.startswith(f"{name}/"))
        found.append(Leftover(name=name, bytes=max(own, 0), remade=name in anew or _is_remade(name)))
    return tuple(found)


def _sizes(measured: str) -> dict[str, int]:
    """By name, which may have more than one line."""
    sizes: dict[str, int] = {}
    name = ""
    for line in measured.removesuffix("\n").split("\n"):
        if told := MEASURED.fullmatch(line):
            name = told[2]
            sizes[name] = int(told[1]) << 10
        elif name:
            sizes[f"{name}\n{line}"] = sizes.pop(name)
            name = f"{name}\n{line}"
    return {name.rstrip("/"): size for name, size in sizes.items()}


def _is_remade(name: str) -> bool:
    word = name.rpartition("/")[2]
    return word in REMADE or word.endswith(REMADE_ENDINGS)


def sort_out(found: Sequence[Leftover], fate: Fate | None) -> Sorted:
    """Keep all, or none; unless that is said, what cannot be made anew. Conflict: that is too much to keep unasked."""
    if fate == "discard":
        return Sorted(gone=tuple(found))
    if fate == "keep":
        return Sorted(kept=tuple(found))
    kept = tuple(one for one in found if not one.remade)
    if sum(one.bytes for one in kept) > MOST_KEPT:
        large = told(sorted(kept, key=lambda one: -one.bytes))
        hint = "say what becomes of it: --ignored keep, or --ignored discard"
        raise Conflict(f"git ignores {large}, and has it nowhere", hint=hint)
    return Sorted(kept=kept, gone=tuple(one for one in found if one.remade))


def shown(name: str) -> str:
    """The name of a file as a person can read it: what is no text, or would move the cursor, as escapes."""
    return "".join(each if each.isprintable() else _escape(each) for each in name)


def _escape(each: str) -> str:
    if "\udc80" <= each <= "\udcff":  # a byte that is no text
        return f"\\x{ord(each) - 0xDC00:02x}"
    return each.encode("unicode_escape").decode("ascii")


def told(found: Sequence[Leftover]) -> str:
    """Their names and how much they are."""
    names = ", ".join(shown(one.name) for one in found[:SHOWN])
    more = f" and {len(found) - SHOWN} more" if len(found) > SHOWN else ""
    return f"{names}{more} ({_size(sum(one.bytes for one in found))})"


def _size(count: int) -> str:
    for unit, most in (("KiB", 10), ("MiB", 20)):
        if count < 1024 << most:
            return f"{count / (1 << most):.0f} {unit}"
    return f"{count / (1 << 30):.1f} GiB"
