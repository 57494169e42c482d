"""The true claude and codex in a pool: their own dialogs, hooks and records, against a model on loopback."""

from __future__ import annotations

import json

import pytest

from fleet.model.states import TaskState
from fleet.model.task import Task
from tests.support.model_server import ModelServer, script
from tests.support.pools import Pools, a_person_with_pools
from tests.support.real_coders import CODEX_CONFIG, NAMES, a_model, coders_path

__all__ = ["a_model", "a_person_with_pools"]
pytestmark = pytest.mark.real_coders


@pytest.fixture(name="programs", scope="module")
def the_programs() -> str:
    """Where the true coders are, asked before the home is another."""
    return coders_path()


def begin(pools: Pools, programs: str, **settings: str) -> None:
    """A pool of the true program, with nothing of the user's."""
    for name in NAMES:
        pools.env.pop(name, None)
    path = f"{programs}:{pools.env['PATH']}"
    pools.begin(**settings)
    pools.program.unlink()
    pools.set_env("PATH", path)


def use_codex(pools: Pools, url: str) -> None:
    """Let codex talk to a model."""
    pools.set_env("OPENAI_API_KEY", "sk-test")
    config = pools.user / ".codex" / "config.toml"
    config.parent.mkdir()
    config.write_text(CODEX_CONFIG.format(url=url))


def test_a_dispatch_to_claude(programs: str, pools: Pools, model: ModelServer) -> None:
    """Its questions are answered, 20 kB arrive, its window tells what it does, its end is a receipt with its tokens."""
    begin(pools, programs, model="claude-haiku-4-5")
    pools.set_env("ANTHROPIC_BASE_URL", model.url())
    pools.set_env("ANTHROPIC_API_KEY", "sk-ant-api03-test-key-abcdefghij1234567890")
    (pools.user / ".claude.json").write_text(json.dumps({"hasCompletedOnboarding": True, "theme": "dark"}))
    dispatch_and_follow(pools, model)


def test_a_dispatch_to_codex(programs: str, pools: Pools, model: ModelServer) -> None:
    """The same, whose own words, record and questions are others."""
    begin(pools, programs, coder="codex")
    use_codex(pools, model.url())
    task = dispatch_and_follow(pools, model)
    with pools.store() as store:
        (session,) = store.sessions(task=task.uid)
    assert session.usage.tool_calls == 2


def test_codex_whose_turn_fails(programs: str, pools: Pools, model: ModelServer) -> None:
    """No hook tells of it; its own record does, and with it the reason."""
    begin(pools, programs, coder="codex")
    use_codex(pools, model.url("401"))
    done = pools.ok("dispatch", "--repo", "kite", "--command", "say hi")
    task = pools.until_task(done.lines[1].split()[1], TaskState.BLOCKED)
    assert task.block is not None
    assert "401 Unauthorized" in task.block.text


def dispatch_and_follow(pools: Pools, model: ModelServer) -> Task:
    """A task from its dispatch to its receipt."""
    gate = pools.path / "gate"
    waits = f"python3 -c \"import os, time\nwhile not os.path.exists('{gate}'): time.sleep(0.05)\""
    text = f'fix `it`; "now"\n{script("echo x >OUT", waits, {"text": "All done."})}\n{"é" * 10_000}'
    done = pools.ok("dispatch", "--repo", "kite", "--command", "-", input=text)
    assert "its hook and its own record have it" in done.err
    assert pools.windows() == ["0 shell", "1 agent:running"]
    gate.touch()
    task = pools.until_task(done.lines[1].split()[1], TaskState.COMPLETED)
    assert task.reason == "All done."
    assert (pools.clone() / "OUT").read_text() == "x\n"
    assert pools.windows() == ["0 shell", "1 agent:completed"]
    with pools.store() as store:
        (session,) = store.sessions(task=task.uid)
    assert session.usage.input_tokens > 0
    asked = [each.text for each in model.asked if each.works]
    assert "é" * 10_000 in asked[-1]
    return task
