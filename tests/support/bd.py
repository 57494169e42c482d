"""Somebody who types bd: to the real program, or to `fleet bd`. Each has a HOME, a git and a queue of its own."""

from __future__ import annotations

import io
import json
import os
import subprocess
import sys
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path
from typing import Any, NamedTuple
from unittest.mock import patch

import msgspec

from tests.support.programs import find_bd, need

ACTOR = "tester"


class Said(NamedTuple):
    """What a call left behind."""

    code: int
    out: str
    err: str

    @property
    def data(self) -> Any:
        """The payload, out of bd's envelope. Anything else than an envelope is a failure."""
        envelope = msgspec.json.decode(self.out)
        assert envelope["schema_version"] == 1, self.out
        return envelope["data"]


def real_bd() -> str:
    """The real bd, or the reason why the test cannot be run."""
    return need("bd", find_bd(), "run `sh scripts/tools`")


def isolated(path: Path) -> dict[str, str]:
    """An environment in which nothing of the user's can be seen or touched."""
    home = path / "user"
    home.mkdir(parents=True, exist_ok=True)
    (home / "gitconfig").write_text(
        f"[user]\nname = {ACTOR}\nemail = {ACTOR}@example.com\n[init]\ndefaultBranch = main\n"
    )
    return {
        "PATH": os.environ.get("PATH", ""),
        "HOME": str(home),
        "USER": ACTOR,
        "XDG_CONFIG_HOME": str(home / "config"),
        "XDG_DATA_HOME": str(home / "data"),
        "XDG_CACHE_HOME": str(home / "cache"),
        "GIT_CONFIG_GLOBAL": str(home / "gitconfig"),
        "GIT_CONFIG_NOSYSTEM": "1",
        "BD_DISABLE_METRICS": "1",
        "BD_DISABLE_EVENT_FLUSH": "1",
        "BD_NON_INTERACTIVE": "1",
        "NO_COLOR": "1",
    }


class RealBd:
    """The real bd in a fresh repository."""

    def __init__(self, path: Path) -> None:
        self.program = real_bd()
        self.path = path / "repository"
        self.path.mkdir(parents=True)
        self.env = isolated(path) | {"BD_JSON_ENVELOPE": "1"}
        git = ["git", "init", "--quiet", str(self.path)]
        subprocess.run(git, env=self.env, check=True, timeout=30)
        made = self.bd("init", "--prefix", "fleet", "--quiet", "--non-interactive", "--skip-hooks", "--skip-agents")
        assert made.code == 0, made

    def bd(self, *words: str) -> Said:
        """Call it."""
        done = subprocess.run(
            [self.program, *words],
            cwd=self.path,
            env=self.env,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )
        return Said(done.returncode, done.stdout, done.stderr)


class OwnQueue:
    """`fleet bd` on Fleet's own queue, within this process: starting one costs more than most calls."""

    def __init__(self, path: Path) -> None:
        self.home = path / "home"
        self.env = isolated(path)
        made = self.fleet("init")
        assert made.code == 0, made

    def bd(self, *words: str, stdin: str = "", actor: str | None = None) -> Said:
        """Call a verb."""
        return self.fleet("bd", *words, *(["--actor", actor] if actor else []), stdin=stdin)

    def fleet(self, *words: str, stdin: str = "") -> Said:
        """Call any command."""
        from fleet.cli import main

        out, err = io.StringIO(), io.StringIO()
        with (
            patch.dict(os.environ, self.env, clear=True),
            patch.object(sys, "stdin", io.StringIO(stdin)),
            redirect_stdout(out),
            redirect_stderr(err),
        ):
            code = main(["--home", str(self.home), *words])
        return Said(code, out.getvalue(), err.getvalue())

    def made(self, *words: str) -> str:
        """Create an issue and give its id."""
        said = self.bd("create", *words, "--silent")
        assert said.code == 0, said
        return said.out.strip()

    def shown(self, issue: str) -> dict[str, Any]:
        """An issue as it stands."""
        (row,) = self.bd("show", issue, "--json").data
        return dict(row)


def fleet_process(env: dict[str, str], cwd: Path, *words: str, stdin: str = "") -> Said:
    """`fleet` as a process of its own, where the exit code and the streams themselves matter."""
    done = subprocess.run(
        [sys.executable, "-m", "fleet", *words],
        cwd=cwd,
        env=env,
        input=stdin,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert "Traceback" not in done.stderr, done.stderr
    return Said(done.returncode, done.stdout, done.stderr)


class Beads:
    """A home whose queue bd keeps, inside a repository that is none of its business."""

    def __init__(self, path: Path, bd: str) -> None:
        self.path = path
        self.home = path / "repository" / "home"
        self.project = path / "project"
        self.project.mkdir()
        self.env = isolated(path)
        self.env["PATH"] = f"{Path(bd).parent}{os.pathsep}{self.env['PATH']}"
        self.git("init", "--quiet", str(path / "repository"))
        self.home.mkdir(mode=0o700)
        assert self.fleet("init").code == 0
        assert self.fleet("config", "set", "queue.source=beads").code == 0

    def git(self, *words: str) -> str:
        """Run git in the repository around the home."""
        cwd = self.path / "repository" if (self.path / "repository").is_dir() else self.path
        done = subprocess.run(["git", *words], cwd=cwd, env=self.env, check=True, capture_output=True, text=True)
        return done.stdout

    def fleet(self, *words: str, stdin: str = "") -> Said:
        """Run fleet from the project's directory."""
        return fleet_process(self.env, self.project, "--home", str(self.home), *words, stdin=stdin)

    def bd(self, *words: str, stdin: str = "") -> Said:
        """Run `fleet bd`."""
        return self.fleet("bd", *words, stdin=stdin)

    def task_json(self, uid: str) -> dict[str, object]:
        """What Fleet keeps beside an issue."""
        return dict(json.loads((self.home / "tasks" / uid / "task.json").read_text()))
