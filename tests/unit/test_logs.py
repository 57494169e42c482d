"""Reading a log that may be long: its end, and what comes after, without more of it in memory than is shown."""

from __future__ import annotations

import io
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fleet.cli.logs import PIECE, Follower, following
from fleet.projections.logs import as_they_are, of_session, tail

RECORDS = st.lists(st.tuples(st.sampled_from(["t.1", "t.2"]), st.integers(0, 40)), max_size=30)


def record(session: str, length: int, offset: int = 0) -> bytes:
    """A line of log.jsonl."""
    said = '{"kind":"text","text":"%s"}' % ("x" * length)
    return f'{{"session":"{session}","offset":{offset},"at":1,"said":{said}}}\n'.encode()


class Watched(io.BytesIO):
    """A file that knows how much of it was read at once."""

    most = 0

    def read(self, size: int | None = -1, /) -> bytes:
        """As usual."""
        data = super().read(size)
        self.most = max(self.most, len(data))
        return data


@given(made=RECORDS, only=st.sampled_from([None, "t.1"]), most=st.integers(1, 40), block=st.integers(1, 300))
def test_the_last_lines(made: list[tuple[str, int]], only: str | None, most: int, block: int) -> None:
    """Wherever the blocks are cut, they are the last of those that are wanted; one in the making is not shown."""
    lines = [record(session, length) for session, length in made]
    whole = b"".join(lines)
    found, at = tail(io.BytesIO(whole + b'{"session":"t.1"'), most, as_they_are, of_session(only), block=block)
    wanted = [line.decode().rstrip() for line, (session, _) in zip(lines, made, strict=True) if only in (None, session)]
    assert (found, at) == (wanted[-most:], len(whole))


def test_what_is_not_wanted_is_not_kept() -> None:
    """The words of the first session are found behind megabytes of another's, a block at a time."""
    file = Watched(record("t.1", 3) + record("t.2", 900) * 5000)
    found, _ = tail(file, 50, as_they_are, of_session("t.1"))
    assert [len(found), file.most < 1_000_000] == [1, True]


def test_a_log_that_is_cut_off_meanwhile() -> None:
    """What was found by then is shown, and nobody looks for the rest for ever."""

    class Cut(io.BytesIO):
        def read(self, size: int | None = -1, /) -> bytes:
            data = super().read(size)
            self.truncate(0)
            return data

    assert tail(Cut(record("t.1", 3) * 10), 50, as_they_are, block=200)[0] == []
    content = record("t.1", 3) * 10
    assert tail(io.BytesIO(content), 50, as_they_are, block=200)[0] == as_they_are(content.splitlines())


def test_no_more_than_so_much_is_looked_at() -> None:
    """Where a bound is given, the beginning of a long log is not read."""
    file = Watched(record("t.1", 3) + record("t.2", 900) * 5000)
    assert tail(file, 50, as_they_are, of_session("t.1"), most_bytes=1000)[0] == []


@pytest.mark.parametrize("torn", [b"", b'{"session":"t.1","off'])
def test_following_reads_a_piece_at_a_time(torn: bytes) -> None:
    """However much came since, each record is shown once, and no more than a piece of it is read at once."""
    lines = [record("t.1", 2000, n) for n in range(2000)]
    opened: list[Watched] = []
    content = [lines[0]]

    def open_log() -> Any:
        opened.append(Watched(b"".join(content)))
        return opened[-1]

    shown, follower = following(open_log, 50, raw=True)
    content += [*lines[1:], torn]
    assert shown == as_they_are(lines[:1])
    assert list(follower.more()) == as_they_are(lines[1:])
    assert opened[-1].most == PIECE
    content[-1] = record("t.1", 5, 2001)
    assert list(follower.more()) == as_they_are(content[-1:])


def test_following_a_log_that_was_cut() -> None:
    """What a successor cut off and wrote again is passed over, and what is new behind it is shown."""
    content = [record("t.1", 5, n) for n in (0, 10, 20)]
    follower = Follower(lambda: io.BytesIO(b"".join(content)), None, raw=True)
    assert len(list(follower.more())) == 3
    del content[1:]
    assert list(follower.more()) == []
    content += [record("t.1", 5, n) for n in (10, 20, 30)]
    assert list(follower.more()) == as_they_are(content[-1:])
