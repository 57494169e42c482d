"""The same specs on every kind of host: this machine, a real sshd, a sprite. What they come to is the same."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.support.cli import Cli
from tests.support.places import KINDS, Place, a_place

SEEDS = Path(__file__).parents[2] / "examples" / "seeds"


@pytest.fixture(name="place", params=KINDS)
def each_place(request: pytest.FixtureRequest, cli: Cli) -> Iterator[Place]:
    """A worker on each kind of host in turn, described in the spec itself."""
    cli.home.toml.write_text('[supervisor]\ncoder = "scripted"\ngrace_seconds = 1\n')
    cli.env |= {f"GIT_{who}_{what}": "ana@x" for who in ("AUTHOR", "COMMITTER") for what in ("NAME", "EMAIL")}
    with a_place(request.param, cli) as place:
        yield place


def sh(name: str, command: str, **fields: Any) -> dict[str, Any]:
    """A task that is a command, tried once."""
    return {"id": name, "command": command, "retry_policy": {"max_attempts": 1}, **fields}


def git(directory: Path, *words: str) -> str:
    """What git says."""
    identity = ["-c", "user.name=Ana", "-c", "user.email=ana@example.com"]
    done = subprocess.run(["git", "-C", str(directory), *identity, *words], check=True, capture_output=True, text=True)
    return done.stdout.strip()


def test_each_task_comes_to_its_right_receipt(place: Place) -> None:
    """Three steps in order, a verifier's no that the next attempt hears, a timeout, a budget's end, a skip."""
    again = {"max_attempts": 2, "initial_backoff_seconds": 0}
    feedback = 'printf %s "$FLEET_FEEDBACK" >mended.txt'
    tasks = [
        sh("collect", "printf '1\\n2\\n3\\n' >numbers.txt"),
        sh("count", "wc -l <numbers.txt >count.txt", needs=["collect"], expected_artifacts=["count.txt"]),
        sh("tidy", "rm numbers.txt", needs=["count"], scorer={"kind": "file_exists", "path": "count.txt"}),
        {
            "id": "mended",
            "command": feedback,
            "retry_policy": again,
            "scorer": {"kind": "command", "command": "test -s mended.txt || { echo it is empty; exit 1; }"},
        },
        sh("late", "sleep 60", timeout_seconds=1),
        {
            "id": "greedy",
            "instructions": '@@scripted [{"usage": [900, 900, 0, 0]}, {"sleep": 60}]',
            "budget": {"max_tokens": 1000},
            "retry_policy": {"max_attempts": 1},
        },
        sh("unmet", "true", workspace={"required_files": ["gone.txt"]}),
    ]
    code, told = place.run(place.spec(*tasks))
    assert {name: (task["result"], task["source"]) for name, task in told.items()} == {
        "collect": ("pass", None),
        "count": ("pass", None),
        "tidy": ("pass", None),
        "mended": ("pass", None),
        "late": ("timeout", "task"),
        "greedy": ("fail", "task"),
        "unmet": ("skip", None),
    }
    assert code == 1
    assert (place.root / "count.txt").read_text().strip() == "3"
    assert "it is empty" in (place.root / "mended.txt").read_text()
    mended = [one for one in place.cli.json("receipts") if one["task_id"] == "mended"]
    assert [one["result"] for one in mended] == ["partial", "fail", "partial", "pass"]
    assert "more than its budget of 1,000 tokens" in place.cli.ok("why", "greedy").out
    assert "count.txt" in place.cli.ok("artifacts", "count").out


def scripted(name: str, *steps: dict[str, Any], **fields: Any) -> dict[str, Any]:
    """A task whose agent does these steps, tried once."""
    return {
        "id": name,
        "instructions": f"@@scripted {json.dumps(steps)}",
        "retry_policy": {"max_attempts": 1},
        **fields,
    }


def test_every_field_of_a_task_holds(place: Place) -> None:
    """Its variables, files, bounds, setup and budgets: none of them is only of this machine."""
    place.cli.env |= {"PROFILE": "dark", "OTHER": "not passed on"}
    (place.cli.cwd / "given.txt").write_text("given\n")
    for name in ("bound", "repo"):
        (place.root / name).mkdir()
    git(place.root / "repo", "init", "-q")
    git(place.root / "repo", "commit", "-q", "--allow-empty", "-m", "first")
    (place.root / "repo/local.env").write_text("A=1\n")
    passed_on = {"environment": {"required": ["PROFILE"], "allowlist": ["PROFILE"]}}
    fresh = {"isolation": "worktree", "setup": "cat local.env >made", "copy_files": ["local.env"]}
    tasks = [
        sh("variables", 'test "$PROFILE${OTHER-}" = dark', workspace=passed_on),
        sh("unset", "true", workspace={"environment": {"required": ["NOWHERE"], "allowlist": ["NOWHERE"]}}),
        sh("given", "grep given given.txt", input_files=["given.txt"]),
        sh("not-given", "true", input_files=["gone.txt"]),
        sh("bounded", "echo x >out; mkdir in; echo x >in/a", workspace={"root": "bound", "writable_paths": ["in"]}),
        sh("set-up", "grep A=1 made", workspace={"root": "repo"}, **fresh),
        sh("no-report", "true", expected_artifacts=["report"]),
        sh("loud", "while :; do seq 10000; sleep 0.01; done", max_output_mb=1),
        sh("slow", "sleep 60", budget={"max_seconds": 1}),
        scripted("busy", {"tool": "a"}, {"tool": "b"}, {"sleep": 60}, budget={"max_tool_calls": 1}),
        scripted("dear", {"usage": [1, 1, 0, 3_000_000]}, {"sleep": 60}, budget={"max_usd": 1.5}),
        scripted("still", {"say": "hm"}, {"sleep": 60}, budget={"idle_seconds": 1}),
    ]
    code, told = place.run(place.spec(*tasks))
    why = {name: task["reason"] for name, task in told.items()}
    assert (code, {name: task["result"] for name, task in told.items()}) == (
        1,
        {
            **dict.fromkeys(("variables", "given", "set-up"), "pass"),
            **dict.fromkeys(("unset", "not-given"), "skip"),
            **dict.fromkeys(("bounded", "no-report", "loud", "busy", "dear"), "fail"),
            **dict.fromkeys(("slow", "still"), "timeout"),
        },
    ), why
    assert why["bounded"] == "it wrote outside its writable paths: out"
    assert {name for name in why if "budget" in why[name]} == {"slow", "busy", "dear", "still"}
    assert (place.root / "bound/in/a").exists()


def test_work_in_a_worktree_of_a_clone_is_looked_at_and_landed(place: Place, tmp_path: Path) -> None:
    """The repository is cloned there, the work is apart from it; the diff shows it, and landing brings it home."""
    upstream = tmp_path / "shop"
    upstream.mkdir()
    git(upstream, "init", "-q", "-b", "main")
    (upstream / "a.txt").write_text("one\n")
    git(upstream, "add", "-A")
    git(upstream, "commit", "-qm", "first")
    space = {"repository": str(upstream), "branch": "main"}
    writes = "echo two >>a.txt; echo '*.log' >.gitignore; echo noted >run.log"
    one = sh("one", writes, workspace=space, isolation="worktree")
    other = sh("other", "echo new >b.txt", workspace=space, isolation="worktree", needs=["one"])
    code, told = place.run(place.spec(one, other))
    assert (code, {task["result"] for task in told.values()}) == (0, {"pass"}), told
    clone = place.root / "shop"
    assert (clone / "a.txt").read_text() == "one\n"
    assert "+two" in place.cli.ok("task", "one", "diff").out

    landed = json.loads(place.cli.ok("land", "one", "--json").out)
    assert (landed["into"], (clone / "a.txt").read_text()) == (str(clone), "one\ntwo\n")
    assert bool(landed["host"]) is not place.is_here
    assert [each["name"] for each in landed["left"]["kept"]] == ["run.log"]
    aside = landed["left"]["place"].removeprefix(f"{landed['host']}:")
    assert Path(aside, "files", "run.log").read_text() == "noted\n"
    place.cli.ok("land", "other", "--into", str(upstream), "--keep")
    assert (upstream / "b.txt").read_text() == "new\n"
    assert git(upstream, "for-each-ref", "refs/fleet") == ""
    place.cli.ok("worktrees", "drop", "other")
    gone = place.cli.run("task", "other", "diff")
    assert (gone.code, "fleet worktrees restore" in gone.err) == (1, True)
    place.cli.ok("worktrees", "restore", "other")
    assert "b/b.txt" in place.cli.ok("task", "other", "diff").out


def test_the_seeds_own_specs(place: Place) -> None:
    """The specs that the first Fleet documented run there too, each task to its right receipt."""
    place.cli.env["FLEET_SCRIPT"] = "run echo 'src/fleet.rs:1 fine' > $FLEET_ARTIFACT_DIR/report.md"
    files = (
        "Cargo.toml",
        "CHANGELOG.md",
        ".github/AUTHOR_MAP",
        "crates/protocol/src/fleet.rs",
        "crates/tui/src/main.rs",
    )
    for name in (*files, "crates/tui/src/fleet/mod.rs"):
        (place.root / name).parent.mkdir(parents=True, exist_ok=True)
        (place.root / name).write_text("x\n")
    seen: dict[str, tuple[str, str | None]] = {}
    for name, expected in (("local-smoke", 0), ("release-triage", 0), ("code-review-swarm", 3)):
        spec = json.loads((SEEDS / f"001-{name}.json").read_text())
        code, told = place.run(place.spec(*spec.pop("tasks"), **spec), "--coder", "scripted")
        assert code == expected, told
        seen |= {task["id"]: (task["result"], task["scorer"]) for task in told.values()}
    assert seen == {
        "lint": ("pass", None),
        "release-issue-sweep": ("pass", "exit_code"),
        "protocol-review": ("pass", "verifier_prompt"),
        "tui-review": ("partial", "manual"),
    }
    place.cli.ok("verify", "tui-review", "--pass", "--note", "looked at")
    assert place.cli.run("wait", place.cli.json("inspect", "tui-review")["run"]).code == 0
