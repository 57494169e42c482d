"""Child processes that run a function of the test: to be stopped, killed, or without the rights of the parent."""

from __future__ import annotations

import contextlib
import os
import pickle
import select
import signal
import sys
import traceback
from collections.abc import Callable, Iterator
from typing import Any, NoReturn, TypeVar

T = TypeVar("T")
NOBODY = 65534


def in_child(act: Callable[[], T], *, as_nobody: bool = False) -> T:
    """What `act` gives or raises in a forked child; where we are root, the child may be nobody instead."""
    receive, send = os.pipe()
    pid = os.fork()
    if not pid:
        os.close(receive)
        _answer(act, send, as_nobody=as_nobody)
    os.close(send)
    with os.fdopen(receive, "rb") as pipe:
        data = pipe.read()
    os.waitpid(pid, 0)
    assert data, "the child said nothing"
    good, value = pickle.loads(data)
    if not good:
        raise value
    result: T = value
    return result


def _answer(act: Callable[[], Any], send: int, *, as_nobody: bool) -> NoReturn:
    try:
        if as_nobody and os.geteuid() == 0:
            os.setgroups([])
            os.setgid(NOBODY)
            os.setuid(NOBODY)
        answer = (True, act())
    except BaseException as exc:
        exc.__traceback__ = exc.__cause__ = exc.__context__ = None
        answer = (False, exc)
    with contextlib.suppress(BaseException), os.fdopen(send, "wb") as pipe:
        pipe.write(pickle.dumps(answer))
    os._exit(0)


class Child:
    """A forked process that runs `act` with a pipe to say things through, until it is killed or done."""

    def __init__(self, act: Callable[[int], object]) -> None:
        self.said, saying = os.pipe()
        self.pid = os.fork()
        if not self.pid:
            os.close(self.said)
            try:
                act(saying)
            except BaseException:
                traceback.print_exc(file=sys.stderr)
                os._exit(1)
            os._exit(0)
        os.close(saying)
        self.code: int | None = None

    def send(self, number: signal.Signals) -> None:
        """A signal."""
        os.kill(self.pid, number)

    def wait(self) -> int:
        """Its exit code, once it has ended; a negative number is the signal that ended it."""
        if self.code is None:
            _, status = os.waitpid(self.pid, 0)
            self.code = os.waitstatus_to_exitcode(status)
        return self.code

    def kill_after(self, seconds: float) -> int:
        """Let it run for that long at most, then kill it; how it ended."""
        with open(os.pidfd_open(self.pid)) as end:
            select.select([end], [], [], seconds)
        with contextlib.suppress(ProcessLookupError):
            self.send(signal.SIGKILL)
        return self.wait()

    def heard(self) -> list[str]:
        """All whole lines that it said and that were not read yet; to the end, so the child must have ended."""
        with os.fdopen(self.said, "rb") as pipe:
            return [line.decode() for line in pipe.read().split(b"\n")[:-1]]

    def line(self) -> str:
        """The next line that it says."""
        line = b""
        while not line.endswith(b"\n"):
            byte = os.read(self.said, 1)
            assert byte, f"the child ended after saying {line!r}"
            line += byte
        return line.decode().rstrip("\n")


@contextlib.contextmanager
def child(act: Callable[[int], object]) -> Iterator[Child]:
    """A child that is gone when the test is done with it."""
    process = Child(act)
    try:
        yield process
    finally:
        if process.code is None:
            with contextlib.suppress(ProcessLookupError):
                process.send(signal.SIGKILL)
            process.wait()
        with contextlib.suppress(OSError):
            os.close(process.said)
