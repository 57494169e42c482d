"""The mirror: `fleet.jsonl`, the ledger as text. The database is the truth; the mirror can be made again.

One process writes it at a time. It goes on from the last whole line it finds, so a crash at any byte is mended by the
next writer: a torn last line is cut off, and a mirror that is missing, or is of another ledger, is begun again.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated

import msgspec

from fleet.errors import LedgerBroken
from fleet.model import event as ev
from fleet.store.reads import Reads

AT_ONCE = 1000
TAIL = 1 << 16


class _Line(msgspec.Struct):
    """A line of the mirror or of an export: the place, the hash, and the event as it is stored."""

    seq: Annotated[int, msgspec.Meta(ge=1, le=(1 << 63) - 1)]
    hash: str
    event: msgspec.Raw


_line = msgspec.json.Decoder(_Line)


def encode_line(entry: ev.Entry) -> bytes:
    """An entry as one line of text."""
    return b'{"seq":%d,"hash":"%s","event":%s}\n' % (entry.seq, entry.hash.hex().encode(), entry.body)


def decode_line(line: bytes, where: str) -> ev.Entry:
    """An entry from its line."""
    try:
        found = _line.decode(line)
        body = bytes(found.event)
        return ev.Entry(seq=found.seq, hash=bytes.fromhex(found.hash), body=body, event=ev.decode(body))
    except (msgspec.DecodeError, ValueError) as exc:
        raise LedgerBroken(f"{where}: this is not a line of a ledger: {exc}") from exc


def read_lines(path: Path) -> Iterator[ev.Entry]:
    """The entries of a mirror or an export. A torn last line is passed over; any other broken line raises."""
    with path.open("rb") as file:
        for number, line in enumerate(file, 1):
            if line.endswith(b"\n"):
                yield decode_line(line, f"{path}:{number}")


class Mirror:
    """The one writer of a mirror file, as long as it has the lock."""

    def __init__(self, path: Path, reads: Reads) -> None:
        self._path = path
        self._reads = reads

    def catch_up(self) -> int:
        """Write what is missing; returns how many lines. Does nothing while another process is at it.

        After letting go of the lock it looks once more: whoever found it taken has committed before that look, so
        nothing is left for later. What the disk refuses is left for the next time: the database has it.
        """
        written = 0
        with contextlib.suppress(OSError):
            while added := self._once():
                written += added
        return written

    def _once(self) -> int:
        fd = os.open(self._path, os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600)
        try:
            try:
                fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                return 0
            return self._append(fd)
        finally:
            os.close(fd)

    def _append(self, fd: int) -> int:
        position, written = self._mend(fd), 0
        while True:
            batch = self._reads.feed(position, limit=AT_ONCE)
            if not batch.entries:
                return written
            _write_all(fd, b"".join(encode_line(entry) for entry in batch.entries))
            position, written = batch.position, written + len(batch.entries)

    def _mend(self, fd: int) -> str:
        """Cut off a torn line; the sequence of the last whole one, if it is of this ledger."""
        size = os.fstat(fd).st_size
        if not size:
            return ""
        last, end = _last_line(fd, size)
        if end != size:
            os.ftruncate(fd, end)
        if last is None:
            return ""
        with contextlib.suppress(LedgerBroken):
            found = decode_line(last, str(self._path))
            known = self._reads.place(found.seq)
            if known is not None and known[0] == found.hash:
                return known[1]
        self._begin_again(fd)
        return ""

    def _begin_again(self, fd: int) -> None:
        """Keep what is there under another name: it may be all that is left of another ledger."""
        number = 1
        while (aside := self._path.with_name(f"{self._path.name}.{number}")).exists():
            number += 1
        size, offset = os.fstat(fd).st_size, 0
        with aside.open("xb") as copy:
            while offset < size:
                block = os.pread(fd, 1 << 20, offset)
                copy.write(block)
                offset += len(block)
            copy.flush()
            os.fsync(copy.fileno())
        os.ftruncate(fd, 0)


def _last_line(fd: int, size: int) -> tuple[bytes | None, int]:
    """The last line that has an end, and where it ends."""
    start, tail = size, b""
    while start > 0:
        step = min(TAIL, start)
        start -= step
        tail = os.pread(fd, step, start) + tail
        end = tail.rfind(b"\n")
        if end < 0:
            continue
        begin = tail.rfind(b"\n", 0, end)
        if begin >= 0 or start == 0:
            return tail[begin + 1 : end + 1], start + end + 1
    return None, 0


def _write_all(fd: int, data: bytes) -> None:
    view = memoryview(data)
    while view:
        view = view[os.write(fd, view) :]
