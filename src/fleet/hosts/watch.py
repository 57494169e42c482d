"""The watch of this machine: one look at all sessions that are followed, which wakes those where something is new."""

from __future__ import annotations

import asyncio
import os
import stat

from fleet.hosts.facts import Exit
from fleet.hosts.kernel import has_ended
from fleet.hosts.lines import Read
from fleet.hosts.outbox import Request
from fleet.hosts.session import HostedSession

QUICK_SECONDS, CALM_SECONDS = 0.02, 0.1  # between two looks: at a few sessions, and at a thousand
MANY = 1000
SELDOM = 5  # one look in so many is at stderr too: nobody waits for what is said there, but it has a bound
TURNS = 200  # with more than so many, an end and a request are looked for at every second look only


class LocalWatch:
    """Looks at files: two or three questions to the system for each session, and no process, thread or timer.

    What cannot be seen wakes nobody, and is not taken for an end.
    """

    def __init__(self) -> None:
        self._followed: set[_Seen] = set()
        self._next: asyncio.TimerHandle | None = None
        self._turn = 0

    def follow(self, hosted: HostedSession, *, cursor: int, requests: int) -> _Seen:
        """Begin with what comes after the cursor and that request."""
        followed = _Seen(self, hosted, cursor, requests)
        self._followed.add(followed)
        if self._next is None:
            self._plan()
        return followed

    def leave(self, followed: _Seen) -> None:
        """Look at it no more; the last one ends the watch."""
        self._followed.discard(followed)
        if not self._followed and self._next is not None:
            self._next.cancel()
            self._next = None

    def _plan(self) -> None:
        share = min(1.0, len(self._followed) / MANY)
        pause = QUICK_SECONDS + (CALM_SECONDS - QUICK_SECONDS) * share
        self._next = asyncio.get_running_loop().call_later(pause, self._look)

    def _look(self) -> None:
        self._turn += 1
        both, odd = len(self._followed) <= TURNS, bool(self._turn % 2)
        at_stderr = self._turn % SELDOM == 0
        for followed in self._followed:
            followed.look(at_end=both or odd, at_requests=both or not odd, at_stderr=at_stderr)
        self._plan()


class _Seen:
    """One session: its files are read when they are asked for, and looked at in between."""

    def __init__(self, watch: LocalWatch, hosted: HostedSession, cursor: int, requests: int) -> None:
        self._watch = watch
        self._hosted = hosted
        self._stdout, self._exit = f"{hosted.directory}/stdout", f"{hosted.directory}/exit"
        self._stderr = f"{hosted.directory}/stderr"
        self._size = self.printed = cursor
        self._request = self._path_of(requests + 1)
        self._record: Exit | None = None
        self._processes: tuple[tuple[int, str, str], ...] = ()  # its agent and its runner, once they are known
        self._ended = False
        self._changed = False
        self._waiting: asyncio.Future[None] | None = None

    async def read(self, cursor: int, *, ended: bool = False) -> Read:
        got = await self._hosted.read(cursor, ended=ended)
        self._size = got.cursor
        return got

    def pass_over(self) -> None:
        """Nothing is kept: it stands in its file."""

    async def exit(self) -> Exit | None:
        """Read only when the look has found one, or one that may have been completed since."""
        if self._record is None or not self._record.swept:
            self._ended = _is_written(self._exit)
            self._record = await self._hosted.exit() if self._ended else None
        return self._record

    def vanished(self) -> bool:
        """A few questions to the kernel. The record is looked for last: a runner writes it before it ends."""
        if len(self._processes) < 2:
            named = (_process(f"{self._hosted.directory}/{name}") for name in ("pid", "claim"))
            self._processes = tuple(found for found in named if found is not None)
        if len(self._processes) < 2 or not all(has_ended(*one) for one in self._processes):
            return False
        return not _is_written(self._exit)

    async def requests(self, after: int, *, ended: bool = False) -> list[Request]:
        self._request = self._path_of(after + 1)
        return await self._hosted.requests(after) if ended or _is_written(self._request) else []

    async def changed(self, seconds: float) -> None:
        """A record that is not complete is looked for soon: the look sees only that there is one."""
        if not self._changed:
            loop = asyncio.get_running_loop()
            self._waiting = loop.create_future()
            timer = loop.call_later(min(seconds, QUICK_SECONDS) if self._ended else seconds, self.wake)
            try:
                await self._waiting
            finally:
                timer.cancel()
                self._waiting = None
        self._changed = False

    def wake(self) -> None:
        self._changed = True
        if self._waiting is not None and not self._waiting.done():
            self._waiting.set_result(None)

    def close(self) -> None:
        self._watch.leave(self)

    def look(self, *, at_end: bool, at_requests: bool, at_stderr: bool) -> None:
        """Wake who waits, if there is more than it knows of."""
        size = _size_of(self._stdout, self._size)
        if size != self._size:
            self._size = size
            self.printed = max(size, self.printed)
            self.wake()
        if at_stderr and (size := _size_of(self._stderr, 0)) > self.printed:
            self.printed = size
            self.wake()
        if at_requests and _is_written(self._request):
            self.wake()
        if at_end and not self._ended and _is_written(self._exit):
            self.wake()

    def _path_of(self, request: int) -> str:
        return f"{self._hosted.directory}/outbox/{request}"


def _process(path: str) -> tuple[int, str, str] | None:
    """The process that a file of the runner names: its number, its start and the boot; None: there is none yet."""
    try:
        with open(path, "rb") as file:
            words = file.read(4096).decode("ascii", "replace").split()
    except OSError:
        return None
    if len(words) < 4 or words[0] not in ("agent", "runner") or not words[1].isdecimal():
        return None
    return int(words[1]), words[2], words[3]


def _size_of(path: str, unknown: int) -> int:
    try:
        return os.stat(path).st_size
    except OSError:
        return unknown


def _is_written(path: str) -> bool:
    """Whether a file is there to be read: who is woken for what reads as absent would be woken for ever."""
    if not os.access(path, os.F_OK):  # as nearly always; it costs less than a stat that fails
        return False
    try:
        found = os.stat(path)
    except OSError:
        return False
    return stat.S_ISREG(found.st_mode) and found.st_size > 0
