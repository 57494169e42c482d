"""The record of a session's stream in its task's directory: what was said, each with its place in the raw output."""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path
from typing import IO

import msgspec

from fleet.config.files import make_private, private
from fleet.errors import Fenced
from fleet.model.stream import AnySaid

PIECE = 1 << 20  # longer than any line: what is said is kept in short


class Overtaken(Fenced):
    """Another has put its copy in the place of our log. It had the session after us, or before us, and thawed."""


class Place(msgspec.Struct):
    """Of a line of log.jsonl, what is needed to find it again."""

    session: str = ""
    offset: int = -1


class StreamRecord:
    """`log.jsonl` of one task. Written before the cursor is committed; what a crash leaves beyond it is cut off.

    Where several supervisors share a queue, one that was frozen may wake up and write what another has written since.
    So who takes over puts a copy in the place of the file: the other finds that the file is not the one it knew, or
    writes to the old one, which nobody reads.
    """

    def __init__(self, directory: Path, session: str, *, shared: bool = False) -> None:
        self._path = directory / "log.jsonl"
        self._stderr = directory / "stderr.log"
        self._session = session
        self._shared = shared
        self._known: tuple[int, int, int] | None = None
        make_private(directory)

    def rewind(self, cursor: int) -> None:
        """Cut off what was said at or after a place that will be read again."""
        if not cursor and not self._shared and not self._path.exists():
            return
        with open(self._path, "a+b", opener=private) as file:
            size = self._end(file, cursor)
            if not self._shared:
                file.truncate(size)
                return
            copy = self._path.with_name(f".log.jsonl.{self._session}")
            with open(copy, "wb", opener=private) as new:
                file.seek(0)
                while data := file.read(min(PIECE, size - new.tell())):
                    new.write(data)
                new.flush()
                self._known = _identity(new.fileno())
            copy.replace(self._path)

    def add(self, said: Iterable[tuple[int, AnySaid]], now: int) -> int:
        """Append what was said at each place. How many bytes that came to."""
        lines = [
            msgspec.json.encode({"session": self._session, "offset": offset, "at": now, "said": each})
            for offset, each in said
        ]
        if not lines:
            return 0
        file = os.open(self._path, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            if self._known is not None and self._known != _identity(file):
                raise Overtaken(f"the log of session {self._session} is another's")
            data = b"\n".join(lines) + b"\n"
            rest = memoryview(data)
            while rest:
                rest = rest[os.write(file, rest) :]
            if self._shared:
                self._known = _identity(file)
            return len(data)
        finally:
            os.close(file)

    def keep_stderr(self, text: str) -> None:
        """Append what it wrote to stderr; once, also when its end is dealt with again."""
        title = _title(self._session)
        if not text or has_stderr_of(self._stderr.parent, self._session):
            return
        with open(self._stderr, "a", encoding="utf-8", opener=private) as file:
            file.write(f"{title}{text.rstrip()}\n")

    def _end(self, file: IO[bytes], cursor: int) -> int:
        """Where the first line begins that is to be cut off; looked for from the end, a piece at a time."""
        end = file.seek(0, os.SEEK_END)
        while True:
            start = max(0, end - PIECE)
            file.seek(start)
            piece = file.read(end - start)
            at = piece.find(b"\n") + 1 if start else 0
            if start and not at:
                raise ValueError(f"a line of {self._path} is longer than {PIECE} bytes")
            first = at
            for line in piece[at:].splitlines(keepends=True):
                if not line.endswith(b"\n") or self._is_beyond(line, cursor):
                    break
                at += len(line)
            if at > first or not start:
                return start + at
            end = start + first  # all of this piece goes, and perhaps some before it

    def _is_beyond(self, line: bytes, cursor: int) -> bool:
        try:
            place = msgspec.json.decode(line, type=Place)
        except msgspec.DecodeError:
            return False
        return place.session == self._session and place.offset >= cursor


def has_stderr_of(directory: Path, session: str) -> bool:
    """Whether what a session wrote to stderr is kept in its task's directory."""
    file = directory / "stderr.log"
    return file.exists() and _title(session) in file.read_text("utf-8", "replace")


def _title(session: str) -> str:
    return f"--- {session}\n"


def _identity(fd: int) -> tuple[int, int, int]:
    """What tells a file from its successor, also when that was given the same number."""
    found = os.fstat(fd)
    return found.st_ino, found.st_size, found.st_mtime_ns
