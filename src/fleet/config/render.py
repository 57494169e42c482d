"""Settings as TOML text: a value, a table, everything that is in force."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

import msgspec

from fleet.config.fields import sections
from fleet.config.settings import Settings


def literal(value: Any) -> str:
    """A value as TOML writes it, on one line."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int | float):
        return repr(value)
    if isinstance(value, str):
        return msgspec.json.encode(value).decode().replace("\x7f", "\\u007f")  # JSON lets it stand, TOML does not
    if isinstance(value, list | tuple):
        return f"[{', '.join(literal(item) for item in value)}]"
    raise TypeError(f"{type(value).__name__} has no place in fleet.toml")


def inline(value: Any) -> str:
    """Any value on one line, a table too."""
    if isinstance(value, dict):
        return "{ " + ", ".join(f"{name} = {literal(each)}" for name, each in value.items()) + " }"
    return literal(value)


def host_table(values: dict[str, Any]) -> str:
    """One more `[[hosts]]`."""
    return table("[[hosts]]", values)


def table(header: str, values: dict[str, Any]) -> str:
    """A header and what stands under it."""
    return "\n".join([header, *(f"{name} = {literal(value)}" for name, value in values.items())]) + "\n"


def key(name: str) -> str:
    """A name as TOML takes it: bare where it can be."""
    return name if name and all(c.isascii() and (c.isalnum() or c in "_-") for c in name) else literal(name)


def effective(settings: Settings, stated: Collection[str]) -> str:
    """Every setting in force; those whose dotted names are not among `stated` are marked as defaults."""
    blocks = []
    for section in sections():
        value = getattr(settings, section.name)
        if section.named:
            blocks += [table(f"[{section.name}.{key(name)}]", _given(each)) for name, each in value.items()]
            continue
        if section.many:
            blocks += [table(f"[[{section.name}]]", _given(each)) for each in value]
            continue
        lines = [f"[{section.name}]"]
        for field in section.fields:
            mark = "" if field.key in stated else "  # default"
            lines.append(f"{field.name} = {literal(getattr(value, field.name))}{mark}")
        blocks.append("\n".join(lines) + "\n")
    return "\n".join(blocks)


def _given(struct: msgspec.Struct) -> dict[str, Any]:
    """The fields of an entry, without those that are empty by default."""
    return {name: value for name, value in msgspec.structs.asdict(struct).items() if value not in ("", (), 0)}
