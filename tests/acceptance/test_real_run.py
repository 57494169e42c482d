"""A run spec with the true Claude Code, against a model on loopback: every kind of end, and its receipt."""

from __future__ import annotations

import json
import subprocess
from typing import Any

import pytest

from tests.support.cli import Cli
from tests.support.model_server import ModelServer, script
from tests.support.real_coders import SLEEPING, a_model, coders_path

__all__ = ["a_model"]
pytestmark = pytest.mark.real_coders

ANSWER = json.dumps({"pass": True, "score": 0.9, "reason": "it says hello"})


@pytest.fixture
def at_work(cli: Cli, model: ModelServer) -> Cli:
    """A home and a repository whose agents are claude, talking to a model of ours."""
    cli.env |= {
        "PATH": f"{coders_path()}:{cli.env['PATH']}",
        "ANTHROPIC_BASE_URL": model.url(),
        "ANTHROPIC_API_KEY": "sk-test",
    }
    cli.home.toml.write_text('[supervisor]\ncoder = "claude"\nmodel = "claude-haiku-4-5"\nisolation = "worktree"\n')
    (cli.cwd / "README.md").write_text("hi\n")
    for words in (("init", "-q"), ("add", "."), ("-c", "user.name=a", "-c", "user.email=a@b", "commit", "-qm", "x")):
        subprocess.run(["git", *words], cwd=cli.cwd, check=True, timeout=30)
    return cli


def claude(name: str, *steps: Any, **fields: Any) -> dict[str, Any]:
    """A task in which claude does these steps."""
    retry = {"max_attempts": 2, "initial_backoff_seconds": 0}
    return {"id": name, "instructions": script(*steps), "retry_policy": retry, **fields}


def ran(at_work: Cli, *tasks: dict[str, Any], code: int) -> dict[str, tuple[str, str | None]]:
    """What came of each task of a run."""
    spec = at_work.cwd.parent / "real.json"
    spec.write_text(json.dumps({"name": "real", "tasks": tasks}))
    done = at_work.run("run", str(spec), "--json")
    assert done.code == code, f"{done.out}{done.err}{at_work.run('receipts').out}"
    return {task["id"]: (task["result"], task["source"]) for task in json.loads(done.out)["tasks"]}


def assert_nothing_leaked(at_work: Cli) -> None:
    """The key is in no file of the home, and the checkout is as it was."""
    files = [file for file in at_work.home.path.rglob("*") if file.is_file()]
    assert files
    assert not [file for file in files if b"sk-test" in file.read_bytes()]
    assert (at_work.cwd / "README.md").read_text() == "hi\n"


def test_a_run_that_passes(at_work: Cli, model: ModelServer) -> None:
    """A pass by a second session that judges it, and a verifier's no that the next attempt hears."""
    question = "Is it so? " + script({"text": ANSWER})
    verified = claude(
        "verified",
        'echo hello >>README.md; echo fine >"$FLEET_ARTIFACT_DIR/report.md"',
        {"text": "Done."},
        expected_artifacts=["log", "report", "receipt"],
        scorer={
            "kind": "all",
            "of": [
                {"kind": "regex_match", "path": "README.md", "pattern": "hello"},
                {"kind": "verifier_prompt", "prompt": question, "threshold": 0.5},
            ],
        },
    )
    again = claude(
        "again",
        "echo try >>tries",
        {"text": "Tried."},
        scorer={"kind": "command", "command": "echo one more line is needed; test $(wc -l <tries) = 2"},
    )
    assert ran(at_work, verified, again, code=0) == {"verified": ("pass", None), "again": ("pass", None)}
    assert "spent in 1 session" in at_work.ok("show", "verified").out, "one that verifies is no attempt"
    receipts, said = at_work.json("receipts"), at_work.ok("receipts").out
    results = [one["result"] for one in receipts if one["task_id"] == "again"]
    assert results == ["partial", "fail", "partial", "pass"], said
    (final,) = (one for one in receipts if one["task_id"] == "verified" and one["final"])
    assert (final["score"], final["coder"], final["model"]) == (0.95, "claude", "claude-haiku-4-5")
    assert {"log", "report", "receipt"} <= {ref["kind"] for ref in final["artifacts"]}
    told_again = [asked for asked in model.asked if "one more line is needed" in asked.text]
    assert told_again, "the second attempt hears what the verifier of the first one said"
    at_work.ok("receipts", "check")
    assert "hello" in at_work.ok("task", "verified", "diff").out
    assert_nothing_leaked(at_work)


def test_a_run_that_fails(at_work: Cli) -> None:
    """A timeout, a budget that is spent, and what needed it."""
    late = claude("late", SLEEPING, {"text": "Never."}, timeout_seconds=3, retry_policy={"max_attempts": 1})
    greedy = claude("greedy", "true", "true", "true", {"text": "Done."}, budget={"max_tool_calls": 1})
    skipped = claude("skipped", {"text": "Never."}, needs=["greedy"])
    assert ran(at_work, late, greedy, skipped, code=1) == {
        "late": ("timeout", "task"),
        "greedy": ("fail", "task"),
        "skipped": ("skip", None),
    }
    at_work.ok("receipts", "check")
    assert_nothing_leaked(at_work)
