"""Where everything stands in a TOML text: the line of each key, and the characters of each value.

The standard parser tells what a text says but not where. This scan reads a text that the parser has accepted, so it
need not judge it.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from typing import NamedTuple

from fleet.config.fields import KeyPath

_KEY = re.compile(r"""[A-Za-z0-9_-]+|"(?:[^"\\]|\\.)*"|'[^']*'""")
_GAP = re.compile(r"(?:[ \t\r\n]|#[^\n]*)*")
_BLANK = re.compile(r"[ \t]*")
_STRING = re.compile(
    r'"""(?:[^\\]|\\.)*?"""(?:"{0,2})' r"|'''.*?'''(?:'{0,2})" r'|"(?:[^"\\]|\\.)*"' r"|'[^']*'",
    re.DOTALL,
)
_SCALAR = re.compile(r"[^,\]}#\r\n]+")


class Value(NamedTuple):
    """The characters of one value."""

    start: int
    end: int


class Table(NamedTuple):
    """A table with a header of its own (or the root): the characters from after its header up to the next one."""

    path: KeyPath
    start: int
    end: int


class Layout:
    """The places of one text."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.values: dict[KeyPath, Value] = {}
        self.tables: list[Table] = []
        self._places: dict[KeyPath, int] = {}
        self._starts = [0, *(match.end() for match in re.finditer("\n", text))]
        _Scan(self).run()

    def line(self, path: KeyPath) -> int:
        """The line, from 1, where a key stands, or the nearest thing around it that does."""
        while path and path not in self._places:
            path = path[:-1]
        return bisect_right(self._starts, self._places.get(path, 0))

    def seen(self, path: KeyPath, place: int) -> None:
        """Note where a key stands, and the tables that it brings into being."""
        for length in range(1, len(path) + 1):
            self._places.setdefault(path[:length], place)


class _Scan:
    def __init__(self, layout: Layout) -> None:
        self.layout = layout
        self.text = layout.text
        self.at = 0
        self.counts: dict[KeyPath, int] = {}  # of the arrays of tables, how many there are so far

    def run(self) -> None:
        base: KeyPath = ()
        start = 0
        while self._skip(_GAP) < len(self.text):
            if self.text[self.at] != "[":
                self._pair(base)
                continue
            self.layout.tables.append(Table(base, start, self._line_start()))
            base = self._header()
            start = self._line_end()
        self.layout.tables.append(Table(base, start, len(self.text)))

    def _header(self) -> KeyPath:
        place = self.at
        many = self.text.startswith("[[", self.at)
        self.at += 2 if many else 1
        path = self._inside(self._keys(), last=not many)
        if many:
            count = self.counts[path] = self.counts.get(path, 0) + 1
            path = (*path, count - 1)
        self.at += 2 if many else 1
        self.layout.seen(path, place)
        return path

    def _inside(self, keys: KeyPath, *, last: bool) -> KeyPath:
        """The path that a header means: within an array of tables, its latest element."""
        path: KeyPath = ()
        for place, key in enumerate(keys):
            path = (*path, key)
            if path in self.counts and (last or place + 1 < len(keys)):
                path = (*path, self.counts[path] - 1)
        return path

    def _keys(self) -> KeyPath:
        keys: list[str] = []
        while True:
            self._skip(_BLANK)
            match = _KEY.match(self.text, self.at)
            if match is None:
                return tuple(keys)
            keys.append(_plain(match[0]))
            self.at = match.end()
            if self.text[self._skip(_BLANK)] != ".":
                return tuple(keys)
            self.at += 1

    def _pair(self, base: KeyPath) -> None:
        place = self.at
        path = (*base, *self._keys())
        self.layout.seen(path, place)
        self.at += 1  # the equals sign
        self._skip(_BLANK)
        self._value(path)

    def _value(self, path: KeyPath) -> None:
        start = self.at
        first = self.text[start]
        if first == "[":
            self._array(path)
        elif first == "{":
            self._inline(path)
        else:
            match = (_STRING if first in "\"'" else _SCALAR).match(self.text, start)
            self.at = match.end() if match else start + 1
            self.at = start + len(self.text[start : self.at].rstrip())
        self.layout.values[path] = Value(start, self.at)

    def _array(self, path: KeyPath) -> None:
        self.at += 1
        count = 0
        while self.text[self._skip(_GAP)] != "]":
            if self.text[self.at] == ",":
                self.at += 1
                continue
            item = (*path, count)
            self.layout.seen(item, self.at)
            self._value(item)
            count += 1
        self.at += 1

    def _inline(self, path: KeyPath) -> None:
        self.at += 1
        while self.text[self._skip(_GAP)] != "}":
            if self.text[self.at] == ",":
                self.at += 1
                continue
            self._pair(path)
        self.at += 1

    def _skip(self, pattern: re.Pattern[str]) -> int:
        match = pattern.match(self.text, self.at)
        self.at = match.end() if match else self.at
        return self.at

    def _line_start(self) -> int:
        return self.text.rfind("\n", 0, self.at) + 1

    def _line_end(self) -> int:
        end = self.text.find("\n", self.at)
        return len(self.text) if end < 0 else end + 1


def _plain(key: str) -> str:
    """A key as the parser reports it, without its quotes."""
    if key.startswith('"'):
        import tomllib

        return str(tomllib.loads(f"key = {key}")["key"])
    return key.strip("'")
