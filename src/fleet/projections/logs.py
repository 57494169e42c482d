"""The end of a log: its last lines, of a file that may be long."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from typing import Any, BinaryIO

import msgspec

from fleet.config.home import Home
from fleet.errors import FleetError
from fleet.model.session import goes_by
from fleet.store.reads import Reads

BLOCK = 1 << 18
MOST_BYTES = 1 << 30  # that are read for a look at the end of a log
Shown = Callable[[Sequence[bytes]], list[str]]
Wanted = Callable[[bytes], bool]


class LogTail(msgspec.Struct, frozen=True, kw_only=True):
    """The newest records of what an agent said, oldest of them first."""

    task: str
    file: str
    records: list[Any]


class _Of(msgspec.Struct):
    session: str = ""


def log_tail(reads: Reads, home: Home, word: str, most: int) -> LogTail:
    """Of a task, or of one of its sessions alone."""
    task = reads.find(word)
    only = next((session.id for session in reads.sessions(task=task.uid) if goes_by(session.id, word)), None)
    file = home.task_dir(task.uid) / "log.jsonl"
    try:
        with file.open("rb") as opened:
            lines, _ = tail(opened, most, as_they_are, of_session(only), most_bytes=MOST_BYTES)
    except FileNotFoundError:
        lines = []
    except OSError as exc:
        raise FleetError(f"{file} cannot be read: {exc.strerror}") from exc
    return LogTail(task=task.uid, file=str(file), records=[decoded(line) for line in lines])


def tail(
    opened: BinaryIO,
    most: int,
    shown: Shown,
    wanted: Wanted | None = None,
    *,
    most_bytes: int | None = None,
    block: int = BLOCK,
) -> tuple[list[str], int]:
    """The last lines that the records come to which are wanted, and where in the file the next record begins.

    The file is read from its end, a block at a time, as far as is needed; what is not wanted takes no memory.
    """
    end = _end(opened, block)
    found: list[list[bytes]] = []
    count = due = 0
    for begins, records in _backwards(opened, end, block):
        found.append(records if wanted is None else [line for line in records if wanted(line)])
        count += len(found[-1])
        if count > due:
            lines = shown(_in_order(found))
            if len(lines) >= most:
                return lines[-most:], end
            due = 2 * count
        if most_bytes is not None and end - begins >= most_bytes:
            break
    return shown(_in_order(found))[-most:], end


def of_session(only: str | None) -> Wanted | None:
    """What tells the records of one session; None: all are wanted."""
    if only is None:
        return None
    name, decode = only.encode(), msgspec.json.Decoder(_Of).decode

    def wanted(line: bytes) -> bool:
        try:
            return name in line and decode(line).session == only
        except (msgspec.DecodeError, UnicodeDecodeError):
            return False

    return wanted


def as_they_are(records: Sequence[bytes]) -> list[str]:
    """The records themselves as lines."""
    return [line.decode("utf-8", "replace").rstrip("\n") for line in records]


def decoded(line: str) -> object:
    """A record, or the line as it is where it is none."""
    try:
        return msgspec.json.decode(line)
    except msgspec.DecodeError:
        return line


def _end(opened: BinaryIO, block: int) -> int:
    """Where the last whole record ends; behind it one may be in the making."""
    at = opened.seek(0, os.SEEK_END)
    while at:
        begins = max(0, at - block)
        opened.seek(begins)
        found = opened.read(at - begins).rfind(b"\n")
        if found >= 0:
            return begins + found + 1
        at = begins
    return 0


def _backwards(opened: BinaryIO, end: int, usual: int) -> Iterator[tuple[int, list[bytes]]]:
    """The records before that place, some at a time: each time in order, with the place where they begin."""
    block = usual
    while end:
        begins = max(0, end - block)
        opened.seek(begins)
        data = opened.read(end - begins)
        if not data:
            return  # it was cut off meanwhile, by a supervisor that goes on with the session
        cut = data.find(b"\n") + 1 if begins else 0  # the record that began before this block comes with the next
        if cut == len(data):
            block *= 2  # no record of this length begins in it
            continue
        end, block = begins + cut, usual
        yield end, data[cut:].splitlines(keepends=True)


def _in_order(found: list[list[bytes]]) -> list[bytes]:
    """All records of blocks that were found from the end on."""
    return [line for block in reversed(found) for line in block]
