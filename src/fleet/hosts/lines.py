"""Lines of a file that grows: each with its absolute offset, each exactly once."""

from __future__ import annotations

import msgspec

from fleet.hosts.transport import Transport

CHUNK = 1 << 20
LONGEST_LINE = 1 << 24  # a longer one is handed out in pieces of this length: memory has an end
MOST_LINES = 10_000  # handed out at once: short ones take a hundred times their length while they are dealt with
TAIL = 1 << 18  # what the last lines are looked for in


class Line(msgspec.Struct, frozen=True):
    """A line without its end, and where it begins."""

    offset: int
    data: bytes
    whole: bool = True  # False: the file ended, or it was too long


class Read(msgspec.Struct, frozen=True):
    """Some lines, and where to read on: at the beginning of a line, or within one that is too long."""

    lines: tuple[Line, ...]
    cursor: int
    more: bool = False  # there is more to read at once


async def read_lines(transport: Transport, path: str, cursor: int, *, ended: bool = False, chunk: int = CHUNK) -> Read:
    """The next lines, about a chunk of them. The last is held back until its line break is there, or nothing more
    can come (`ended`). Nothing and an unmoved cursor: there is no more now.
    """
    data = b""
    while b"\n" not in data and len(data) < LONGEST_LINE:
        limit = min(max(chunk, len(data)), LONGEST_LINE - len(data))
        more = await transport.get(path, offset=cursor + len(data), limit=limit)
        if not more:
            return split_lines(cursor, data, rest=ended)
        data += more
    return split_lines(cursor, data, rest=b"\n" not in data, more=len(data) >= chunk)


def split_lines(cursor: int, data: bytes, *, rest: bool, more: bool = False) -> Read:
    """Whole lines of the data, but not too many; with `rest`, what follows the last of them too."""
    *whole, last = data.split(b"\n", MOST_LINES)
    if len(whole) == MOST_LINES:
        rest, more = False, True
    lines = []
    for one in whole:
        lines.append(Line(cursor, one))
        cursor += len(one) + 1
    if rest and last:
        lines.append(Line(cursor, last, whole=False))
        cursor += len(last)
    return Read(tuple(lines), cursor, more)


async def tail_start(transport: Transport, path: str, floor: int, end: int) -> int:
    """Where the last lines of a file begin: those of the last TAIL bytes, or one line that is longer.

    The floor, where no more than that follows it; the end, where the last line is too long to be one.
    """
    at = end - TAIL
    if at <= floor:
        return floor
    while at < end and (data := await transport.get(path, offset=at, limit=min(CHUNK, end - at))):
        found = data.find(b"\n", 0, end - at - 1)
        if found >= 0:
            return at + found + 1
        at += len(data)
    at = max(floor, end - TAIL - LONGEST_LINE)
    begins = floor if at == floor else end
    while at < end and (data := await transport.get(path, offset=at, limit=min(CHUNK, end - at))):
        found = data.rfind(b"\n", 0, end - at - 1)
        begins = at + found + 1 if found >= 0 else begins
        at += len(data)
    return begins
