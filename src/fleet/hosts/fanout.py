"""One thing on many machines: so many at a time, each answer told as it comes, each within its time."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Sequence
from enum import StrEnum
from typing import TypeVar

import msgspec

from fleet.errors import FleetError
from fleet.hosts.transport import Transport, refusal_behind

T = TypeVar("T")
R = TypeVar("R")
Way = Callable[[], Transport]  # makes the transport of a machine; what it raises is the machine's answer


class End(StrEnum):
    """How a command ended on a machine."""

    OK = "ok"
    FAILED = "failed"  # it ran to its end, with another code than 0
    TIMEOUT = "timeout"  # it was killed there
    UNREACHABLE = "unreachable"  # whether it ran is not known, unless the reason says so
    STOPPED = "stopped"  # a person ended it here before its end there; it was killed there, or never began


class Ran(msgspec.Struct, frozen=True, kw_only=True):
    """What came of a command on one machine."""

    host: str
    end: End
    code: int | None = None  # the negative number of a signal, where one ended it
    stdout: str = ""
    stderr: str = ""
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
            return Ran(host=host, end=End.UNREACHABLE, reason=str(refused), ms=_since(begun))
        reason = f"no end after {command.seconds:g} s; it was killed"
        return Ran(host=host, end=End.TIMEOUT, reason=reason, ms=_since(begun))
    except FleetError as exc:
        return Ran(host=host, end=End.UNREACHABLE, reason=str(exc), ms=_since(begun))
    return Ran(
        host=host,
        end=End.FAILED if done.code else End.OK,
        code=done.code,
        stdout=done.stdout.decode("utf-8", "replace"),
        stderr=done.stderr.decode("utf-8", "replace"),
        ms=_since(begun),
    )


def stopped(host: str) -> Ran:
    """The answer of a machine that was not waited for."""
    return Ran(host=host, end=End.STOPPED, reason="it was ended here before its end there")


def _since(begun: float) -> int:
    return round((time.monotonic() - begun) * 1000)
