"""The contract of a transport: a way to reach one machine."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping, Sequence
from typing import NamedTuple, Protocol, Self, runtime_checkable

from fleet.errors import FleetError, TransportError

MOST_OUTPUT = 1 << 26  # bytes of one run, of both its streams together


class Completed(NamedTuple):
    """A program that ran to its end on the machine. That it failed is its own affair: it is a value."""

    code: int  # the negative number of a signal, where one ended it
    stdout: bytes
    stderr: bytes


class Transport(Protocol):
    """A way to reach one machine. Raises only TransportError; when cancelled, kills what it started.

    A program that has left for a process session of its own is not what was started: it lives on. A cancellation may
    have a cause: the refusal, where it waited to ask again (`refusal_behind`), or how far a run had come (`Course`).
    A TransportError that breaks off a run which had begun has that too (`course_behind`).
    """

    async def run(self, argv: Sequence[str], *, stdin: bytes = b"") -> Completed:
        """Run a program to its end. Not repeated by the transport: the caller knows whether that is safe.

        One that prints more than MOST_OUTPUT is ended, and that is an error: memory has an end.
        """

    async def put(self, path: str, data: bytes) -> None:
        """Write a file: whole or not at all, private to the user, with the directories above it. May be repeated."""

    async def get(self, path: str, *, offset: int = 0, limit: int = 1 << 20) -> bytes:
        """Up to `limit` bytes of a file; b"" when it is absent or has no more.

        What is no regular file is absent: a pipe or a directory that an agent made keeps nobody waiting.
        """

    def stream(self, argv: Sequence[str]) -> AsyncIterator[bytes]:
        """What a program prints, as it comes. Ends with the program, and ends the program when it is closed."""


@runtime_checkable
class SupportsUnpack(Protocol):
    """The further power of a transport that writes the files of a directory at once, where each put would cost more."""

    async def unpack(self, directory: str, files: Mapping[str, bytes], *, shared: Mapping[str, bytes]) -> None:
        """Write the programs that many directories share, then the files in their order; a name/ is a directory.

        Each is whole or not at all, and private; a crash of the machine may lose it. May be repeated.
        """


@runtime_checkable
class SupportsPeek(Protocol):
    """A transport that can look around without starting a program."""

    async def is_empty(self, directory: str) -> bool:
        """Whether there is nothing in it, or it is not there. TransportError: it is not known."""

    async def real(self, path: str) -> str:
        """The path with every link followed."""


@runtime_checkable
class SupportsLaunch(Protocol):
    """The further power of a transport that starts what outlives it without a shell in between."""

    async def launch(self, argv: Sequence[str], *, stdin: bytes) -> bytes:
        """Run a program apart from us and answer with its first line of output, b"" when it ends without one.

        It leads a process session of its own, has fresh signals and a small environment, and is never killed by us.
        """


@runtime_checkable
class SupportsBegin(Protocol):
    """The further power of a transport that unpacks a directory and launches from it in one exchange."""

    async def begin(
        self,
        directory: str,
        files: Mapping[str, bytes],
        *,
        shared: Mapping[str, bytes],
        argv: Sequence[str],
        stdin: bytes,
    ) -> bytes:
        """As `unpack`, then as `launch`; b"" also where the host can only do the first."""


@runtime_checkable
class SupportsRunners(Protocol):
    """The further power of a transport that sees its machine's kernel itself, and spares a runner questions to it."""

    async def launch_runner(self, argv: Sequence[str], *, stdin: bytes, session: str) -> bytes:
        """As `launch`, of a `runner.sh run`, in a cgroup that is named for the session; no name: it gets none."""

    def clear(self, directory: str) -> None:
        """Remove the cgroup of the session in that directory, once nothing is left in it. Never raises."""


@runtime_checkable
class SupportsHold(Protocol):
    """The further power of a transport to a machine that falls asleep when it seems idle."""

    def hold(self, seconds: int) -> bytes:
        """A program for sh that keeps the machine awake: `hold on|off SESSION`; not for longer than this from now.

        The runner of a session calls it when the agent begins and has ended, and somebody every minute between.
        """


@runtime_checkable
class SupportsMaking(Protocol):
    """A transport to a machine that is made when it is needed, and can be destroyed."""

    async def make(self) -> None:
        """See to it that it is there. May be repeated."""

    async def destroy(self) -> None:
        """End it, with all that is on it."""


class Seen(Protocol):
    """What the provider of a machine says of it, and by what evidence."""

    @property
    def presence(self) -> str:
        """Its state, in the provider's word."""

    @property
    def evidence(self) -> str:
        """Why that is believed, or what is not known."""

    @property
    def asleep(self) -> bool:
        """Whether nothing runs on it until it is woken."""


@runtime_checkable
class SupportsSight(Protocol):
    """A transport to a machine whose provider tells of it without waking it."""

    async def seen(self) -> Seen:
        """Never raises: a provider that fails is evidence of nothing."""


def too_much(program: str) -> TransportError:
    """The error for a run that printed more than can be kept."""
    return TransportError(f"`{program}` printed more than {MOST_OUTPUT >> 20} MiB, and was ended")


class Course(Exception):
    """How far a run has come. Entered by `with`, it becomes the cause of a cancellation that has none; never raised.

    An error that breaks off what had begun has it as its `course`.
    """

    def __init__(self, awaited: str = "") -> None:
        super().__init__()
        self.awaited = awaited  # what stands in the way of its beginning, as a clause
        self.began: bool | None = False  # None: it is not known
        self.stdout = bytearray()  # what has arrived of its output
        self.stderr = bytearray()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: object, exc: BaseException | None, trace: object) -> None:
        if isinstance(exc, asyncio.CancelledError) and exc.__cause__ is None:
            exc.__cause__ = self
        if isinstance(exc, TransportError) and self.began:
            exc.course = self


def refusal_behind(exc: TimeoutError) -> TransportError | None:
    """What the far side had answered when the time was over: it was heard and refused, it was not silent."""
    refused = _behind(exc)
    return refused if isinstance(refused, TransportError) else None


def course_behind(exc: TimeoutError | asyncio.CancelledError | FleetError) -> Course | None:
    """How far a run had come when its time was over, it was cancelled or it broke off; None where that is not said."""
    course = getattr(exc, "course", None) if isinstance(exc, FleetError) else _behind(exc)
    return course if isinstance(course, Course) else None


def _behind(exc: TimeoutError | asyncio.CancelledError) -> BaseException | None:
    cancelled = exc.__cause__ if isinstance(exc, TimeoutError) else exc
    return cancelled.__cause__ if cancelled is not None else None
