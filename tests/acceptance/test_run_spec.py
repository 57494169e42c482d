"""`fleet run SPEC`: a run is submitted, seen through and told of, by this process or by another."""

from __future__ import annotations

import contextlib
import json
import os
import pty
import re
import shutil
import signal
import subprocess
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from fleet.cli.words import span
from tests.support.cli import FLEET, Cli, Done

EXAMPLES = Path(__file__).parents[2] / "examples"
SOON = 60.0


def a_spec(cli: Cli, *tasks: dict[str, Any], name: str = "work.json", **fields: Any) -> str:
    """A file with these tasks."""
    file = cli.cwd / name
    file.write_text(json.dumps({"tasks": tasks, **fields}))
    return str(file)


def sh(name: str, command: str = "true", **fields: Any) -> dict[str, Any]:
    """A task that is a command, tried once."""
    return {"id": name, "command": command, "retry_policy": {"max_attempts": 1}, **fields}


def until(what: Callable[[], Any], name: str) -> Any:
    """Wait for something."""
    deadline = time.monotonic() + SOON
    while not (found := what()):
        assert time.monotonic() < deadline, f"never: {name}"
        time.sleep(0.02)
    return found


def results(done: Done) -> dict[str, str]:
    """What a table says of each task."""
    rows = [line.split() for line in done.lines[1:]]
    return {row[0]: row[1] for row in rows}


@pytest.fixture
def at_work(cli: Cli) -> Cli:
    """A home whose tasks are tried once, and soon."""
    cli.home.toml.write_text('[supervisor]\ncoder = "scripted"\nmax_attempts = 1\ngrace_seconds = 1\n')
    return cli


def test_a_pipeline(at_work: Cli) -> None:
    """The shipped example runs in the order of its needs, and leaves a receipt for each step."""
    shutil.copy(EXAMPLES / "pipeline.yaml", at_work.cwd)
    done = at_work.run("run", "pipeline.yaml")
    assert done.code == 0, done
    assert results(done) == {"collect": "pass", "count": "pass", "tidy": "pass"}
    assert [line.split()[1] for line in done.err.splitlines() if " started: " in line] == ["collect", "count", "tidy"]
    assert "-local-1" in done.err
    run = done.err.split()[1].rstrip(":")
    tasks = at_work.json("tasks", "--status", "all")
    assert {task["state"] for task in tasks} == {"completed"}
    assert at_work.json("status", "--run", run)["counts"]["completed"] == 3


def test_the_example_of_the_readme(at_work: Cli) -> None:
    """It runs as shown: the first step passes by its scorer's word, the second fails twice, the third is skipped."""
    done = at_work.run("run", str(EXAMPLES / "release.yaml"))
    assert (done.code, results(done)) == (1, {"build": "pass", "test": "fail", "publish": "skip"}), done
    assert "file_exists: contents.txt is there" in done.out
    assert done.err.count("test  started: ") == 2


def test_a_failure_is_told_by_the_code(at_work: Cli) -> None:
    """A task that fails makes the code 1; those that need it are skipped, those that do not are run."""
    spec = a_spec(at_work, sh("bad", "exit 3"), sh("after", needs=["bad"]), sh("other"))
    done = at_work.run("run", spec, "--json")
    assert done.code == 1
    told = json.loads(done.out)
    assert {task["id"]: task["result"] for task in told["tasks"]} == {"bad": "fail", "after": "skip", "other": "pass"}
    assert {task["id"]: task["source"] for task in told["tasks"]}["bad"] == "task"
    assert told["run"]["counts"]["task_failed"] == 1


def test_lines_tell_who_began_and_why_others_did_not(at_work: Cli) -> None:
    """A verifier is told apart from work; what was skipped never began, and names what it needs by its spec."""
    scorer = {"kind": "command", "command": "false"}
    unmet = sh("unmet", workspace={"required_files": ["gone"]})
    tasks = (sh("bad", scorer=scorer), sh("next", needs=["bad"]), sh("last", needs=["next"]), unmet)
    done = at_work.run("run", a_spec(at_work, *tasks))
    said = [line.split(maxsplit=1)[1] for line in done.err.splitlines()]
    began = [line.split(":")[0] for line in said if "started:" in line]
    assert began == ["bad  started", "bad  verifier started"]
    reasons = {line.split()[0]: line for line in done.lines}
    assert reasons["next"].endswith("it needs bad, which is failed")
    assert reasons["last"].endswith("it needs next, which was skipped")
    assert "it needs next, which was skipped" in at_work.ok("why", "last").out
    assert at_work.json("inspect", "bad")["kind"] == "verify"
    assert "verifier of attempt 1," in at_work.ok("inspect", "bad").out


def test_writes_of_a_neighbour_are_nobodys(at_work: Cli) -> None:
    """Tasks whose writes are looked at take turns in a directory, so that none is blamed for another's."""
    meeting = "touch {0}.made; for n in 1 2 3 4 5 6 7 8; do test -e {1}.made || sleep 0.05; done"
    tasks = [
        sh(one, meeting.format(one, other), workspace={"writable_paths": [f"{one}.made"]})
        for one, other in (("a", "b"), ("b", "a"))
    ]
    done = at_work.run("run", a_spec(at_work, *tasks))
    assert (done.code, results(done)) == (0, {"a": "pass", "b": "pass"}), done


def test_a_coder_that_is_not_installed(at_work: Cli) -> None:
    """Its task waits for a person, who is told which program is missing where; no attempt is used."""
    with at_work.home.toml.open("a") as settings:
        settings.write('[coders.absent]\nargv = ["no-such-program", "{prompt}"]\n')
    done = at_work.run("run", a_spec(at_work, {"id": "a", "coder": "absent", "instructions": "do it"}))
    assert (done.code, results(done)) == (3, {"a": "blocked"}), done
    why = at_work.ok("why", "a").out
    assert "`no-such-program`, the program of coder absent, is not on local@" in why
    assert "fleet doctor" in why
    assert "0 used" in why


def test_a_bad_spec_changes_nothing(at_work: Cli) -> None:
    """Every problem is told with its path, the code is 2, and nothing is in the queue."""
    spec = a_spec(at_work, sh("a", retries=1), sh("b", needs=["c"]), lables={})
    done = at_work.run("run", spec)
    assert done.code == 2
    assert done.err.splitlines()[1:4] == [
        "  lables: unknown field; did you mean `labels`?",
        "  tasks[0].retries: unknown field; did you mean `retry_policy`?",
        "  tasks[1].needs[0]: no task has the id `c`",
    ]
    told = json.loads(at_work.run("run", spec, "--json").err)
    assert (told["exit_code"], len(told["problems"])) == (2, 3)
    assert at_work.json("status")["total"] == 0
    assert at_work.run("run", "nothing.json").code == 4


def test_the_plan(newcomer: Cli) -> None:
    """--dry-run tells order, coder, place and what each field does; it needs no home and makes none."""
    cli = newcomer
    spec = a_spec(
        cli,
        sh("build", timeout_seconds=60, max_output_mb=2000),
        {"id": "review", "instructions": "look", "needs": ["build"], "worker": {"tool_profile": "read-only"}},
        name="nightly.json",
    )
    done = cli.ok("run", spec, "--dry-run", "--max-workers", "2")
    assert done.lines[0] == "nightly: 2 tasks in 2 levels, at most 2 at once. Nothing was submitted."
    assert "    timeout_seconds: a session is ended after 60 s, with a timeout receipt" in done.lines
    assert "    max_output_mb: a session that prints more than 2,000 MB is ended" in done.lines
    assert any(line.startswith("    worker.tool_profile: enforced") for line in done.lines)
    assert [task["level"] for task in cli.json("run", spec, "--dry-run")["tasks"]] == [1, 2]
    assert not cli.home.path.exists()


def test_only_this_run(at_work: Cli) -> None:
    """Where no supervisor is up, only the tasks of the run are claimed."""
    other = at_work.add("Not now", "--coder", "command", "-d", "touch never")
    at_work.ok("run", a_spec(at_work, sh("mine")))
    assert at_work.json("show", other)["data"][0]["status"] == "open"
    assert not (at_work.cwd / "never").exists()


def test_the_cap(at_work: Cli) -> None:
    """With --max-workers 1 no two tasks of the run are at work at a time."""
    alone = "mkdir busy && sleep 0.2 && rmdir busy"
    done = at_work.run("run", a_spec(at_work, *(sh(f"t{n}", alone) for n in range(3))), "--max-workers", "1")
    assert set(results(done).values()) == {"pass"}


def test_what_waits_for_a_person(at_work: Cli) -> None:
    """A run that can only go on with an answer ends with code 3; after the answer it goes on, and ends well."""
    asks = '@@scripted [{"run": "test -e asked || fleet ask Which?"}, {"run": "touch asked"}]'
    spec = a_spec(at_work, {"id": "ask", "instructions": asks}, sh("after", needs=["ask"]), name="asking.json")
    done = at_work.run("run", spec)
    assert done.code == 3, done
    assert results(done) == {"ask": "blocked", "after": "queued"}
    run = done.err.split()[1].rstrip(":")
    assert at_work.run("wait", run, "-q").code == 3
    at_work.ok("answer", at_work.json("questions")[0]["id"], "That one")
    assert at_work.run("wait", run, "--timeout", "1", "-q").code == 3
    again = at_work.run("run", "--run", run)
    assert (again.code, set(results(again).values())) == (0, {"pass"})


def test_in_the_background(at_work: Cli) -> None:
    """--detach prints the run and leaves it to another process; `fleet wait` tells what came of it."""
    done = at_work.ok("run", a_spec(at_work, sh("a", "sleep 0.5")), "--detach")
    waited = at_work.run("wait", done.out.strip(), "--timeout", "60")
    assert (waited.code, results(waited)) == (0, {"a": "pass"})
    until(lambda: at_work.run("run", "status").code == 1, "the end of its supervisor")


def test_one_task_is_waited_for(at_work: Cli) -> None:
    """`fleet wait` takes a task too: its exit code says whether it passed, failed, or waits for a person."""
    command = ("--coder", "command", "-d")
    good, bad = at_work.add("good", *command, "true"), at_work.add("bad", *command, "exit 3")
    asks, never = at_work.add("asks", *command, "fleet ask Which?"), at_work.add("never", "--needs", bad)
    at_work.ok("task", bad, "set", "max_attempts=1")
    at_work.ok("run", "--detach")
    assert at_work.run("wait", good, "--timeout", "60")[:2] == (0, f"{good} is completed: exit code 0\n")
    assert at_work.run("wait", bad, "--timeout", "60").code == 1
    done = at_work.run("wait", asks, "--timeout", "60")
    assert (done.code, done.out, done.err) == (
        3,
        f"{asks} is blocked: Which?\n",
        f"what may be done: fleet why {asks}\n",
    )
    assert at_work.run("wait", never, "-q").code == 1
    assert json.loads(at_work.run("wait", asks, "--json").out)["state"] == "blocked"
    at_work.ok("run", "stop")
    assert at_work.run("wait", "nope").err.startswith("error: no run or task `nope`\nhint: `fleet runs` and ")


def test_beside_a_supervisor(at_work: Cli) -> None:
    """Where a supervisor is up the run is handed to it, and followed to its end; the lower cap holds."""
    at_work.ok("config", "set", "max_concurrent=1")
    at_work.ok("run", "--detach")
    try:
        alone = "mkdir busy && sleep 0.2 && rmdir busy"
        done = at_work.run("run", a_spec(at_work, *(sh(f"t{n}", alone) for n in range(3))))
        assert (done.code, set(results(done).values())) == (0, {"pass"})
        assert at_work.run("run", "status").code == 0
    finally:
        at_work.ok("run", "stop")


def test_two_runs_at_once(at_work: Cli) -> None:
    """A second run does not wait for the end of the first: it is handed to its supervisor, and outlives it."""
    first = a_spec(at_work, sh("hold", "until test -e go; do sleep 0.05; done"), name="first.json")
    second = a_spec(at_work, sh("b1", "touch go"), sh("b2", "sleep 0.5", needs=["b1"]), name="second.json")
    with at_work.started("run", first) as process:
        until(lambda: at_work.json("status")["counts"]["running"] == 1, "the first run")
        done = at_work.run("run", second)
        assert process.wait(SOON) == 0
    assert (done.code, results(done)) == (0, {"b1": "pass", "b2": "pass"})


def test_interrupted_and_continued(at_work: Cli) -> None:
    """Ctrl-C leaves the agents running and says how to go on; going on, nothing is run twice."""
    spec = a_spec(at_work, sh("a", "echo once >> ran; until test -e go; do sleep 0.05; done"), sh("b", needs=["a"]))
    with at_work.started("run", spec) as process:
        until((at_work.cwd / "ran").exists, "the first task")
        process.send_signal(signal.SIGINT)
        _, err = process.communicate(timeout=SOON)
    assert process.returncode == 130
    found = re.search(r"To go on: (fleet run --run \S+)", err.decode())
    assert found, err
    (at_work.cwd / "go").touch()
    done = at_work.run(*found[1].split()[1:])
    assert (done.code, results(done)) == (0, {"a": "pass", "b": "pass"})
    assert "  a  taken over: " in done.err
    assert (at_work.cwd / "ran").read_text() == "once\n"


def test_a_file_that_is_called_status(at_work: Cli) -> None:
    """`./status` is a file; the bare word asks about the supervisor."""
    (at_work.cwd / "status").write_text(json.dumps(sh("one")))
    assert results(at_work.ok("run", "./status")) == {"one": "pass"}
    assert at_work.run("run", "status").out.startswith("no supervisor is running")


def test_a_secret_is_not_kept(at_work: Cli) -> None:
    """A secret that was pasted into a spec is warned of, and is in no file of the home."""
    secret = "ghp_" + "A1b2" * 9
    done = at_work.run("run", a_spec(at_work, {"id": "a", "instructions": f"log in with {secret}"}))
    assert (done.code, "tasks[0].instructions: looks like a secret" in done.err) == (0, True)
    files = [file for file in at_work.home.path.rglob("*") if file.is_file()]
    assert files
    assert not [file for file in files if secret.encode() in file.read_bytes()]


def test_what_the_agent_is_told(at_work: Cli) -> None:
    """Role, objective, description, instructions, context and the beginning of input files enter the prompt."""
    with at_work.home.toml.open("a") as toml:
        toml.write('[coders.reader]\nargv = ["sh", "-c", "cat > told.txt"]\n')
    (at_work.cwd / "notes.md").write_text("the notes\n")
    (at_work.cwd / "sub").mkdir()
    spec = a_spec(
        at_work,
        {
            "id": "a",
            "coder": "reader",
            "description": "the description",
            "objective": "the objective",
            "instructions": "the instructions",
            "context": ["the context"],
            "worker": {"role": "the-role"},
            "input_files": ["notes.md", "sub"],
        },
    )
    assert at_work.run("run", spec).code == 0
    told = (at_work.cwd / "told.txt").read_text()
    for text in ("description", "objective", "instructions", "context", "notes"):
        assert f"the {text}" in told
    assert "the-role" in told
    assert "- `sub`" in told


def test_found_again(at_work: Cli) -> None:
    """Tasks are found by run, label, tag and metadata; a task has the labels of its run."""
    spec = a_spec(
        at_work,
        sh("a", tags=["fast"], metadata={"class": "release", "n": 3}),
        sh("b", labels={"team": "api"}),
        labels={"team": "web", "milestone": "v1"},
    )
    run = json.loads(at_work.ok("run", spec, "--json").out)["run"]["id"]
    at_work.add("Another")

    def titles(*words: str) -> list[str]:
        return [task["title"] for task in at_work.json("tasks", *words)]

    assert titles("--run", run) == ["a", "b"]
    assert titles("--label", "milestone=v1") == ["a", "b"]
    assert titles("--label", "team=web", "--run", run) == ["a"]
    assert titles("--label", "team=api") == ["b"]
    assert titles("--tag", "fast") == titles("--meta", "class=release") == titles("--meta", "n=3") == ["a"]
    assert titles("--tag", "fast", "--status", "failed") == []
    assert at_work.run("tasks", "--label", "team").code == 2
    assert at_work.run("tasks", "--run", "nothing").code == 4


def test_runs_are_listed(at_work: Cli) -> None:
    """The newest first, those that ended too: its id to go on with, how it stands, what came of its tasks."""
    assert at_work.run("runs") == (0, "", "there are no runs yet; `fleet run SPEC` makes one\n")
    first = json.loads(at_work.run("run", a_spec(at_work, sh("a"), sh("b", "false")), "--json").out)["run"]["id"]
    second = json.loads(at_work.run("run", a_spec(at_work, sh("c"), name="later.json"), "--json").out)["run"]["id"]
    header, newest, oldest = at_work.ok("runs").lines
    assert header.split() == ["RUN", "STATE", "SUBMITTED", "TOOK", "TASKS", "NAME"]
    assert (newest.split()[:2], oldest.split()[:2]) == ([second, "completed"], [first, "completed"])
    assert "1 completed, 1 failed" in oldest
    listed = at_work.json("runs", "--limit", "1")
    assert ([run["id"] for run in listed["runs"]], listed["counts"]["completed"]) == ([second], 2)
    done = at_work.run("status", "--run", "nothing")
    assert done.err == "error: no run `nothing`\nhint: `fleet runs` lists them\n"


def test_inspected(at_work: Cli) -> None:
    """A worker is inspected while it is busy and afterwards; by its task and by its session too."""
    command = "echo at work; until test -e go; do sleep 0.05; done; echo broken >&2; exit 3"
    spec = a_spec(at_work, sh("a", command, objective="the objective", worker={"role": "builder"}))
    with at_work.started("run", spec) as process:
        running = until(lambda: at_work.json("status")["counts"]["running"], "a session")
        worker = at_work.json("inspect", "a")["worker"]
        assert worker.endswith("-local-1")
        until(lambda: "output" in at_work.json("inspect", worker)["heartbeat"]["evidence"], "its words")
        live = at_work.json("inspect", worker)
        assert (running, live["state"], live["stale"], live["receipt"]) == (1, "running", False, None)
        assert (live["objective"], live["role"], live["task_id"]) == ("the objective", "builder", "a")
        (at_work.cwd / "go").touch()
        assert process.wait(SOON) == 1
    ended = at_work.json("inspect", worker)
    assert ended == at_work.json("inspect", live["session"]) == at_work.json("inspect", live["task"])
    assert (ended["state"], ended["task_state"], ended["receipt"]["result"]) == ("exited", "failed", "fail")
    assert "exit code 3" in ended["latest_error"]
    assert ended["latest_event"]["seq"] > live["latest_event"]["seq"]
    assert at_work.run("inspect", "nobody").code == 4
    lines = dict(line.split(maxsplit=1) for line in at_work.ok("inspect", worker).lines)
    assert (lines["worker"], lines["role"]) == (worker, "builder")


def test_stale_and_stopped(at_work: Cli) -> None:
    """A session that nobody attends is counted as stale; `stop --run` cancels what is left of a run and no more."""
    other = at_work.add("Not of the run")
    spec = a_spec(at_work, sh("a", "until test -e go; do sleep 0.05; done"), sh("b", needs=["a"]))
    with at_work.started("run", spec) as process:
        until(lambda: at_work.json("status")["counts"]["running"], "a session")
        status = at_work.json("status")
        assert (status["counts"]["stale"], [run["left"] for run in status["runs"]]) == (0, [2])
        process.kill()
        process.wait()
    run = status["runs"][0]["id"]
    assert at_work.json("status", "--run", run)["counts"]["stale"] == 1
    assert at_work.json("why", "a")["summary"].startswith("its supervisor is gone; its agent may run on")
    assert "no supervisor attends it: fleet run\n" in at_work.ok("show", "a").out
    assert "no supervisor attends what runs" in at_work.ok("tasks").err
    at_work.ok("stop", "--run", run)
    done = at_work.run("run", "--run", run)
    assert (done.code, results(done)) == (1, {"a": "skip", "b": "skip"})
    assert [task["title"] for task in at_work.json("tasks", "--status", "queued")] == ["Not of the run"]
    assert other


def test_on_a_terminal(at_work: Cli) -> None:
    """A person sees what runs where, how many are left, and in the end the table; an agent cannot draw there."""
    draws = json.dumps([{"sleep": 1.5}, {"usage": [10, 20, 0, 1500]}, {"say": "\x1b[2Jdrawn"}])
    spec = a_spec(at_work, {"id": "slow", "instructions": f"@@scripted {draws}"}, sh("next", needs=["slow"]))
    main, side = pty.openpty()
    env = {**at_work.env, "TERM": "xterm", "COLUMNS": "120"}
    process = subprocess.Popen([*FLEET, "run", spec], cwd=at_work.cwd, env=env, stdin=side, stdout=side, stderr=side)
    os.close(side)
    seen = b""
    with contextlib.suppress(OSError):  # the other end is closed
        while data := os.read(main, 65536):
            seen += data
    os.close(main)
    assert process.wait(SOON) == 0
    text = seen.decode()
    assert "-local-1" in text
    assert "2 tasks, 2 left: 1 queued, 1 running" in text
    (run,) = set(re.findall(r"work-\w+", text))
    (slow, _) = at_work.json("wait", run)["tasks"]
    assert slow["duration_ms"] >= 1500
    assert re.search(rf"slow +pass +- +{span(slow['duration_ms'])} +30 +\$0\.0015 +.*drawn", text)
    assert "\x1b[2J" not in text


def test_coder_and_model_of_the_command_line(at_work: Cli) -> None:
    """--coder and --model are for tasks that name none, and stay with them whoever runs them."""
    spec = a_spec(at_work, {"id": "a", "instructions": "x"}, {"id": "b", "instructions": "x", "model": "own"}, sh("c"))
    assert at_work.run("run", spec, "--coder", "scripted", "--model", "large").code == 0
    found = {name: at_work.json("inspect", name) for name in "abc"}
    assert {name: (each["coder"], each["model"]) for name, each in found.items()} == {
        "a": ("scripted", "large"),
        "b": ("scripted", "own"),
        "c": ("command", None),
    }
    assert at_work.run("run", spec, "--coder", "scriptd").code == 2


def test_a_secret_in_a_title(at_work: Cli) -> None:
    """`fleet add` keeps no secret either, and says so."""
    done = at_work.ok("add", "Log in", "-d", "password=hunter22 it is")
    assert "warning: what looks like a secret is not kept" in done.err
    uid = done.out.split()[1].rstrip(":")
    assert "password=<redacted> it is" in at_work.ok("show", uid).out
