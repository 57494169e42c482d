"""Lines of a growing file: each exactly once, at its exact offset, wherever the reads and the writes are cut."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fleet.hosts.lines import LONGEST_LINE, MOST_LINES, TAIL, Line, read_lines, tail_start
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
        file = GrowingFile(b"x" * (LONGEST_LINE + 10) + b"\nend\n")
        file.there = len(file.data)
        first = await read_lines(file, "f", 0)
        assert [(len(line.data), line.whole, first.more) for line in first.lines] == [(LONGEST_LINE, False, True)]
        second = await read_lines(file, "f", first.cursor)
        return b"".join(line.data for line in (*first.lines, *second.lines)), second.cursor

    data, cursor = asyncio.run(scene())
    assert data == b"x" * (LONGEST_LINE + 10) + b"end"
    assert cursor == LONGEST_LINE + 15


def test_a_long_line_is_one_line() -> None:
    """The result of a coder may be some megabytes long: it comes whole, though it is read in pieces."""
    file = GrowingFile(b"x" * 5_000_000 + b"\nend\n")
    file.there = len(file.data)
    got = asyncio.run(read_lines(file, "f", 0))
    assert (len(got.lines[0].data), got.lines[0].whole) == (5_000_000, True)


def test_many_short_lines_come_in_parts() -> None:
    """No more lines are handed out at once than memory bears, each once; that there are more is said."""

    async def scene() -> tuple[list[int], int]:
        file, cursor = GrowingFile(b"y\n" * (2 * MOST_LINES + 5)), 0
        file.there = len(file.data)
        counts = []
        while (got := await read_lines(file, "f", cursor)).cursor != cursor:
            assert got.cursor == cursor + 2 * len(got.lines)
            counts.append(len(got.lines))
            assert got.more == (len(counts) < 3)
            cursor = got.cursor
        return counts, cursor

    assert asyncio.run(scene()) == ([MOST_LINES, MOST_LINES, 5], 2 * (2 * MOST_LINES + 5))


@pytest.mark.parametrize(
    ("before", "last", "floor", "expected"),
    [
        (10, b"end\n", 0, 0),  # all of it is the end
        (TAIL, b"end\n", TAIL - 10, TAIL - 10),
        (TAIL // 10 * 20, b"end", 0, None),
        (TAIL // 10 * 20, b"x" * (TAIL + 5) + b"\n", 0, TAIL // 10 * 20),  # the last line alone
        (TAIL // 10 * 20, b"x" * (TAIL + 2 * LONGEST_LINE), 0, -1),  # none that could be read as one
    ],
)
def test_where_the_last_lines_begin(before: int, last: bytes, floor: int, expected: int | None) -> None:
    """At the beginning of a line, never further back than needed, and never before the floor."""
    data = (b"123456789\n" * (before // 10 + 1))[:before] + last
    file = GrowingFile(data)
    file.there = len(data)
    found = asyncio.run(tail_start(file, "f", floor, len(data)))
    if expected is None:
        assert data[found - 1 : found] == b"\n"
        assert TAIL - 10 <= len(data) - found <= TAIL
    else:
        assert found == (len(data) if expected < 0 else expected)
