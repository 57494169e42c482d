"""Times, amounts and the texts of others, in words for people."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence

STEERING = (*range(9), *range(11, 32), *range(127, 160), 0x2028, 0x2029)  # characters, all but tab and newline
UNPRINTABLE = dict.fromkeys(STEERING, "\N{REPLACEMENT CHARACTER}")  # an agent must not draw on our terminal


def printable(text: str) -> str:
    """A text without what would steer a terminal; lines may end as they do on Windows."""
    return text.replace("\r\n", "\n").translate(UNPRINTABLE)


def now_ms() -> int:
    """The clock."""
    return time.time_ns() // 1_000_000


def when(at: int) -> str:
    """A moment, in the local time of whoever reads it."""
    return time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(at / 1000))


def span(milliseconds: int) -> str:
    """A duration: its two largest parts."""
    seconds = max(0, milliseconds) // 1000
    if seconds < 60:
        return f"{seconds}s"
    if seconds < 3600:
        return f"{seconds // 60}m{seconds % 60:02}s"
    if seconds < 86400:
        return f"{seconds // 3600}h{seconds % 3600 // 60:02}m"
    return f"{seconds // 86400}d{seconds % 86400 // 3600:02}h"


def cells(text: str) -> int:
    """How many columns of a terminal a text takes."""
    if text.isascii():
        return len(text)
    from unicodedata import combining, east_asian_width

    return sum(0 if combining(c) else 2 if east_asian_width(c) in "WF" else 1 for c in text)


def pad(text: str, width: int) -> str:
    """A text, filled up to a number of columns."""
    return text + " " * (width - cells(text))


def aligned(rows: Sequence[Sequence[str]], *, right: bool = False) -> list[str]:
    """Rows as lines, each column as wide as its widest cell. `right`: all but the first are numbers."""
    widths = [max(map(cells, column)) for column in zip(*rows, strict=True)]
    return ["  ".join(_filled(row, widths, right=right)).rstrip() for row in rows]


def _filled(row: Sequence[str], widths: list[int], *, right: bool) -> Iterator[str]:
    for place, (text, width) in enumerate(zip(row, widths, strict=True)):
        yield " " * (width - cells(text)) + text if right and place else pad(text, width)


def ago(at: int) -> str:
    """How long since a moment."""
    return f"{span(now_ms() - at)} ago"


def lasting(since: int) -> str:
    """How long it has been so."""
    return f"for {span(now_ms() - since)}"


def shown(limit: int) -> str:
    """A list that was cut off says so."""
    return f"({limit} shown; --limit N shows more)"


def count(n: int, one: str) -> str:
    """`1 task`, `2 tasks`."""
    return f"{n} {one}" if n == 1 else f"{n} {one}s"
