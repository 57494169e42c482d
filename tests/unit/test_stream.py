"""Server-sent events, as they are read: however they come in pieces, each is taken once and whole."""

from __future__ import annotations

from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from fleet.front.stream import frames

SENT = (
    b"retry: 1000\n\n"
    b'id: 7\nevent: task.commented\ndata: {"text":"a: b\xe2\x80\xa8c"}\n\n'
    b": still here\n\nid: 9\n\n"
    b'event: stream.dropped\ndata: {"detail":"too slow"}\n\n'
    b'id: 10\nevent: run.created\ndata: {"cut'
)
READ = [
    (b"", "", b""),
    (b"task.commented", "7", b'{"text":"a: b\xe2\x80\xa8c"}'),
    (b"", "", b""),
    (b"", "9", b""),
    (b"stream.dropped", "", b'{"detail":"too slow"}'),
]


@given(st.lists(st.integers(0, len(SENT)), max_size=6))
def test_pieces_do_not_matter(cuts: list[int]) -> None:
    """Wherever what was sent is cut, the same events are read; one that is not whole is not taken for one."""
    places = [0, *sorted(cuts), len(SENT)]
    pieces = [SENT[a:b] for a, b in pairwise(places)]
    assert list(frames(iter(pieces))) == READ
