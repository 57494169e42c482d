"""Following a fleet that is served elsewhere: the server's events, read by a thread of their own.

A connection that is lost is made anew, and goes on after the last event that was seen. Who follows is not held up, and
is told by `trouble` as long as nothing comes.
"""

from __future__ import annotations

import contextlib
import os
import select
import threading
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import msgspec

from fleet.errors import FleetError, ServerUnreachable
from fleet.model.event import Entry, decode
from fleet.projections.happened import About, Happened

if TYPE_CHECKING:
    from fleet.front.client import Client
    from fleet.projections.feed import Begin
    from fleet.projections.happened import Only

PAUSES = (0.25, 0.5, 1.0, 2.0)  # seconds between two tries to come back; the last again and again
CLOSE_SECONDS = 1.0
MOST_WAITING = 10_000  # events that are read ahead
DROPPED, ERROR = b"stream.dropped", b"stream.error"


class Line(msgspec.Struct, frozen=True, kw_only=True):
    """An event as the server gives it."""

    position: str
    seq: int
    hash: str
    event: msgspec.Raw
    about: About | None = None


class Stream:
    """The first connection is made at once, and raises where it cannot be made."""

    def __init__(self, client: Client, begin: Begin, only: Only) -> None:
        self.trouble = ""
        self._client = client
        self._query = _query(begin, only)
        self._fresh = begin.newest is not None and not self._query.keys() - {"newest"}
        self._last = ""  # the position up to which was read
        self._came: list[Happened] = []
        self._room = threading.Condition()
        self._failed: Exception | None = None
        self._closed = False
        self._told, self._tell = os.pipe()
        os.set_blocking(self._tell, False)
        os.set_blocking(self._told, False)
        try:
            self._answer = client.stream(self._query, "")
        except FleetError:
            self._close_pipe()
            raise
        self._thread = threading.Thread(target=self._run, name="events", daemon=True)
        self._thread.start()

    def fileno(self) -> int:
        """Can be read from when something came."""
        return self._told

    def more(self) -> list[Happened]:
        """What came since the last time. Raises what cannot be mended by coming back."""
        with self._room:
            came, self._came = self._came, []
            self._room.notify()
        if not came and self._failed is not None:
            raise self._failed
        return came

    def wait(self, seconds: float) -> bool:
        """Until something came, was lost or is back, or so long."""
        if not select.select([self._told], [], [], seconds)[0]:
            return False
        with contextlib.suppress(BlockingIOError):
            os.read(self._told, 1 << 16)
        return True

    def rest(self) -> list[Happened]:
        """All that has happened until now, of a stream that leaves something out; then nothing is followed any more."""
        self.close()
        with contextlib.closing(self._client.stream(self._anew(), self._last)) as answer:
            for kind, position, data in frames(self._client.pieces(answer)):
                if data and kind not in (DROPPED, ERROR):
                    self._came.append(self._client.made(data, happened))
                    self._last = position
                elif position:  # so far was read for us: it has nothing more that we want
                    break
        return self.more()

    def close(self) -> None:
        """End the connection and the thread."""
        with self._room:
            if self._closed:
                return
            self._closed = True
            self._room.notify()
        self._client.cut(self._answer)
        self._thread.join(CLOSE_SECONDS)
        if not self._thread.is_alive():  # else it is about to connect in vain, and finds out that nobody listens
            self._close_pipe()

    def _close_pipe(self) -> None:
        os.close(self._told)
        os.close(self._tell)

    # in the thread

    def _run(self) -> None:
        try:
            while not self._closed:
                self.trouble = self._read()
                self._ring()
                self._come_back()
        except Exception as exc:  # whoever follows is told, and not left waiting
            self._failed = exc
            self._ring()

    def _read(self) -> str:
        """Take what comes on this connection, until it ends; why it did."""
        try:
            with contextlib.closing(self._answer):
                for kind, position, data in frames(self._client.pieces(self._answer)):
                    if kind == DROPPED or self._closed:
                        return ""  # it was we who did not keep up
                    if kind == ERROR:
                        self._say(self._client.made(data, _detail))
                        continue
                    self._say("")
                    if data:
                        self._put(self._client.made(data, happened))
                    self._last = position or self._last
        except ServerUnreachable as exc:
            return str(exc)
        return f"{self._client.url} has ended the connection"

    def _come_back(self) -> None:
        for pause in _pauses():
            with self._room:
                self._room.wait_for(lambda: self._closed, pause)
            if self._closed:
                return
            try:
                self._answer = self._client.stream(self._anew(), self._last)
            except ServerUnreachable as exc:
                self.trouble = str(exc)
            else:
                self.trouble = ""
                self._ring()
                return

    def _anew(self) -> dict[str, Any]:
        """Where to begin when nothing was seen yet: among the newest of nothing, everything was still to come."""
        return {"after": "0"} if self._fresh and not self._last else self._query

    def _say(self, trouble: str) -> None:
        if trouble != self.trouble:
            self.trouble = trouble
            self._ring()

    def _put(self, one: Happened) -> None:
        with self._room:
            self._room.wait_for(lambda: self._closed or len(self._came) < MOST_WAITING)
            self._came.append(one)
        self._ring()

    def _ring(self) -> None:
        with contextlib.suppress(BlockingIOError):  # it is full of rings that were not heard yet
            os.write(self._tell, b"!")


def happened(data: bytes) -> Happened:
    """An event, from its line."""
    line = msgspec.json.decode(data, type=Line)
    return Happened(entry=entry_of(line), position=line.position, about=line.about)


def _detail(data: bytes) -> str:
    return msgspec.json.decode(data, type=dict[str, str]).get("detail", "")


def entry_of(line: Line) -> Entry:
    """The event itself, in its place."""
    body = bytes(line.event)
    return Entry(seq=line.seq, hash=bytes.fromhex(line.hash), body=body, event=decode(body))


def frames(pieces: Iterator[bytes]) -> Iterator[tuple[bytes, str, bytes]]:
    """Server-sent events from what comes of them: the kind, the id and the data of each; comments are such without."""
    rest = b""
    for piece in pieces:
        *whole, rest = (rest + piece).split(b"\n\n")
        for frame in whole:
            fields = dict(line.split(b": ", 1) for line in frame.split(b"\n") if b": " in line)
            yield fields.get(b"event", b""), fields.get(b"id", b"").decode(), fields.get(b"data", b"")


def _query(begin: Begin, only: Only) -> dict[str, Any]:
    asked = {
        "after": begin.position,
        "seq": begin.seq,
        "since": begin.since,
        "newest": begin.newest,
        "run": only.run,
        "task": only.task,
        "kind": list(only.kinds) or None,
    }
    return {name: value for name, value in asked.items() if value is not None}


def _pauses() -> Iterator[float]:
    yield from PAUSES
    while True:
        yield PAUSES[-1]
