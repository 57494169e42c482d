"""Lines of a growing file: each exactly once, at its exact offset, wherever the reads and the writes are cut."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence

from hypothesis import given
from hypothesis import strategies as st

from fleet.hosts import lines
from fleet.hosts.lines import Line, read_lines
from fleet.hosts.transport import Completed

BYTES = st.lists(st.sampled_from([b"\n", b"a", b"\r", b"\x85", b"\0", b"\xff", b"bcd"]), max_size=60).map(b"".join)


class GrowingFile:
    """A transport with one file, of which some is there."""

    def __init__(self, data: bytes) -> None:
        self.data = data
        self.there = 0

    async def run(self, argv: Sequence[str], *, stdin: bytes = b"") -> Completed:
        raise NotImplementedError

    async def put(self, path: str, data: bytes) -> None:
        raise NotImplementedError

    async def get(self, path: str, *, offset: int = 0, limit: int = 1 << 20) -> bytes:
        return self.data[: self.there][offset : offset + limit]

    def stream(self, argv: Sequence[str]) -> AsyncIterator[bytes]:
        raise NotImplementedError


def expected(data: bytes) -> list[Line]:
    """What must be read, computed another way."""
    found, offset = [], 0
    for part in data.split(b"\n"):
        whole = offset + len(part) < len(data)
        if whole or part:
            found.append(Line(offset, part, whole))
        offset += len(part) + 1
    return found


@given(data=BYTES, chunk=st.integers(1, 9), grows=st.lists(st.integers(1, 20), max_size=20), forgets=st.booleans())
def test_every_line_exactly_once(data: bytes, chunk: int, grows: list[int], forgets: bool) -> None:
    """However the file grows and wherever a reader is cut off and replaced, the lines are those of the file."""

    async def scene() -> list[Line]:
        file, cursor = GrowingFile(data), 0
        found: list[Line] = []
        for step in [*grows, len(data)]:
            file.there = min(len(data), file.there + step)
            if forgets:
                await read_lines(file, "f", cursor, chunk=chunk)  # a reader that died before its commit
            got = await read_lines(file, "f", cursor, chunk=chunk)
            found += got.lines
            cursor = got.cursor
        while (got := await read_lines(file, "f", cursor, chunk=chunk, ended=True)).cursor != cursor:
            found += got.lines
            cursor = got.cursor
        assert cursor == len(data)
        return found

    assert asyncio.run(scene()) == expected(data)


def test_an_endless_line_comes_in_pieces() -> None:
    """A line that is longer than memory should bear is handed out in pieces, and no byte of it is lost."""

    async def scene() -> tuple[bytes, int]:
        file = GrowingFile(b"x" * (lines.LONGEST_LINE + 10) + b"\nend\n")
        file.there = len(file.data)
        first = await read_lines(file, "f", 0, chunk=lines.LONGEST_LINE)
        assert [line.whole for line in first.lines] == [False]
        second = await read_lines(file, "f", first.cursor)
        return b"".join(line.data for line in (*first.lines, *second.lines)), second.cursor

    data, cursor = asyncio.run(scene())
    assert data == b"x" * (lines.LONGEST_LINE + 10) + b"end"
    assert cursor == lines.LONGEST_LINE + 15
