"""The true Claude Code as a manager agent: it finds Fleet's tools by MCP and uses them, against a model on loopback."""

from __future__ import annotations

import json
import os
import subprocess
import sys

import pytest

from tests.support import homes
from tests.support.model_server import script
from tests.support.real_coders import Bench, a_bench, a_model

__all__ = ["a_bench", "a_model"]
pytestmark = pytest.mark.real_coders
SECONDS = 90


def test_claude_manages_the_fleet_by_its_tools(bench: Bench) -> None:
    """It adds a task and looks at it with the tools of `fleet mcp`; the ledger says that claude-code did it."""
    words = ["-m", "fleet", "--home", str(bench.home.path), "mcp", "--profile", "operate"]
    server = {"command": sys.executable, "args": words}
    add = {"tool": "mcp__fleet__add", "args": {"title": "Write the notes"}}
    steps = script(add, {"tool": "mcp__fleet__status", "args": {}}, {"text": "One task waits."})
    told = json.dumps({"mcpServers": {"fleet": server}})
    argv = ["claude", "-p", steps, "--mcp-config", told, "--strict-mcp-config", "--output-format", "json"]
    argv += ["--allowedTools", "mcp__fleet__add,mcp__fleet__status", "--model", "claude-haiku-4-5"]
    env = {
        **{name: os.environ[name] for name in ("HOME", "PATH")},
        "ANTHROPIC_BASE_URL": bench.url,
        "ANTHROPIC_API_KEY": "sk-test",
        "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
    }
    done = subprocess.run(
        argv,
        cwd=bench.work,
        env=env,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=SECONDS,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert json.loads(done.stdout)["result"] == "One task waits."
    with homes.opened(bench.home) as store:
        (task,) = store.tasks()
    assert (task.title, task.created_by) == ("Write the notes", "mcp:claude-code")
