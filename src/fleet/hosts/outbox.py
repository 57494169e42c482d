"""The outbox: what an agent asks of its own task, one numbered file for each request, answered beside it."""

from __future__ import annotations

import msgspec

LONGEST = 1 << 20


class Request(msgspec.Struct, frozen=True, kw_only=True):
    """What an agent asked for. It is the agent's word: nothing in it is checked but its form."""

    number: int
    verb: str  # ask, close, comment, show, update; "" when it cannot be understood
    fields: dict[str, str] = {}  # kind, id, status, ...
    text: str = ""


def parse_request(number: int, data: bytes) -> Request:
    """Lines of `name: value`, an empty line, and the text as it is."""
    head, _, text = data.decode("utf-8", "replace").partition("\n\n")
    fields = {}
    for line in head.split("\n"):
        name, colon, value = line.partition(": ")
        if colon:
            fields[name] = value
    return Request(number=number, verb=fields.pop("verb", ""), fields=fields, text=text.removesuffix("\n"))


def render_answer(code: int, text: str) -> bytes:
    """The exit code of the agent's command, and what it prints."""
    return f"{code}\n{text}".encode() + (b"" if text.endswith("\n") or not text else b"\n")
