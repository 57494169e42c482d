"""The record of a session's stream in its task's directory: what was said, each with its place in the raw output."""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import msgspec

from fleet.model.stream import AnySaid

TAIL = 1 << 20


class Place(msgspec.Struct):
    """Of a line of log.jsonl, what is needed to find it again."""

    session: str = ""
    offset: int = -1


class StreamRecord:
    """`log.jsonl` of one task. Written before the cursor is committed; what a crash leaves beyond it is cut off."""

    def __init__(self, directory: Path, session: str) -> None:
        self._path = directory / "log.jsonl"
        self._session = session
        directory.mkdir(mode=0o700, parents=True, exist_ok=True)

    def rewind(self, cursor: int) -> None:
        """Cut off what was said at or after a place that will be read again."""
        if not self._path.exists():
            return
        with self._path.open("r+b") as file:
            size = file.seek(0, os.SEEK_END)
            start = max(0, size - TAIL)
            file.seek(start)
            tail = file.read()
            keep = tail.find(b"\n") + 1 if start else 0
            at = keep
            for line in tail[keep:].splitlines(keepends=True):
                if not line.endswith(b"\n") or self._is_beyond(line, cursor):
                    break
                at += len(line)
            file.truncate(start + at)

    def add(self, said: Iterable[tuple[int, AnySaid]], now: int) -> None:
        """Append what was said at each place."""
        lines = [
            msgspec.json.encode({"session": self._session, "offset": offset, "at": now, "said": each})
            for offset, each in said
        ]
        if lines:
            with self._path.open("ab") as file:
                file.write(b"\n".join(lines) + b"\n")

    def note(self, event: str, now: int, **fields: Any) -> None:
        """A remark of Fleet's own."""
        with self._path.open("ab") as file:
            file.write(msgspec.json.encode({"session": self._session, "at": now, "event": event, **fields}) + b"\n")

    def _is_beyond(self, line: bytes, cursor: int) -> bool:
        try:
            place = msgspec.json.decode(line, type=Place)
        except msgspec.DecodeError:
            return False
        return place.session == self._session and place.offset >= cursor
