"""The facts that the runner answers with: where a session stands on its host."""

from __future__ import annotations

import signal as signals
from enum import StrEnum
from typing import Any

import msgspec

from fleet.errors import TransportError


class HostState(StrEnum):
    """Where a session stands, as its host sees it."""

    ABSENT = "absent"  # the host knows nothing of it
    PREPARED = "prepared"  # nobody has started it
    STARTING = "starting"  # claimed by a runner that lives; the agent has not begun
    RUNNING = "running"
    EXITED = "exited"  # there is a record of its end
    GONE = "gone"  # it ran, it does not live, and nobody saw its end
    ABANDONED = "abandoned"  # it never ran and never will


class Cause(StrEnum):
    """Who ended it."""

    EXIT = "exit"  # the agent itself
    STOP = "stop"  # we were asked to
    CAP = "cap"  # it wrote more than it may
    DONE = "done"  # an agent on a terminal did what it was given; its process may live on
    UNATTENDED = "unattended"  # nobody attended it for as long as was agreed


class Killed(msgspec.Struct, frozen=True):
    """A process that was ended, and the last signal that it took."""

    pid: int
    signal: str
    name: str


class Exit(msgspec.Struct, frozen=True, kw_only=True):
    """The record of an agent's end. A code above 128 is a signal, or a program that exits as if by one."""

    code: int
    ended_at: int = 0  # by the host's clock, as far as it is known
    ran_ms: int | None = None  # for how long its agent ran, by a clock that nobody sets; None: its host has none
    cause: Cause = Cause.EXIT
    swept: bool = False  # the runner is done with what was left behind, or was told to leave it

    @property
    def signal(self) -> str | None:
        """The signal that the code stands for."""
        try:
            return signals.Signals(self.code - 128).name if self.code > 128 else None
        except ValueError:
            return None


class Observed(msgspec.Struct, frozen=True, kw_only=True):
    """What is so on the host, at one moment."""

    state: HostState
    epoch: int = 0
    pid: int | None = None
    boot: str = ""
    now: int = 0  # the host's clock, in milliseconds
    idle_ms: int = 0  # since the agent last wrote, by the host's clock
    ran_ms: int | None = None  # for how long its agent has run, as in the record of its end
    stdout_bytes: int = 0
    stderr_bytes: int = 0
    runner_lives: bool = False
    exit: Exit | None = None
    killed: tuple[Killed, ...] = ()
    left: int = 0  # processes that could not be ended
    reason: str = ""  # why it was abandoned

    @property
    def ended_ms_ago(self) -> int | None:
        """How long ago the agent ended, both by the host's clock; None: there is no record of its end."""
        if self.exit is None:
            return None
        return max(0, self.now - self.exit.ended_at) if self.exit.ended_at else 0


def parse(line: str) -> Observed:
    """One line of facts: `word=value`, the reason last."""
    head, _, reason = line.strip().partition(" reason=")
    try:
        said = dict(word.split("=", 1) for word in head.split())
        return Observed(
            state=HostState(said["state"]),
            epoch=_number(said, "epoch"),
            pid=int(said["pid"]) if said.get("pid") else None,
            boot=said.get("boot", ""),
            now=_number(said, "now"),
            idle_ms=_number(said, "idle"),
            ran_ms=_ran(said),
            stdout_bytes=_number(said, "stdout"),
            stderr_bytes=_number(said, "stderr"),
            runner_lives=said.get("runner") == "alive",
            exit=_exit(said) if said["state"] == HostState.EXITED else None,
            killed=tuple(_killed(one) for one in said.get("killed", "").split(",") if one),
            left=_number(said, "left"),
            reason=reason,
        )
    except (KeyError, ValueError) as exc:
        raise TransportError(f"the host answered what is no fact about a session: {line[:200]!r}") from exc


def parse_exit(record: bytes) -> Exit | None:
    """The exit file; None when it is absent or torn: a record without its last line is no record."""
    said: dict[str, Any] = {}
    for line in record.decode("ascii", "replace").split("\n"):
        if line == "end":
            break
        key, _, said[key] = line.partition("=")
    else:
        return None
    try:
        return _exit(said)
    except (KeyError, ValueError):
        return None


def _exit(said: dict[str, str]) -> Exit:
    return Exit(
        code=int(said["code"]),
        ended_at=_number(said, "ended"),
        ran_ms=_ran(said),
        cause=Cause(said["cause"]),
        swept=bool(said.get("swept")),
    )


def _killed(word: str) -> Killed:
    pid, signal, name = word.split("/", 2)
    return Killed(int(pid), signal, name)


def _ran(said: dict[str, str]) -> int | None:
    """Less than nothing is told in a container that shows its own uptime, and when its host started a process."""
    ran = int(said.get("ran") or -1)
    return ran if ran >= 0 else None


def _number(said: dict[str, str], key: str) -> int:
    return int(said.get(key) or 0)
