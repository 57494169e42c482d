"""A place that tasks run in: this machine, one behind a real sshd, or a sprite of the stand-in."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from tests.support.away import reach
from tests.support.cli import Cli
from tests.support.sprites.server import TOKEN, stand_in
from tests.support.sshd import sshd

KINDS = ("local", "ssh", "sprite")


class Place:
    """Where the tasks of a person work: `root` is the directory there, as this test sees it."""

    def __init__(self, cli: Cli, root: Path, host: dict[str, Any] | None) -> None:
        self.cli = cli
        self.root = root
        self._host = host

    @property
    def is_here(self) -> bool:
        """Whether it is this machine."""
        return self._host is None

    def spec(self, *tasks: dict[str, Any], name: str = "work.json", **fields: Any) -> str:
        """A file with these tasks, for a worker there that can do all that they ask for."""
        able = sorted({word for task in tasks for word in task.get("worker", {}).get("capabilities", ())})
        worker = {"id": "there", "host": self._host, "capabilities": able, "max_concurrent_tasks": 4}
        workers = {} if self.is_here else {"workers": [worker]}
        file = self.cli.cwd / name
        file.write_text(json.dumps({"tasks": tasks, **workers, **fields}))
        return str(file)

    def run(self, spec: str, *words: str) -> tuple[int, dict[str, dict[str, Any]]]:
        """What came of a run: its code, and each task by its id."""
        done = self.cli.run("run", spec, "--json", *words)
        assert done.out, done
        return done.code, {task["id"]: task for task in json.loads(done.out)["tasks"]}


@contextlib.contextmanager
def a_place(kind: str, cli: Cli) -> Iterator[Place]:
    """One of a kind; nothing of it is left afterwards."""
    if kind == "local":
        yield Place(cli, cli.cwd, None)
        return
    if kind == "ssh":
        with sshd() as server:
            cli.env["XDG_RUNTIME_DIR"] = str(server.directory)
            root = cli.path / "far"
            yield Place(cli, root, reach(server, root))
        return
    with stand_in() as sprites:
        cli.env["SPRITES_API_TOKEN"] = TOKEN
        with cli.home.toml.open("a") as file:
            file.write(f'\n[sprites]\nurl = "{sprites.url}"\n')
        root = sprites.sprite("theirs").root / "work"
        root.mkdir()
        host = {"kind": "sprite", "host": "theirs", "working_directory": str(root), "agent_binary": "/bin/sh"}
        yield Place(cli, root, host)
