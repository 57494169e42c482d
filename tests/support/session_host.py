"""A place for sessions on this machine, with real processes; and the proof that none of them is left behind."""

from __future__ import annotations

import asyncio
import contextlib
import os
import shutil
import signal
import time
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any, TypeVar

import pytest

from fleet.hosts.facts import HostState, Observed
from fleet.hosts.launch_file import Rules
from fleet.hosts.local import LocalTransport
from fleet.hosts.session import HostedSession
from fleet.hosts.transport import Transport
from fleet.model.launch import Launch
from tests.support.programs import need

T = TypeVar("T")
SHELLS = {"dash": ("dash",), "bash": ("bash",), "busybox": ("busybox", "sh")}
QUICK = Rules(look_seconds=1, grace_ms=200, use_cgroup=False)
SETTLED = frozenset(HostState) - {HostState.STARTING}
SECONDS = 20.0
LEFT_SECONDS = 5.0  # for all processes of a session to end, when it has


def do(work: Coroutine[Any, Any, T]) -> T:
    """Run to its end, within a deadline."""

    async def bounded() -> T:
        async with asyncio.timeout(SECONDS):
            return await work

    return asyncio.run(bounded())


def until(true: Callable[[], T], what: str = "it", *, seconds: float = SECONDS) -> T:
    """Wait for a fact, and fail when it does not come."""
    deadline, pause = time.monotonic() + seconds, 0.01
    while not (found := true()):
        assert time.monotonic() < deadline, f"{what} did not come"
        time.sleep(pause)
        pause = min(0.05, pause * 1.2)  # some looks are work, for the machine that all wait for
    return found


def stat_of(pid: int) -> list[str]:
    """The fields of /proc/PID/stat after the name; empty when there is no such process."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except (FileNotFoundError, ProcessLookupError):
        return []


def lives(pid: int) -> bool:
    """Whether a process runs; one that nobody has waited for is dead."""
    fields = stat_of(pid)
    return bool(fields) and fields[0] not in "ZX"


def children_of(pid: int) -> list[int]:
    """The processes that it started and that live."""
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit() and stat_of(int(entry.name))[1:2] == [str(pid)] and lives(int(entry.name)):
            found.append(int(entry.name))
    return found


def kill(pid: int) -> None:
    """kill -9, of one that may be dead."""
    with contextlib.suppress(ProcessLookupError):
        os.kill(pid, signal.SIGKILL)


def processes_with(word: bytes, *, files: tuple[str, ...] = ("cmdline", "environ")) -> list[int]:
    """All processes but this that have the word in their arguments or environment."""
    found = []
    for entry in Path("/proc").iterdir():
        if not entry.name.isdigit() or int(entry.name) == os.getpid():
            continue
        with contextlib.suppress(OSError):
            if any(word in (entry / file).read_bytes() for file in files) and lives(int(entry.name)):
                found.append(int(entry.name))
    return found


class SessionHost:
    """Sessions below one directory, under one shell."""

    def __init__(self, root: Path, shell: tuple[str, ...], transport: Transport | None = None) -> None:
        self.root = root
        self.shell = shell
        self.transport = transport or LocalTransport()
        self._count = 0

    def elsewhere(self, root: Path) -> SessionHost:
        """Another place on the same machine."""
        return SessionHost(root, self.shell, self.transport)

    def session(self, *, epoch: int = 1, name: str | None = None) -> HostedSession:
        """A handle on a new session, or on the one that is named."""
        if name is None:
            self._count += 1
            name = f"t{self._count}.1"
        return HostedSession(self.transport, str(self.root), name, epoch, shell=self.shell)

    def prepared(self, script: str, rules: Rules = QUICK, **fields: Any) -> HostedSession:
        """A session of an agent that is a piece of sh, ready to be started."""
        session = self.session()
        launch = Launch(argv=("/bin/sh", "-c", script), cwd=fields.pop("cwd", str(self.root)), **fields)
        do(session.prepare(launch, rules))
        return session

    def started(self, script: str, rules: Rules = QUICK, **fields: Any) -> HostedSession:
        """A session of an agent that is a piece of sh."""
        session = self.prepared(script, rules, **fields)
        do(session.start())
        return session

    def file(self, session: HostedSession, name: str) -> Path:
        """A file of its directory."""
        return Path(session.directory) / name

    def runner(self, session: HostedSession) -> int:
        """The process that waits for the agent."""
        return int(self.file(session, "claim").read_text().split()[1])

    def settled(self, session: HostedSession) -> Observed:
        """What is observed once it does not merely start."""
        return until(lambda: seen if (seen := do(session.observe())).state in SETTLED else None, "a settled state")  # type: ignore[return-value]

    def ended(self, session: HostedSession) -> Observed:
        """What is observed once the runner has written its last word."""
        until(lambda: (record := do(session.exit())) and record.swept, "the record of the end")
        return do(session.observe())

    def said(self, name: str) -> str:
        """The text of a file that an agent wrote beside the sessions, once it is there with its line break."""
        path = self.root / name
        return until(lambda: path.exists() and (text := path.read_text()).endswith("\n") and text, name) or ""

    def nothing_left(self) -> None:
        """Wait until every process of these sessions has ended."""
        deadline = time.monotonic() + LEFT_SECONDS
        while left := processes_with(os.fsencode(self.root)):
            if time.monotonic() > deadline:
                words = [Path(f"/proc/{pid}/cmdline").read_bytes().replace(b"\0", b" ") for pid in left]
                for pid in left:
                    kill(pid)
                raise AssertionError(f"left behind: {words}")
            time.sleep(0.02)


def shell_named(name: str) -> tuple[str, ...]:
    """The words that start a shell; a machine without it is told so."""
    words = SHELLS[name]
    need(name, shutil.which(words[0]), f"install {name}")
    return words


def no_root(reason: str) -> None:
    """Skip what only root can arrange."""
    if os.geteuid():
        pytest.skip(reason)
