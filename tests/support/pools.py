"""A person with a pool: a repository, a home, a tmux of their own, and a program in the place of claude."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import msgspec
import pytest

from fleet import wiring
from fleet.config.load import load
from fleet.config.settings import Settings
from fleet.model.states import TaskState
from fleet.model.task import Task
from fleet.policy.allocation import member_named
from fleet.projections.pools import look
from fleet.supervisor.guard import holders
from tests.support.cli import Cli
from tests.support.programs import need
from tests.support.session_host import until

PROGRAM = Path(__file__).with_name("interactive.py")
SECONDS = 60.0
SETUP = '#!/bin/sh\nset -e\necho "Setting up..."\necho once >>../setups\necho "Ready"\n'


class Pools(Cli):
    """The person. `programs` is first on the PATH of all that is started."""

    def __init__(self, path: Path, sockets: str) -> None:
        super().__init__(path)
        self.user = path / "user"
        self.user.mkdir(exist_ok=True)
        self.programs = path / "bin"
        self.programs.mkdir()
        self.program = self.programs / "claude"
        self.repo = path / "repo"
        self.log = path / "status.log"
        self.env |= {"PATH": f"{self.programs}:{self.env['PATH']}", "TMUX_TMPDIR": sockets}
        self.sockets = Path(sockets) / f"tmux-{os.getuid()}"

    def set_env(self, name: str, value: str) -> None:
        """A variable for all that is started from now on, and for this process."""
        self.env[name] = os.environ[name] = value

    def begin(self, more: str = "", **settings: Any) -> None:
        """A home, a repository with a setup script, and the pool kite; `more` is the end of fleet.toml."""
        self.ok("init")
        self.program.write_text(f'#!/bin/sh\nexec {sys.executable} {PROGRAM} "$@"\n')
        self.program.chmod(0o755)
        self.make_repo(SETUP)
        words = {"repo": str(self.repo), "status_log": str(self.log), "max_size": 2, **settings}
        lines = [f"{name} = {json.dumps(value)}" for name, value in words.items()]
        lines = ["[supervisor]", "grace_seconds = 1", "backoff_seconds = 0", "[pools.kite]", *lines]
        self.home.toml.write_text("\n".join([*lines, more]))

    def make_repo(self, setup: str | None) -> None:
        """The repository that its workers clone."""
        self.git("init", "-q", "-b", "main", str(self.repo), cwd=self.path)
        (self.repo / "README").write_text("kite\n")
        if setup is not None:
            (self.repo / "scripts").mkdir()
            script = self.repo / "scripts" / "dev-setup.sh"
            script.write_text(setup)
            script.chmod(0o755)
        self.git("add", ".")
        self.git("commit", "-qm", "first")

    def git(self, *words: str, cwd: Path | None = None) -> str:
        """A command of git."""
        who = ["-c", "user.name=ana", "-c", "user.email=ana@example.com"]
        argv = ["git", *who, *words]
        return subprocess.run(argv, cwd=cwd or self.repo, check=True, capture_output=True, text=True).stdout

    def knobs(self, **settings: Any) -> None:
        """How the program behaves from now on."""
        (self.user / "knobs.json").write_text(json.dumps(settings))

    def clone(self, worker: str = "kite-1") -> Path:
        """The clone of a worker."""
        return self.home.path / "pools" / worker / "kite"

    def worker(self, name: str = "kite-1") -> dict[str, Any]:
        """What `fleet pool status` says of a worker, without a process for it."""
        settings = load(self.home)
        with contextlib.closing(wiring.open_reads(self.home, settings)) as reads:
            live = reads.sessions(live=True)
        at = partial(wiring.pool_worker, self.home, settings)
        (found,) = asyncio.run(look([member_named(settings, name)], at, live, settings, seconds=SECONDS))
        shown: dict[str, Any] = msgspec.to_builtins(found)
        return shown

    def until_state(self, state: str, name: str = "kite-1") -> dict[str, Any]:
        """Wait until a worker is in a state."""
        until(lambda: self.worker(name)["state"] == state, state, seconds=SECONDS)
        return self.worker(name)

    def task(self, uid: str) -> Task:
        """A task as the ledger has it."""
        with contextlib.closing(wiring.open_reads(self.home, Settings())) as reads:
            return reads.task(uid)

    def until_task(self, uid: str, state: TaskState) -> Task:
        """Wait until a task is in a state."""
        until(lambda: self.task(uid).state is state, f"{uid} {state}", seconds=SECONDS)
        return self.task(uid)

    def tmux(self, *words: str, worker: str = "kite-1") -> str:
        """A command to the tmux server of a worker."""
        name = next(socket.name for socket in self.sockets.iterdir() if socket.name.startswith(f"{worker}-"))
        done = subprocess.run(["tmux", "-L", name, *words], env=self.env, capture_output=True, text=True, check=True)
        return done.stdout

    def windows(self, worker: str = "kite-1") -> list[str]:
        """The names of the windows of a worker, in order."""
        shape = "#{window_index} #{window_name}"
        return self.tmux("list-windows", "-t", "kite-dev", "-F", shape, worker=worker).splitlines()

    def end(self) -> None:
        """End whatever was started."""
        for held in holders(self.home.path) if self.home.path.exists() else []:
            with contextlib.suppress(ProcessLookupError):
                os.kill(held.pid, signal.SIGTERM)
        until(lambda: not self.home.path.exists() or not holders(self.home.path), "the supervisor's end")
        for socket in self.sockets.iterdir() if self.sockets.exists() else []:
            subprocess.run(["tmux", "-L", socket.name, "kill-server"], env=self.env, capture_output=True, check=False)


@pytest.fixture(name="pools")
def a_person_with_pools(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Pools]:
    """A person with nothing yet; at the end nothing of theirs runs."""
    need("tmux", shutil.which("tmux"), "run `sh scripts/tools`")
    sockets = tempfile.mkdtemp(prefix="fp")  # short: a socket's path has few characters
    pools = Pools(tmp_path, sockets)
    for name, value in ({"XDG_RUNTIME_DIR": "", "SPRITE_TOKEN": ""} | pools.env).items():
        if name != "USER":  # who logs in to the test's own sshd
            monkeypatch.setenv(name, value)
    try:
        yield pools
    finally:
        pools.end()
        shutil.rmtree(sockets, ignore_errors=True)
