"""The contract of a coder: a vendor's flags, a vendor's stream, a vendor's way of failing. Pure: no I/O, no clock."""

from __future__ import annotations

from typing import Any, Protocol, runtime_checkable

import msgspec

from fleet.model.launch import Launch
from fleet.model.outcome import Outcome
from fleet.model.permission import Permission
from fleet.model.stream import AnySaid


class Work(msgspec.Struct, frozen=True, kw_only=True):
    """What a coder is to do, and where."""

    task: str  # the task's uid
    session: str  # Fleet's session id
    prompt: str
    cwd: str
    model: str | None = None  # None: the coder's own default
    program: str | None = None  # in the place of the coder's usual argv[0]
    command: tuple[str, ...] = ()  # for the `command` coder: what to run; a single item is a line of shell
    as_root: bool = False
    role: str | None = None  # what it is there for, in a word or two
    tool_profile: str | None = None  # read-only, default or full; None is default
    tools: tuple[str, ...] = ()  # the only ones that it may use, as permissions.py reads them; (): not limited by name
    writable: tuple[str, ...] = ()  # directories that it may always write to: artifacts, the session's outbox
    new_uuid: str = ""  # a fresh UUID, for coders whose conversation we may name
    resume: str | None = None  # a conversation to go on with


class Exit(msgspec.Struct, frozen=True, kw_only=True):
    """How the process ended. Not a verdict."""

    code: int | None  # None: nobody saw it
    signal: int | None = None
    stopped_for: str | None = None  # why Fleet ended it: the name of an outcome; None: it ended itself
    at: int | None = None  # when, in UTC milliseconds
    utc_offset_seconds: int = 0  # of the local time that the program told of then


class Coder(Protocol):
    """One vendor's program.

    `parse` is called once for each line of stdout, in order, with the state that the last call returned, and changes
    neither. The state is a frozen msgspec Struct: it is stored with the cursor, so that another process can go on in
    the middle. A line that makes no sense is not an error: it gives no events.
    """

    @property
    def name(self) -> str:
        """As it is registered."""

    @property
    def secrets(self) -> tuple[str, ...]:
        """Variables that it may need, passed to its process alone, where they are set."""

    @property
    def default_model(self) -> str | None:
        """The model of a task that names none; None: the program decides."""

    @property
    def state_type(self) -> type[Any]:
        """A frozen msgspec Struct."""

    def permissions(self, tools: tuple[str, ...], profile: str | None) -> tuple[Permission, ...]:
        """What it makes of a list of tools and a tool profile: one answer for each that asks for something."""

    def launch(self, work: Work) -> Launch:
        """The program to run. Raises UsageError when it cannot honour the work."""

    def begin(self, before: Any = None) -> Any:
        """The state before the first line.

        Of a session that goes on with a conversation, `before` is the last state of the session before it: vendors
        that count on across sessions are booked by difference from there.
        """

    def parse(self, state: Any, line: bytes) -> tuple[Any, tuple[AnySaid, ...]]:
        """The state and what was said, after one more line."""

    def outcome(self, state: Any, exit: Exit, stderr: str) -> Outcome:
        """What became of the session: our own stop, then the last result event, then the exit code, then stderr."""

    def context_limit(self, model: str | None) -> int | None:
        """How many tokens a conversation with that model can hold; None: not known."""


class Aside(msgspec.Struct, frozen=True):
    """A file that a program keeps beside its stream, on its host, and how far it has been read."""

    find: tuple[str, ...]  # a command that prints its path; nothing: it is not there yet
    cursor: int


@runtime_checkable
class SupportsAside(Protocol):
    """A coder that tells in a file of its own what its stream leaves out, such as how full its context is."""

    def aside(self, state: Any) -> Aside | None:
        """The file; None as long as it cannot be told which it is."""

    def parse_aside(self, state: Any, line: bytes) -> tuple[Any, tuple[AnySaid, ...]]:
        """The state and what was said, after one more line of it. The state counts how far that is."""


@runtime_checkable
class SupportsResume(Protocol):
    """A coder that can go on with a conversation of its own."""

    resumable: bool
