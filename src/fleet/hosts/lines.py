"""Lines of a file that grows: each with its absolute offset, each exactly once."""

from __future__ import annotations

import msgspec

from fleet.hosts.transport import Transport

CHUNK = 1 << 20
LONGEST_LINE = 1 << 26  # a longer one is handed out in pieces: memory has an end


class Line(msgspec.Struct, frozen=True):
    """A line without its end, and where it begins."""

    offset: int
    data: bytes
    whole: bool = True  # False: the file ended, or it was too long


class Read(msgspec.Struct, frozen=True):
    """Some lines, and where to read on. A cursor stands at the beginning of a line."""

    lines: tuple[Line, ...]
    cursor: int


async def read_lines(transport: Transport, path: str, cursor: int, *, ended: bool = False, chunk: int = CHUNK) -> Read:
    """The next lines, about a chunk of them. The last is held back until its line break is there, or nothing more
    can come (`ended`). Nothing and an unmoved cursor: there is no more now.
    """
    data = b""
    while b"\n" not in data and len(data) < LONGEST_LINE:
        more = await transport.get(path, offset=cursor + len(data), limit=max(chunk, len(data)))
        if not more:
            return split_lines(cursor, data, rest=ended)
        data += more
    return split_lines(cursor, data, rest=b"\n" not in data)


def split_lines(cursor: int, data: bytes, *, rest: bool) -> Read:
    """Whole lines of the data; with `rest`, what follows the last of them too."""
    *whole, last = data.split(b"\n")
    lines = []
    for one in whole:
        lines.append(Line(cursor, one))
        cursor += len(one) + 1
    if rest and last:
        lines.append(Line(cursor, last, whole=False))
        cursor += len(last)
    return Read(tuple(lines), cursor)
