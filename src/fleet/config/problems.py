"""Everything that is wrong with a table, at once: unknown keys, wrong types, values out of bounds.

The decoder stops at its first error, so this walk is made only when it has found one.
"""

from __future__ import annotations

import types
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, NamedTuple, get_args, get_origin

import msgspec

from fleet.config.fields import KeyPath, bare, extra, find, is_table, sections, words
from fleet.config.settings import ALIASES, Settings
from fleet.model.clash import ClashError
from fleet.model.nearest import nearest

MOST_LISTED = 40  # keys
MOST_SHOWN = 60


class Problem(NamedTuple):
    """One thing to change, and where."""

    path: KeyPath
    text: str

    @property
    def key(self) -> str:
        """The path as one would write it."""
        key = ""
        for part in self.path:
            key += f"[{part}]" if isinstance(part, int) else f".{part}" if key else str(part)
        return key


def settings_problems(table: Mapping[str, Any]) -> list[Problem]:
    """What is wrong with the content of a fleet.toml."""
    rest = {name: value for name, value in table.items() if name not in ALIASES}
    found = list(_walk(rest, Settings, (), also=ALIASES))
    for name in ALIASES:
        if name in table and (field := find(name)):
            found += _walk(table[name], field.type, (name,))
    return found + list(conflicts(table))


def conflicts(table: Mapping[str, Any]) -> Iterator[Problem]:
    """Settings that are given twice, with and without their section, and differ."""
    section = table.get("supervisor")
    for name in ALIASES:
        if isinstance(section, Mapping) and name in table and name in section and table[name] != section[name]:
            yield Problem((name,), f"supervisor.{name} is given too and differs; keep one of them")


def problems(value: object, kind: Any) -> list[Problem]:
    """What is wrong with a value that should be of a type made of Structs, tuples and plain values."""
    return list(_walk(value, kind, ()))


def found_words(value: object) -> str:
    """What was found, for a person."""
    if isinstance(value, Mapping):
        return "a table"
    if isinstance(value, list):
        return "an array"
    if isinstance(value, str):
        short = value if len(value) <= MOST_SHOWN else value[: MOST_SHOWN - 3] + "..."
        return msgspec.json.encode(short).decode()
    if isinstance(value, bool):
        return str(value).lower()
    return "nothing" if value is None else str(value)


def unknown(key: str, valid: Iterable[str], *, elsewhere: bool = False) -> str:
    """What to say of a key that nobody knows; `elsewhere` looks for its name in the sections too."""
    valid = list(valid)
    near = nearest(key, valid) or (_elsewhere(key) if elsewhere else "")
    if near:
        return f"unknown key; did you mean {near}?"
    if len(valid) > MOST_LISTED:  # a screen full of keys helps nobody
        sections = dict.fromkeys(name.partition(".")[0] for name in valid)
        return f"unknown key; the sections are: {', '.join(sections)}"
    return f"unknown key; valid keys: {', '.join(valid)}"


def _elsewhere(key: str) -> str:
    """The first setting of that very name in some section; empty where there is none."""
    return next((field.key for section in sections() for field in section.fields if field.name == key), "")


def _walk(value: object, kind: Any, path: KeyPath, also: tuple[str, ...] = ()) -> Iterator[Problem]:
    plain = bare(kind)
    if get_origin(plain) is types.UnionType and isinstance(value, Mapping):  # a table may be one of the choices
        plain = next((choice for choice in get_args(plain) if is_table(choice)), plain)
    if is_table(plain) and isinstance(value, Mapping):
        yield from _table(value, plain, path, also)
    elif get_origin(plain) is dict and isinstance(value, Mapping):
        for name, item in value.items():
            yield from _walk(item, get_args(plain)[1], (*path, name))
    elif get_origin(plain) is tuple and isinstance(value, list):
        for place, item in enumerate(value):
            yield from _walk(item, get_args(plain)[0], (*path, place))
    elif not _fits(value, kind):
        yield Problem(path, _refusal(value, kind))


def _table(
    value: Mapping[str, Any], cls: type[msgspec.Struct], path: KeyPath, also: tuple[str, ...]
) -> Iterator[Problem]:
    known = {info.encode_name: info for info in msgspec.structs.fields(cls)}
    good: dict[str, Any] = {}
    missing = [name for name, info in known.items() if info.required and name not in value]
    for name in missing:
        yield Problem((*path, name), f"is missing; expected {words(known[name].type)}")
    for name, item in value.items():
        if name not in known:
            yield Problem((*path, name), unknown(name, (*known, *also), elsewhere=bool(also)))
            continue
        wrong = list(_walk(item, known[name].type, (*path, name)))
        yield from wrong
        if not wrong:
            good[name] = item
    if not missing:
        yield from _together(good, cls, path)


def _together(good: dict[str, Any], cls: type[msgspec.Struct], path: KeyPath) -> Iterator[Problem]:
    """What is wrong only with the fields taken together, judged by those that are right by themselves."""
    try:
        msgspec.convert(good, cls)
    except msgspec.ValidationError as exc:
        if isinstance(exc.__cause__, ClashError):
            yield Problem((*path, *exc.__cause__.path), str(exc.__cause__))


def _fits(value: object, kind: Any) -> bool:
    try:
        msgspec.convert(value, kind)
    except msgspec.ValidationError:
        return False
    return True


def _refusal(value: object, kind: Any) -> str:
    said = extra(kind, "refusal")
    if said:
        return str(said)
    found = "something else" if extra(kind, "private") else found_words(value)
    return f"expected {words(kind)}, found {found}"
