"""Texts of events are bounded: the raw line is kept beside them."""

from __future__ import annotations

import re
from typing import Any

import msgspec

LONGEST = 4096
COLOUR = re.compile(r"\x1b\[[0-9;]*m")
_encode = msgspec.json.Encoder().encode


def short(text: str, longest: int = LONGEST) -> str:
    """The text, or its beginning and its end with a mark between: errors stand at the end."""
    if len(text) <= longest:
        return text
    tail = longest // 4
    head = longest - tail - 40
    return f"{text[:head]} … [{len(text) - head - tail} characters left out] … {text[-tail:]}"


def short_json(value: Any, longest: int = 1024) -> str:
    """A value as JSON, in short; empty for nothing."""
    if value is None or value in ({}, [], ""):
        return ""
    if isinstance(value, str):
        return short(value, longest)
    return short(_encode(value).decode(), longest)


def one_line(text: str, longest: int = 300) -> str:
    """The text as a part of a sentence."""
    return short(" ".join(text.split()), longest)


def last_line(text: str) -> str:
    """The last line that says something, without its colours."""
    for line in reversed(COLOUR.sub("", text[-LONGEST:]).splitlines()):
        if line.strip():
            return one_line(line)
    return ""
