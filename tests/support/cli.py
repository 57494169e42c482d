"""The installed `fleet`, run as a person runs it: a subprocess with a home, a configuration, a directory of its own."""

from __future__ import annotations

import contextlib
import json
import os
import select
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import IO, Any, NamedTuple

from fleet import wiring
from fleet.config.home import Home
from fleet.config.settings import Settings
from fleet.control.control import Control
from fleet.projections.verify import everything
from fleet.store.store import Store

FLEET = (sys.executable, "-m", "fleet")


class Done(NamedTuple):
    """What a command left behind."""

    code: int
    out: str
    err: str

    @property
    def lines(self) -> list[str]:
        """What it printed, a line each."""
        return self.out.splitlines()


class Cli:
    """One person at a shell. Nothing of the real user is seen or touched."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.home = Home(path / "home")
        self.cwd = path / "project"
        self.cwd.mkdir(parents=True, exist_ok=True)
        self.env = {
            "HOME": str(path / "user"),
            "XDG_CONFIG_HOME": str(path / "user" / "config"),
            "FLEET_HOME": str(self.home.path),
            "PATH": os.environ.get("PATH", ""),
            "LC_ALL": "C.UTF-8",
            "TZ": "UTC",
            "USER": "ana",
        }

    def run(
        self,
        *argv: str | bytes,
        cwd: Path | None = None,
        input: str | bytes = b"",
        env: dict[str, str] | None = None,
    ) -> Done:
        """Run a command to its end. A traceback is never an answer."""
        done = subprocess.run(
            [*FLEET, *argv],
            cwd=cwd or self.cwd,
            env={**self.env, **(env or {})},
            input=input.encode() if isinstance(input, str) else input,
            capture_output=True,
            check=False,
            timeout=60,
        )
        out, err = done.stdout.decode(), done.stderr.decode()
        assert "Traceback" not in err, err
        return Done(done.returncode, out, err)

    def ok(self, *argv: str, **how: Any) -> Done:
        """Run a command that must succeed, and say nothing on stderr that begins with `error`."""
        done = self.run(*argv, **how)
        assert done.code == 0, done
        return done

    def json(self, *argv: str, **how: Any) -> Any:
        """What a command says with --json."""
        return json.loads(self.ok(*argv, "--json", **how).out)

    def add(self, *argv: str, **how: Any) -> str:
        """Add a task; its id."""
        created, uid, *_ = self.ok("add", *argv, **how).out.split()
        assert created == "Created"
        return uid.rstrip(":")

    @contextlib.contextmanager
    def started(self, *argv: str) -> Iterator[subprocess.Popen[bytes]]:
        """A command that goes on; it is ended when the test is done with it."""
        ours = signal.signal(signal.SIGINT, signal.default_int_handler)  # a test in the background ignores it
        process = subprocess.Popen(
            [*FLEET, *argv], cwd=self.cwd, env=self.env, stdout=subprocess.PIPE, stderr=subprocess.PIPE, bufsize=0
        )
        signal.signal(signal.SIGINT, ours)
        with process:
            try:
                yield process
            finally:
                if process.poll() is None:
                    process.send_signal(signal.SIGKILL)

    @contextlib.contextmanager
    def store(self) -> Iterator[Store]:
        """The store of this person's home, for what no command does yet."""
        with contextlib.closing(wiring.open_store(self.home, Settings())) as store:
            yield store

    @contextlib.contextmanager
    def control(self) -> Iterator[Control]:
        """The verbs, in this person's name."""
        with contextlib.closing(wiring.open_control(self.home, Settings(), by="ana")) as control:
            yield control

    def events(self) -> int:
        """How long the ledger is."""
        with contextlib.closing(wiring.open_reads(self.home, Settings())) as reads:
            return sum(1 for _ in everything(reads))

    def task_file(self, uid: str, name: str) -> Path:
        """A file of a task."""
        return self.home.task_dir(uid) / name


def line_from(stream: IO[bytes] | None, *, seconds: float = 20) -> str:
    """The next line that a process prints, within a deadline."""
    assert stream is not None
    line = b""
    while not line.endswith(b"\n"):
        ready, _, _ = select.select([stream], [], [], seconds)
        assert ready, f"nothing was printed within {seconds} s, after {line!r}"
        byte = stream.read(1)
        assert byte, f"the output ended after {line!r}"
        line += byte
    return line.decode().rstrip("\n")


def everything_in(directory: Path) -> dict[str, bytes | None]:
    """Every path below a directory, with the content of the files."""
    return {
        str(path.relative_to(directory)): path.read_bytes() if path.is_file() else None
        for path in sorted(directory.rglob("*"))
    }
