"""Programs of this machine that run apart from us and outlive us: started without a copy of this process."""

from __future__ import annotations

import asyncio
import contextlib
import os
import shutil
import signal
import subprocess
from collections.abc import Sequence
from functools import cache

from fleet.config.environment import environ
from fleet.hosts.kernel import start_time
from fleet.hosts.launch_file import BASE_ENVIRONMENT, OURS

KEPT = (*BASE_ENVIRONMENT, *OURS)  # OURS: we may ourselves run in a session, and what we start is then part of it
RESTORED = frozenset({signal.SIGPIPE, signal.SIGXFSZ})  # Python ignores them, and Popen sets them right
PIPE_ROOM = 4096  # what every pipe takes at once
REAP_SECONDS = 1.0


class Apart:
    """Starts them, and sees to it that those which end while we live do not stay as zombies."""

    def __init__(self) -> None:
        self._started: set[int] = set()
        self._reaping: asyncio.AbstractEventLoop | None = None

    async def launch(self, argv: Sequence[str], stdin: bytes, *, tell_start: bool = False) -> bytes:
        """The first line that it prints, as leader of its own process session with fresh signals; b"" if none.

        `tell_start`: it is given the start time of its process first, in a line of its own.
        """
        if not _take_ignored_signals():
            return b""
        given, giving = os.pipe()
        answer, answering = os.pipe()
        try:
            pid = self._spawn(argv, given, answering)
        except BaseException:
            os.close(giving)
            os.close(answer)
            raise
        finally:
            os.close(given)
            os.close(answering)
        try:
            if tell_start:
                stdin = start_time(pid).encode() + b"\n" + stdin
            if len(stdin) <= PIPE_ROOM:
                _give(giving, stdin)
            else:
                await asyncio.to_thread(_give, giving, stdin)
            return await _first_line(answer)
        finally:
            os.close(answer)

    def _spawn(self, argv: Sequence[str], stdin: int, stdout: int) -> int:
        ours = environ()
        env = {name: ours[name] for name in KEPT if name in ours}
        program = _found(argv[0], ours.get("PATH"))
        process = subprocess.Popen(
            [program, *argv[1:]], stdin=stdin, stdout=stdout, stderr=subprocess.DEVNULL, env=env, start_new_session=True
        )
        process.returncode = 0  # as far as Popen is concerned: we wait for it ourselves, and it may outlive us
        self._started.add(process.pid)
        loop = asyncio.get_running_loop()
        if self._reaping is not loop:  # nobody does, or it was in a loop that is closed
            self._reaping = loop
            loop.call_later(REAP_SECONDS, self._reap, loop)
        return process.pid

    def _reap(self, loop: asyncio.AbstractEventLoop) -> None:
        """Now and then, while there are any: a descriptor or a thread for each would be dearer."""
        self._started = {pid for pid in self._started if not _has_ended(pid)}
        if self._started:
            loop.call_later(REAP_SECONDS, self._reap, loop)
        elif self._reaping is loop:
            self._reaping = None


@cache
def _take_ignored_signals() -> bool:
    """What we ignore, what we start would ignore too: take each such signal, and do nothing with it.

    Only the main thread may; elsewhere it is False when there is such a signal.
    """
    for each in signal.valid_signals() - RESTORED:
        if signal.getsignal(each) is signal.SIG_IGN:
            try:
                signal.signal(each, _do_nothing)
            except ValueError:
                return False
    return True


def _do_nothing(number: int, frame: object) -> None:
    """A handler is not inherited by what we start; to ignore is."""


@cache
def _found(program: str, path: str | None) -> str:
    """Where it is, looked for once: until it is found, this whole process stands still at each start."""
    return shutil.which(program, path=path) or program


def _give(fd: int, data: bytes) -> None:
    with open(fd, "wb", buffering=0) as file, contextlib.suppress(BrokenPipeError):  # it ended: its answer says so
        left = memoryview(data)
        while left:
            left = left[file.write(left) :]


async def _first_line(fd: int) -> bytes:
    loop = asyncio.get_running_loop()
    line = b""
    while not line.endswith(b"\n"):
        readable = loop.create_future()
        loop.add_reader(fd, _resolve, readable)
        try:
            await readable
        finally:
            loop.remove_reader(fd)
        if not (more := os.read(fd, 4096)):
            break
        line += more
    return line


def _has_ended(pid: int) -> bool:
    try:
        return os.waitpid(pid, os.WNOHANG)[0] == pid
    except ChildProcessError:  # somebody else has waited for it
        return True


def _resolve(future: asyncio.Future[None]) -> None:
    if not future.done():
        future.set_result(None)
