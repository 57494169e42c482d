"""The last words of the agents at work: the newest thing that each has said or begun, from the end of its log."""

from __future__ import annotations

import os
from pathlib import Path

import msgspec
from msgspec.structs import replace

from fleet.config.home import Home
from fleet.model import stream as st
from fleet.store.reads import Reads

MOST = 200  # agents
MOST_BYTES = 1 << 16  # that are read of the end of a log
MOST_CHARACTERS = 300
Telling = st.Text | st.Thinking | st.ToolStarted | st.Retrying | st.Denied | st.Notice


class LastWords(msgspec.Struct, frozen=True, kw_only=True):
    """What the agent of a task has said last, and what it has begun since, such as a tool; long words are cut."""

    task: str
    session: str
    at: int  # of the newest
    said: list[Telling]  # one or two


class _Record(msgspec.Struct):
    session: str
    at: int
    said: Telling


_decode = msgspec.json.Decoder(_Record).decode


def last_words(reads: Reads, home: Home) -> list[LastWords]:
    """Of each agent that is at work and has said something, the longest at work first; of so many at most."""
    found = ((one, _newest(home.task_dir(one.task) / "log.jsonl", one.id)) for one in reads.sessions(live=True)[:MOST])
    return [
        LastWords(task=one.task, session=one.id, at=records[-1].at, said=[_short(each.said) for each in records])
        for one, records in found
        if records
    ]


def _newest(log: Path, session: str) -> list[_Record]:
    """Of what tells something, near the end of the log: the newest of a session, and the words before it."""
    try:
        with log.open("rb") as opened:
            opened.seek(max(0, opened.seek(0, os.SEEK_END) - MOST_BYTES))
            lines = opened.read(MOST_BYTES).split(b"\n")
    except OSError:  # nothing was said yet, or it is kept on another machine
        return []
    found: list[_Record] = []
    for line in reversed(lines):
        try:
            record = _decode(line)
        except (msgspec.DecodeError, UnicodeDecodeError):  # cut off by the block, written just now, or only counted
            continue
        if record.session == session and (not found or isinstance(record.said, st.Text)):
            found.append(record)
        if found and isinstance(found[-1].said, st.Text):
            break
    return found[::-1]


def _short(said: Telling) -> Telling:
    """The same, with an end to each of its texts."""
    texts = {name: text for name, text in msgspec.structs.asdict(said).items() if isinstance(text, str)}
    return replace(said, **{name: text[:MOST_CHARACTERS] for name, text in texts.items()})
