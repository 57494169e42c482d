"""Requests of agents: read as far as they have a form; nothing in them can break the reader."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from fleet.hosts.outbox import Request, parse_request, render_answer


def test_a_request() -> None:
    """Fields, an empty line, and the text as it is, with its own empty lines."""
    got = parse_request(4, b"verb: ask\nkind: choice\n\nWhich?\n\nThis: or that?\n")
    assert got == Request(number=4, verb="ask", fields={"kind": "choice"}, text="Which?\n\nThis: or that?")


@given(st.binary())
def test_any_bytes_are_a_request(data: bytes) -> None:
    """An agent may write what it likes: it is a request, at worst one without a verb."""
    assert parse_request(1, data).number == 1


def test_an_answer() -> None:
    """The code on the first line, then the text, which ends with a line break."""
    assert render_answer(0, "") == b"0\n"
    assert render_answer(3, "no\nway") == b"3\nno\nway\n"
