"""The true Claude Code in a pool: its own dialogs, its hooks and its record, against a model on loopback."""

from __future__ import annotations

import json

import pytest

from fleet.model.states import TaskState
from tests.support.model_server import ModelServer, script
from tests.support.pools import Pools, a_person_with_pools
from tests.support.real_coders import NAMES, a_model, coders_path

__all__ = ["a_model", "a_person_with_pools"]
pytestmark = pytest.mark.real_coders


@pytest.fixture(name="programs", scope="module")
def the_programs() -> str:
    """Where the true coders are, asked before the home is another."""
    return coders_path()


def test_a_dispatch_to_claude(programs: str, pools: Pools, model: ModelServer) -> None:
    """Its questions are answered, 20 kB arrive, its window tells what it does, its end is a receipt with its tokens."""
    for name in NAMES:
        pools.env.pop(name, None)
    path = f"{programs}:{pools.env['PATH']}"
    pools.begin(model="claude-haiku-4-5")
    pools.program.unlink()
    pools.set_env("PATH", path)
    pools.set_env("ANTHROPIC_BASE_URL", model.url())
    pools.set_env("ANTHROPIC_API_KEY", "sk-ant-api03-test-key-abcdefghij1234567890")
    (pools.user / ".claude.json").write_text(json.dumps({"hasCompletedOnboarding": True, "theme": "dark"}))
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
    assert "é" * 10_000 in asked[0]
