"""What a session said, from the log of its task: its last message, and an excerpt for whoever must judge it."""

from __future__ import annotations

import os
from pathlib import Path

import msgspec

from fleet.model import stream as st

TAIL = 1 << 20
MOST_EXCERPT = 6000


class Record(msgspec.Struct):
    """Of a line of log.jsonl, what was said and by which session."""

    session: str = ""
    said: st.AnySaid | None = None


class Words(msgspec.Struct, frozen=True):
    """The end of what a session said."""

    final: str
    excerpt: str  # one line for each thing said


def last_words(directory: Path, session: str) -> Words:
    """The final message and the end of the log; empty where it said nothing."""
    final, lines = "", list[str]()
    for said in _said(directory / "log.jsonl", session):
        match said:
            case st.Text(text=text, subagent=False):
                final = text
                lines.append(text)
            case st.TurnEnded(final_text=str(text)):
                final = text
            case st.ToolStarted(name=name, input=given):
                lines.append(f"[{name}] {given}")
            case st.ToolEnded(ok=False, output=output):
                lines.append(f"[failed] {output}")
            case _:
                continue
    return Words(final, "\n".join(lines)[-MOST_EXCERPT:])


def _said(path: Path, session: str) -> list[st.AnySaid]:
    try:
        with path.open("rb") as file:
            start = max(0, file.seek(0, os.SEEK_END) - TAIL)
            file.seek(start)
            lines = file.read().splitlines()
    except FileNotFoundError:
        return []
    found = []
    for line in lines[1:] if start else lines:
        try:
            record = msgspec.json.decode(line, type=Record)
        except msgspec.DecodeError:  # of another program, or of another version
            continue
        if record.session == session and record.said is not None:
            found.append(record.said)
    return found
