"""Reading what a vendor wrote: any field may be missing, of another type, or broken. Nothing here raises."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any, TypeVar

import msgspec

S = TypeVar("S", bound=msgspec.Struct)

MOST = 10**12  # of tokens, or of millionths of a dollar; what is beyond it is nonsense
NOTHING: dict[str, Any] = {}
BROKEN = (ValueError, RecursionError)  # msgspec's errors, those of json and of UTF-8 are ValueErrors


class Line(msgspec.Struct, frozen=True):
    """A line of JSON. Subclasses name the fields they look at, all of type Any: the rest is skipped unread."""

    type: str = ""


def reader(shape: type[S]) -> Callable[[bytes], S | None]:
    """A function that reads a line as that shape; None when it is no JSON object."""
    decode = msgspec.json.Decoder(shape).decode

    def read(line: bytes) -> S | None:
        try:
            return decode(line)
        except BROKEN:
            mended = _mended(line)
        try:
            return decode(mended) if mended else None
        except BROKEN:
            return None

    return read


def _mended(line: bytes) -> bytes:
    """The line with halves of characters replaced: JavaScript cuts strings in the middle of one, and prints that."""
    if not line.lstrip().startswith(b"{"):
        return b""
    try:
        return json.dumps(json.loads(line.decode("utf-8", "replace")), ensure_ascii=False).encode("utf-8", "replace")
    except BROKEN:
        return b""


def words(value: Any) -> str:
    """A text, or none."""
    return value if isinstance(value, str) else ""


def count(value: Any) -> int:
    """A number of things: never negative, never absurd."""
    if isinstance(value, (int, float)) and not isinstance(value, bool):
        return int(min(max(value, 0), MOST))
    return 0


def micro(dollars: Any) -> int:
    """Dollars in millionths."""
    if isinstance(dollars, (int, float)) and not isinstance(dollars, bool):
        return round(min(max(dollars * 1e6, 0), MOST))
    return 0


def number(value: Any) -> int | None:
    """A number, where there is one."""
    return count(value) if isinstance(value, (int, float)) and not isinstance(value, bool) else None


def table(value: Any) -> dict[str, Any]:
    """An object, or an empty one."""
    return value if isinstance(value, dict) else NOTHING


def tables(value: Any) -> list[dict[str, Any]]:
    """The objects in a list."""
    return [each for each in value if isinstance(each, dict)] if isinstance(value, list) else []
