"""From a file to plain values: JSON, TOML or YAML, with bounds on its size, depth and number of values."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterable, Iterator
from math import isfinite
from typing import Any

import msgspec

from fleet.config.fields import KeyPath
from fleet.config.problems import Problem
from fleet.errors import NotFound, SpecError, UsageError

MOST_BYTES = 16 << 20
MOST_VALUES = 4_000_000
MOST_DEPTH = 64
FORMATS = {".json": "json", ".toml": "toml", ".yaml": "yaml", ".yml": "yaml"}
DEEP_KEY = rf"""(?<![\w-])[\w-]++(?:[ \t]*+\.[ \t]*+(?:[\w-]++|"[^"\n]*+"|'[^'\n]*+')){{{MOST_DEPTH}}}"""
SMALLEST, LARGEST = -(1 << 63), (1 << 64) - 1  # what JSON readers agree on


class Document(msgspec.Struct, frozen=True):
    """A file's content: where it came from, what to call it, and its values."""

    source: str
    stem: str
    value: Any


def read(word: str) -> Document:
    """The document in a file, or on stdin for `-`. What cannot be used at all is a SpecError."""
    data = _bytes(word)
    source = "stdin" if word == "-" else word
    stem = "run" if word == "-" else os.path.basename(word)
    suffix = os.path.splitext(stem)[1].lower()
    return parse(data, FORMATS.get(suffix) or _guess(data, source), source=source, stem=stem)


def parse(data: bytes, kind: str, *, source: str, stem: str = "run") -> Document:
    """The document in some bytes of a known format."""
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as exc:
        raise SpecError(source, [f"it is not text: {exc.reason} at byte {exc.start}"]) from exc
    try:
        value = PARSERS[kind](text)
    except RecursionError as exc:
        raise SpecError(source, [f"it is nested too deeply; at most {MOST_DEPTH} levels are taken"]) from exc
    except ValueError as exc:
        said = str(exc).replace(' in "<unicode string>",', " at")  # what a YAML parser calls a text that it is given
        raise SpecError(source, [f"it is not {kind.upper()}: {said}"]) from exc
    wrong = [f"{problem.key}: {problem.text}" if problem.path else problem.text for problem in _unusable(value)]
    if wrong:
        raise SpecError(source, wrong)
    return Document(source, os.path.splitext(stem)[0] or stem, value)


def _bytes(word: str) -> bytes:
    try:
        with open(sys.stdin.fileno() if word == "-" else word, "rb", closefd=word != "-") as file:
            data = file.read(MOST_BYTES + 1)
    except FileNotFoundError as exc:
        raise NotFound(f"there is no file `{word}`", hint="fleet run SPEC takes a .json, .toml or .yaml file") from exc
    except OSError as exc:
        raise UsageError(f"{word} cannot be read: {exc.strerror}") from exc
    if len(data) > MOST_BYTES:
        raise SpecError(word, [f"it has more than {MOST_BYTES >> 20} MiB"])
    return data


def _guess(data: bytes, source: str) -> str:
    """The format of a file whose name does not tell."""
    if data.lstrip(b"\xef\xbb\xbf \t\r\n")[:1] in (b"{", b"["):
        return "json"
    raise SpecError(source, ["its format cannot be told; name it .json, .toml or .yaml"])


def _json(text: str) -> Any:
    import json

    def constant(word: str) -> None:
        raise ValueError(f"{word} is no number of JSON")

    return json.loads(text, object_pairs_hook=_once, parse_constant=constant)


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """An object whose keys differ: of two alike, one would be lost in silence."""
    made = dict(pairs)
    if len(made) < len(pairs):
        names = [name for name, _ in pairs]
        raise ValueError(f"the key {next(name for name in names if names.count(name) > 1)!r} is given twice")
    return made


def _toml(text: str) -> Any:
    import re
    import tomllib

    if re.search(DEEP_KEY, text):  # the parser's memory grows with the square of it
        raise RecursionError
    return tomllib.loads(text)


def _yaml(text: str) -> Any:
    import yaml

    base: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)

    class Loader(base):  # type: ignore[misc]
        """Safe YAML whose keys differ, and in which a date is text as it is in JSON."""

        def construct_mapping(self, node: Any, deep: bool = False) -> Any:
            names = [key.value for key, _ in node.value if key.tag.endswith(":str")]  # before others are merged in
            if len(set(names)) < len(names):
                twice = next(name for name in names if names.count(name) > 1)
                raise ValueError(f"the key {twice!r} is given twice, at line {node.start_mark.line + 1}")
            return base.construct_mapping(self, node, deep)

    Loader.yaml_implicit_resolvers = {
        first: [(tag, pattern) for tag, pattern in known if not tag.endswith(":timestamp")]
        for first, known in base.yaml_implicit_resolvers.items()
    }
    try:
        _refuse_depth(yaml.parse(text, base), yaml.CollectionStartEvent, yaml.CollectionEndEvent)
        return yaml.load(text, Loader)
    except yaml.YAMLError as exc:
        raise ValueError(" ".join(str(exc).split())) from exc


def _refuse_depth(events: Iterable[Any], begins: type, ends: type) -> None:
    """What comes next, in C, recurs once for each level, and has no bound: it would overflow the stack."""
    depth = 0
    for event in events:
        depth += isinstance(event, begins) - isinstance(event, ends)
        if depth > MOST_DEPTH:
            raise RecursionError


PARSERS: dict[str, Callable[[str], Any]] = {"json": _json, "toml": _toml, "yaml": _yaml}


def _unusable(value: Any) -> Iterator[Problem]:
    """Values that no JSON can hold, and too much of them. YAML's references are counted as often as they are used."""
    left = MOST_VALUES
    todo: list[tuple[KeyPath, Any]] = [((), value)]
    while todo:
        path, found = todo.pop()
        left -= 1
        if left < 0:
            yield Problem((), f"it holds more than {MOST_VALUES:,} values")
            return
        if isinstance(found, (dict, list)) and len(path) >= MOST_DEPTH:
            yield Problem((), f"it is nested too deeply; at most {MOST_DEPTH} levels are taken")
            return
        if isinstance(found, dict):
            odd = [key for key in found if not isinstance(key, str)]
            if odd:
                yield Problem((*path, str(odd[0])), "a name must be text; put it in quotes")
                continue
            for key in found:
                if not _is_plain(key):
                    yield Problem(path, "a name holds characters that cannot be kept")
            todo += [((*path, key), each) for key, each in found.items()]
        elif isinstance(found, list):
            todo += [((*path, place), each) for place, each in enumerate(found)]
        elif isinstance(found, str):
            if not _is_plain(found):
                yield Problem(path, "holds a NUL or half a character, which cannot be kept")
        elif isinstance(found, float):
            if not isfinite(found):
                yield Problem(path, f"{found} is no number that JSON can hold")
        elif isinstance(found, int):
            if not SMALLEST <= found <= LARGEST:
                yield Problem(path, "the number is too large")
        elif found is not None:
            yield Problem(
                path, f"expected text, a number, a list or an object, found a {type(found).__name__}; put it in quotes"
            )


def _is_plain(text: str) -> bool:
    if "\0" in text:
        return False
    return text.isascii() or not any("\ud800" <= char <= "\udfff" for char in text)
