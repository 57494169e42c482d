"""The end of a log: its last lines, of a file that may be long."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from typing import Any, BinaryIO

import msgspec

from fleet.config.home import Home
from fleet.errors import FleetError
from fleet.store.reads import Reads

BLOCK = 1 << 16
MOST_BYTES = 8 << 20  # that are read for a look at the end of a log


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
    only = word if any(session.id == word for session in reads.sessions(task=task.uid)) else None
    file = home.task_dir(task.uid) / "log.jsonl"
    decode = msgspec.json.Decoder(_Of).decode

    def shown(records: Sequence[bytes]) -> list[str]:
        kept = records if only is None else [line for line in records if _is_of(line, only, decode)]
        return [line.decode("utf-8", "replace").rstrip("\n") for line in kept]

    try:
        with file.open("rb") as opened:
            lines, _ = tail(opened, most, shown, most_bytes=MOST_BYTES)
    except FileNotFoundError:
        lines = []
    except OSError as exc:
        raise FleetError(f"{file} cannot be read: {exc.strerror}") from exc
    return LogTail(task=task.uid, file=str(file), records=[decoded(line) for line in lines])


def tail(
    opened: BinaryIO, most: int, shown: Callable[[Sequence[bytes]], list[str]], *, most_bytes: int | None = None
) -> tuple[list[str], int]:
    """The last lines that records come to, and where in the file the next record begins.

    As much of the file's end is read as is needed, and no more.
    """
    size, block = opened.seek(0, os.SEEK_END), BLOCK
    while True:
        start = max(0, size - block)
        opened.seek(start)
        data = opened.read(size - start)
        whole = data[: data.rfind(b"\n") + 1]
        lines = shown(whole.splitlines(keepends=True)[1 if start else 0 :])
        if len(lines) >= most or not start or (most_bytes is not None and block >= most_bytes):
            return lines[-most:], start + len(whole)
        block *= 4


def decoded(line: str) -> object:
    """A record, or the line as it is where it is none."""
    try:
        return msgspec.json.decode(line)
    except msgspec.DecodeError:
        return line


def _is_of(line: bytes, session: str, decode: Callable[[bytes], _Of]) -> bool:
    try:
        return decode(line).session == session
    except msgspec.DecodeError:
        return False
