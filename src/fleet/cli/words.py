"""Times, amounts and the texts of others, in words for people."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence

STEERING = (*range(9), *range(11, 32), *range(127, 160), 0x2028, 0x2029)  # characters, all but tab and newline
REORDERING = (*range(0x202A, 0x202F), *range(0x2066, 0x206A))  # they show what follows in another order than it has
UNSEEN = (0xAD, 0x180E, 0x200B, *range(0x2060, 0x2066), *range(0x206A, 0x2070), 0xFEFF, *range(0xFFF9, 0xFFFC))
MISLEADING = (*STEERING, *REORDERING, *UNSEEN)
INSTEAD = "\N{REPLACEMENT CHARACTER}"
UNPRINTABLE = dict.fromkeys(MISLEADING, INSTEAD)  # an agent must not draw on our terminal, nor fool who reads it
# Of those that some scripts and emoji need, what stands where it can only hide: tags outside of a flag, joiners behind
# nothing that joins, and, where nothing is written from right to left, marks of direction.
TAGS = "(\U0001f3f4[\U000e0030-\U000e007a]{3,6}\U000e007f)|[\U000e0000-\U000e007f]"
JOINERS = "(?<![^\\x00-\\x7f\\u200c\\u200d])[\\u200c\\u200d]"
MARKS = "[\\u061c\\u200e\\u200f]"
LEFTWARD = "[\\u0590-\\u061b\\u061d-\\u08ff\\ufb1d-\\ufdff\\ufe70-\\ufefc\U00010800-\U00010fff\U0001e800-\U0001efff]"


def printable(text: str) -> str:
    """A text without what would steer a terminal or fool who reads it; lines may end as they do on Windows."""
    text = text.replace("\r\n", "\n").translate(UNPRINTABLE)
    return text if text.isascii() else _seen(text)


def escaped(json: str) -> str:
    """JSON that says the same, with those characters written as escapes: JSON leaves most of them as they are."""
    return json.translate({code: f"\\u{code:04x}" for code in MISLEADING if code > 126})


def _seen(text: str) -> str:
    """What is not ASCII, without what hides in it."""
    import re

    text = re.sub(JOINERS, INSTEAD, re.sub(TAGS, lambda found: found[1] or INSTEAD, text))
    return text if re.search(LEFTWARD, text) else re.sub(MARKS, INSTEAD, text)


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
    from unicodedata import category, east_asian_width

    return sum(0 if category(c) in ("Mn", "Me", "Cf") else 2 if east_asian_width(c) in "WF" else 1 for c in text)


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
    from fleet.config.clock import utc_ms

    return f"{span(utc_ms() - at)} ago"


def lasting(since: int) -> str:
    """How long it has been so."""
    from fleet.config.clock import utc_ms

    return f"for {span(utc_ms() - since)}"


def shown(limit: int) -> str:
    """A list that was cut off says so."""
    return f"({limit} shown; --limit N shows more)"


def count(n: int, one: str) -> str:
    """`1 task`, `2 tasks`."""
    return f"{n} {one}" if n == 1 else f"{n} {one}s"
