"""Run specs with ssh workers, as a person runs them: the seed's own worker, and two that can do different things."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.support.away import reach
from tests.support.cli import Cli
from tests.support.sshd import Sshd, sshd

CODEWHALE = """#!/bin/sh
echo "codewhale $1 in $(pwd) as $CODEWHALE_PROFILE"
echo plan >"$FLEET_ARTIFACT_DIR/PLAN_AND_STATUS.md"
"""


@pytest.fixture(scope="module")
def server() -> Iterator[Sshd]:
    """A machine that takes the variable of the seed's example."""
    with sshd(options={"AcceptEnv": "CODEWHALE_PROFILE"}) as server:
        yield server


@pytest.fixture
def cli(tmp_path: Path, server: Sshd) -> Cli:
    """A person with a home, whose coder is a program that is only over there."""
    cli = Cli(tmp_path)
    cli.env |= {"XDG_RUNTIME_DIR": str(server.directory), "CODEWHALE_PROFILE": "night"}
    cli.ok("init")
    cli.home.toml.write_text('[coders.codewhale]\nargv = ["codewhale", "exec", "{prompt}"]\n')
    return cli


def worker(server: Sshd, directory: Path, name: str = "builder-1", **fields: Any) -> dict[str, Any]:
    """The example of the seed, at the address of the server."""
    host = reach(server, directory, env_allowlist=["CODEWHALE_PROFILE"])
    host["codewhale_binary"] = str(directory / "codewhale")
    del host["agent_binary"]
    (directory / "codewhale").write_text(CODEWHALE)
    (directory / "codewhale").chmod(0o755)
    return {
        "id": name,
        "name": "Builder 1",
        "host": host,
        "capabilities": ["local", "linux", "tests"],
        "max_concurrent_tasks": 1,
    } | fields


def test_the_worker_of_the_seed(cli: Cli, server: Sshd, tmp_path: Path) -> None:
    """It runs unchanged: its program in the place of the coder's, in its directory, with the variable passed on."""
    far = tmp_path / "far"
    task = {"id": "audit", "coder": "codewhale", "instructions": "look", "worker": {"capabilities": ["tests"]}}
    spec = {"name": "seed", "workers": [worker(server, far)], "tasks": [task, {"id": "say", "command": "pwd"}]}
    (cli.cwd / "spec.json").write_text(json.dumps(spec))
    told = json.loads(cli.ok("run", "spec.json", "--json").out)
    assert told["exit_code"] == 0
    uid = next(each["task"] for each in told["tasks"] if each["id"] == "audit")
    assert f"codewhale exec in {far} as night" in cli.ok("logs", uid).out
    seen = json.loads(cli.ok("inspect", uid, "--json").out)
    assert (seen["host"], seen["worker"]) == (f"{told['run']['id']}/builder-1", "builder-1#1")
    assert cli.ok("task", uid, "plan").out == "plan\n"


def test_each_task_goes_to_who_can_do_it(cli: Cli, server: Sshd, tmp_path: Path) -> None:
    """Two workers of a run, each with one capability: tasks that need it run there, and nowhere else."""
    workers = [worker(server, tmp_path / name, name, capabilities=[name]) for name in ("red", "blue")]
    tasks = [
        {"id": f"t-{n}-{name}", "command": "pwd", "worker": {"capabilities": [name]}}
        for n in (1, 2)
        for name in ("red", "blue")
    ]
    (cli.cwd / "spec.json").write_text(json.dumps({"name": "two", "workers": workers, "tasks": tasks}))
    told = json.loads(cli.ok("run", "spec.json", "--json").out)
    for task in told["tasks"]:
        colour = task["id"].rpartition("-")[2]
        assert str(tmp_path / colour) in cli.ok("logs", task["task"]).out
