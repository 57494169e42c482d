"""One thing on many machines: so many at a time, each answer told as it comes, each within its time."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Sequence
from enum import StrEnum
from typing import TypeVar

import msgspec

from fleet.errors import FleetError
from fleet.hosts.transport import Course, Transport, course_behind, refusal_behind

T = TypeVar("T")
R = TypeVar("R")
Way = Callable[[], Transport]  # makes the transport of a machine; what it raises is the machine's answer


class End(StrEnum):
    """How a command ended on a machine."""

    OK = "ok"
    FAILED = "failed"  # it ran to its end, with another code than 0
    TIMEOUT = "timeout"  # it had not ended in its time, and was killed there
    UNREACHABLE = (
        "unreachable"  # it did not begin, or whether it ran, or to its end, is not known: the reason says which
    )
    STOPPED = "stopped"  # a person ended it here before its end there; it was killed there, or never began


class Ran(msgspec.Struct, frozen=True, kw_only=True):
    """What came of a command on one machine."""

    host: str
    end: End
    began: bool | None = None  # whether it began there, as far as that is known
    code: int | None = None  # the negative number of a signal, where one ended it
    stdout: str = ""
    stderr: str = ""
    cut_off: bool = False  # the output is what had arrived when it was killed or the connection broke
    reason: str = ""
    ms: int = 0


class Command(msgspec.Struct, frozen=True, kw_only=True):
    """What is run everywhere."""

    argv: tuple[str, ...]
    stdin: bytes = b""
    seconds: float


async def across(
    items: Sequence[T], do: Callable[[T], Awaitable[R]], *, parallel: int, tell: Callable[[R], None]
) -> None:
    """Do one thing for each item. When cancelled, all that is under way is cancelled, and has ended on return."""
    turns = asyncio.Semaphore(parallel)

    async def one(item: T) -> None:
        async with turns:
            answer = await do(item)
        tell(answer)

    async with asyncio.TaskGroup() as group:
        for item in items:
            group.create_task(one(item))
            await asyncio.sleep(0)  # to start one takes a while: what has been answered meanwhile is told first


async def run_on(host: str, way: Way, command: Command) -> Ran:
    """The command on one machine. Only a cancellation is raised; it kills what runs there, as the timeout does."""
    begun = time.monotonic()
    try:
        async with asyncio.timeout(command.seconds):
            done = await way().run(command.argv, stdin=command.stdin)
    except TimeoutError as exc:
        if refused := refusal_behind(exc):
            return Ran(host=host, end=End.UNREACHABLE, began=False, reason=str(refused), ms=_since(begun))
        return _timed_out(host, command.seconds, course_behind(exc), _since(begun))
    except FleetError as exc:
        course = course_behind(exc)
        if course is None:
            return Ran(host=host, end=End.UNREACHABLE, reason=str(exc), ms=_since(begun))
        return _cut_off(host, End.UNREACHABLE, str(exc), course, _since(begun))
    return Ran(
        host=host,
        end=End.FAILED if done.code else End.OK,
        began=True,
        code=done.code,
        stdout=_text(done.stdout),
        stderr=_text(done.stderr),
        ms=_since(begun),
    )


def stopped(host: str, course: Course | None) -> Ran:
    """The answer of a machine that was not waited for, when the command had come so far there."""
    if course is not None and course.began is False:
        return Ran(host=host, end=End.STOPPED, began=False, reason=f"it never began: {course.awaited}")
    return _cut_off(host, End.STOPPED, "it was killed before its end", course, 0)


def _timed_out(host: str, seconds: float, course: Course | None, ms: int) -> Ran:
    if course is not None and course.began is False:
        reason = f"it never began: after {seconds:g} s {course.awaited}"
        return Ran(host=host, end=End.UNREACHABLE, began=False, reason=reason, ms=ms)
    return _cut_off(host, End.TIMEOUT, f"no end after {seconds:g} s; it was killed", course, ms)


def _cut_off(host: str, end: End, reason: str, course: Course | None, ms: int) -> Ran:
    """A command that had begun, or may have, with what had arrived of its output."""
    began = course.began if course is not None else None
    return Ran(
        host=host,
        end=end,
        began=began,
        stdout=_text(course.stdout) if course is not None else "",
        stderr=_text(course.stderr) if course is not None else "",
        cut_off=True,
        reason=reason if began else f"{reason} if it had begun",
        ms=ms,
    )


def _text(data: bytes | bytearray) -> str:
    return data.decode("utf-8", "replace")


def _since(begun: float) -> int:
    return round((time.monotonic() - begun) * 1000)
