"""Put a value into a TOML text, or take one out, and leave every other character as it is."""

from __future__ import annotations

import re
from typing import Any

from fleet.config.fields import KeyPath
from fleet.config.layout import Layout, Table, Value
from fleet.config.render import key as as_key
from fleet.config.render import literal


def put(text: str, path: KeyPath, value: Any) -> str:
    """The text with the value at that path: in the place of the old one, else where a person would write it.

    That is after its commented default, else at the end of its section, else in a new section at the end.
    """
    layout = Layout(text)
    old = layout.values.get(path)
    if old:
        return text[: old.start] + literal(value) + text[old.end :]
    section, key = path[:-1], str(path[-1])
    table = next((each for each in layout.tables if each.path == section), None)
    if table:
        return _insert(text, _place(layout, table, key), f"{key} = {literal(value)}")
    inline = layout.values.get(section)
    if inline and text[inline.start] == "{":
        return _into_braces(text, inline.end - 1, f"{key} = {literal(value)}")
    dotted = [each.end for name, each in layout.values.items() if name[: len(section)] == section]
    name = ".".join(as_key(str(part)) for part in section)
    if dotted:
        return _insert(text, _line_end(text, max(dotted)), f"{name}.{key} = {literal(value)}")
    return append(text, f"[{name}]\n{key} = {literal(value)}\n")


def append(text: str, block: str) -> str:
    """The text with a table at its end, after an empty line."""
    newline = _newline(text)
    gap = "" if not text else newline if text.endswith("\n") else newline * 2
    return text + gap + block.replace("\n", newline)


def drop(text: str, path: KeyPath) -> str:
    """The text without a value and its key. A comment behind it stays, on a line of its own."""
    layout = Layout(text)
    value = layout.values[path]
    around = layout.values.get(path[:-1])
    if around and text[around.start] == "{" and around.start < value.start:
        return _out_of_braces(text, value)
    start, end = text.rfind("\n", 0, value.start) + 1, _line_end(text, value.end)
    comment = text[value.end : end].lstrip()
    return text[:start] + (comment if comment.startswith("#") else "") + text[end:]


def remove(text: str, path: KeyPath) -> str:
    """The text without a table that has a header of its own. Comments that follow its last line stay."""
    layout = Layout(text)
    table = next((each for each in layout.tables if each.path == path), None)
    if table is None:
        return text
    start = text.rfind("\n", 0, max(0, table.start - 1)) + 1  # of the line of its header
    ends = [value.end for value in layout.values.values() if table.start <= value.start < table.end]
    end = _line_end(text, max(ends)) if ends else table.start
    return text[:start].rstrip("\r\n") + _newline(text) * bool(text[:start].strip()) + text[end:]


def _place(layout: Layout, table: Table, key: str) -> int:
    """Where in a table a new line for `key` belongs."""
    body = layout.text[table.start : table.end]
    for match in re.finditer(rf"^[ \t]*#[ \t]*{re.escape(key)}[ \t]*=.*$", body, re.MULTILINE):
        at = table.start + match.start()
        if not any(value.start < at < value.end for value in layout.values.values()):
            return _line_end(layout.text, at)
    ends = [value.end for value in layout.values.values() if table.start <= value.start < table.end]
    return _line_end(layout.text, max(ends)) if ends else table.start


def _insert(text: str, at: int, line: str) -> str:
    newline = _newline(text)
    before = text[:at]
    gap = newline if before and not before.endswith("\n") else ""
    return f"{before}{gap}{line}{newline}{text[at:]}"


def _into_braces(text: str, brace: int, pair: str) -> str:
    before = text[:brace].rstrip(" \t")
    comma = " " if before.endswith("{") else ", "
    return f"{before}{comma}{pair} {text[brace:]}"


def _out_of_braces(text: str, value: Value) -> str:
    """Take a pair out, with the comma that stood before it, or else behind it."""
    start = max(text.rfind(",", 0, value.start), text.rfind("{", 0, value.start))
    if text[start] == ",":
        return text[:start] + text[value.end :]
    rest = text[value.end :].lstrip(" \t")
    return text[: start + 1] + (" " + rest.removeprefix(",").lstrip(" \t"))


def _line_end(text: str, at: int) -> int:
    end = text.find("\n", at)
    return len(text) if end < 0 else end + 1


def _newline(text: str) -> str:
    return "\r\n" if "\r\n" in text else "\n"
