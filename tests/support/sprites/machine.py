"""One stand-in sprite: its directory, its processes, and its sleep.

It sleeps when nothing keeps it awake: its processes are stopped where they are (warm), later they are gone (cold). A
process is the sprite's when it has the sprite's HOME, or was started by one that has.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import time
import uuid
from collections.abc import Callable
from pathlib import Path

from aiohttp import web

from tests.support.sprites.faults import Faults
from tests.support.sprites.process import Process
from tests.support.sprites.wire import VERSION, Refused, as_time


class Machine:
    """A sprite. All but `pids` belongs to the loop of the server."""

    def __init__(self, name: str, root: Path, *, idle_seconds: float, cold_seconds: float) -> None:
        self.name = name
        self.root = root
        self.home = root / "home"
        self.socket = root / "api.sock"  # /.sprite/api.sock over there
        self.id = f"sprite-{uuid.uuid4()}"
        self.status = "cold"
        self.faults = Faults()
        self.labels: list[str] = []
        self.url_auth = "sprite"
        self.created = self.updated = self.active = time.time()
        self.processes: dict[str, Process] = {}
        self.tasks: dict[str, float] = {}  # what keeps it awake, and until when
        self.cuts: set[Callable[[], None]] = set()  # each ends a connection, without a goodbye
        self.wakes = 0
        self._idle_seconds = idle_seconds
        self._cold_seconds = cold_seconds
        self.home.mkdir(parents=True)
        (root / "tmp").mkdir()

    def environment(self) -> dict[str, str]:
        """What a command finds in its environment. The directory of tmux is its own: so are its servers then."""
        return {
            "PATH": f"{self.home}/.local/bin:{os.environ.get('PATH', '/usr/bin:/bin')}",
            "HOME": str(self.home),
            "USER": "sprite",
            "LANG": "C.UTF-8",
            "TMUX_TMPDIR": str(self.root / "tmp"),
        }

    def resolved(self, path: str, directory: str = "") -> Path:
        """A path of the API on this machine; only the home has another name here."""
        whole = Path(os.path.normpath(os.path.join("/", directory or "/home/sprite", path or ".")))
        with contextlib.suppress(ValueError):
            return self.home / whole.relative_to("/home/sprite")
        return whole

    def told(self) -> dict[str, object]:
        """As the API shows it."""
        return {
            "id": self.id,
            "name": self.name,
            "status": self.status,
            "version": VERSION,
            "environment_version": VERSION,
            "url": f"https://{self.name}-abcd.sprites.app",
            "url_settings": {"auth": self.url_auth},
            "organization": "test-org",
            "labels": self.labels,
            "created_at": as_time(self.created),
            "updated_at": as_time(self.updated),
            "last_running_at": as_time(self.active),
            "last_warming_at": None,
        }

    # awake and asleep

    def touch(self) -> None:
        """Something happened."""
        self.active = time.time()

    async def wake(self, others_running: int, limit: int | None) -> None:
        """Whatever reaches the machine itself wakes it."""
        if self.status != "running":
            await asyncio.sleep(self.faults.wake_seconds)
            if limit is not None and others_running >= limit:
                body = {"error": "concurrent_sprite_limit_exceeded", "limit": limit, "retry_after_seconds": 1}
                raise Refused(429, {**body, "current_count": others_running}, {"Retry-After": "1"})
        if self.status != "running":
            self.status = "running"
            self.wakes += 1
            self._signal(signal.SIGCONT)
        self.touch()

    def tick(self) -> None:
        """Fall asleep, or deeper, when it is time."""
        now = time.time()
        self.tasks = {name: until for name, until in self.tasks.items() if until > now}
        if self.tasks or any(process.attached for process in self.processes.values()):
            self.touch()
        idle = now - self.active
        if self.status == "running" and idle > self._idle_seconds:
            self.sleep()
        elif self.status == "warm" and idle > self._cold_seconds:
            self.sleep(cold=True)

    def sleep(self, *, cold: bool = False) -> None:
        """Stop every process where it is; or lose the memory, and so all of them. Connections die of either."""
        for cut in list(self.cuts):
            cut()
        self._signal(signal.SIGKILL if cold else signal.SIGSTOP)
        if cold:
            self.tasks.clear()
        self.status = "cold" if cold else "warm"

    def destroy(self) -> None:
        """End all that runs on it."""
        self.sleep(cold=True)

    def _signal(self, number: signal.Signals) -> None:
        done: set[int] = set()
        while new := self.pids() - done:  # until none has escaped by starting another
            for pid in new:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, number)
            done |= new

    def pids(self) -> set[int]:
        """The processes that are the sprite's own."""
        mark = b"\0HOME=" + os.fsencode(self.home) + b"\0"
        parents: dict[int, int] = {}
        found = {int(process.id) for process in self.processes.values()}
        for entry in Path("/proc").iterdir():
            with contextlib.suppress(OSError, ValueError, IndexError):
                pid = int(entry.name)
                state, parent = (entry / "stat").read_text().rpartition(")")[2].split()[:2]
                if state in "ZX":
                    continue
                parents[pid] = int(parent)
                if mark in b"\0" + (entry / "environ").read_bytes():
                    found.add(pid)
        found &= set(parents)
        while more := {pid for pid, parent in parents.items() if parent in found} - found:
            found |= more
        return found


MACHINE = web.RequestKey("machine", Machine)  # of a request that is about one
