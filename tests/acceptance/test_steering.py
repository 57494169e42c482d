"""What people decide and what bounds a task, on the command line: restart, interrupt, stop, set, why, show, status."""

from __future__ import annotations

import json
import re

from fleet.model.states import TaskState
from fleet.model.task import NewTask
from fleet.testing.audit import audit
from tests.support.cli import Cli
from tests.support.session_host import until


def play(cli: Cli, *steps: dict[str, object], terms: tuple[str, ...] = (), **settings: object) -> str:
    """A task whose agent does these steps; run until nothing is left to do."""
    for name, value in {"backoff_seconds": 0, "max_attempts": 2, **settings}.items():
        cli.ok("config", "set", f"supervisor.{name}={json.dumps(value)}")
    uid = cli.add("work", "--coder", "scripted", "-d", f"\n@@scripted {json.dumps(steps)}")
    if terms:
        cli.ok("task", uid, "set", *terms)
    drain(cli)
    return uid


def drain(cli: Cli) -> None:
    """Let a supervisor do what there is to do."""
    assert cli.run("run", "--drain", "-q").code in (0, 1, 3)  # by what became of the tasks


def test_a_budget_that_is_exceeded_waits_and_is_raised(cli: Cli) -> None:
    """The task says what it used and what it may; a person raises the budget and lets it go on."""
    terms = ("budget_tokens=99", "budget_pause=true")
    uid = play(cli, {"usage": [40, 60, 500, 250_000]}, {"tool": "Read"}, terms=terms)
    shown = cli.ok("show", uid).lines
    assert "terms:      budget_tokens=99, budget_pause=true" in shown
    assert any(re.fullmatch(r"used:       100 tokens, 500 cached, 1 tool call, \$0.2500, \d+s", line) for line in shown)
    assert "attempts:   0 of 2 spent in 1 session; raised to a person" in shown
    found = cli.json("why", uid)
    assert (found["classification"], found["last"]["outcome"]) == ("needs-human", "budget")
    assert found["action"] == (f"fleet task {uid} set budget_tokens=N, then fleet restart {uid}, or fleet stop {uid}")
    done = cli.run("restart", uid)
    assert (done.code, done.err.splitlines()) == (
        1,
        [
            f"error: task {uid}: its budget of 99 tokens is used up",
            f"hint: raise it: fleet task {uid} set budget_tokens=N",
        ],
    )
    cli.ok("task", uid, "set", "budget_tokens=1000")
    assert cli.ok("restart", uid).lines == [f"Restarted {uid}: it is queued again"]
    drain(cli)
    assert cli.json("why", uid)["state"] == "completed"
    assert cli.json("show", uid)["data"][0]["fleet"]["usage"]["output_tokens"] == 120
    tail = cli.ok("ledger", "tail", "-n", "50").out
    assert "alert.raised        budget_exceeded: it" in tail
    assert "alert.raised        needs_human: budget: it" in tail


def test_the_last_attempt_is_spent(cli: Cli) -> None:
    """Status counts it, why says that a person must force another, and force gives it one."""
    uid = play(cli, {"end": "transient"})
    counts = cli.json("status")["counts"]
    assert (counts["failed"], counts["escalated"], counts["transport_failed"]) == (1, 1, 1)
    assert f"  what may be done: fleet why {uid}" in cli.ok("status").lines
    found = cli.json("why", uid)
    assert (found["classification"], found["attempts_used"], found["attempts_left"]) == ("needs-human", 2, 0)
    assert found["action"] == f"fleet restart {uid} --force"
    refused = cli.run("restart", uid)
    assert (refused.code, "no attempt left (2 of 2 are spent)" in refused.err) == (1, True)
    cli.ok("restart", uid, "--force")
    counts = cli.json("status")["counts"]
    assert (counts["restarted"], counts["escalated"], counts["queued"]) == (1, 0, 1)
    assert "  restarted 1     escalated 0     interrupted 0   stale 0" in cli.ok("status").lines


def test_what_must_not_run_twice(cli: Cli) -> None:
    """It runs once; what may be done says so."""
    uid = play(cli, {"end": "transient"}, terms=("retry_safe=false",))
    text = cli.ok("why", uid).out
    assert "attempts:  1 used, 1 left, 1 session; not safe to run twice\n" in text
    assert f"you may:   fleet restart {uid} --force\n" in text
    assert "terms:      retry_safe=false" in cli.ok("show", uid).lines


def test_asking_without_a_supervisor_says_so(cli: Cli) -> None:
    """A wish is recorded, with who asked; that nobody is there to carry it out is told beside it."""
    cli.ok("config", "set", "supervisor.coder=command")
    uid = cli.add("wait", "-d", "sleep 60")
    cli.ok("run", "--detach")
    until(lambda: cli.json("show", uid)["data"][0]["fleet"]["state"] == "running", "an agent")
    cli.ok("run", "stop")
    done = cli.ok("interrupt", f"{uid}.1", "--reason", "wrong branch")
    assert done.lines == [f"Interrupting {uid}: its supervisor has been asked"]
    assert done.err == "no supervisor is running: it is done as soon as one is, `fleet run`\n"
    assert cli.json("status")["counts"]["stale"] == 1
    drain(cli)
    counts = cli.json("status")["counts"]
    assert (counts["blocked"], counts["interrupted"], counts["stale"]) == (1, 1, 0)
    assert "it waits for a person (interrupted): wrong branch" in cli.ok("why", uid).out


def test_stop_takes_one_of_three(cli: Cli) -> None:
    """A task, a run or everything; a run that is not there is not found."""
    for words in ((), ("x", "--all"), ("x", "--run", "r"), ("--all", "--run", "r")):
        assert cli.run("stop", *words).err.startswith("error: give tasks, --run R, or --all")
    done = cli.run("stop", "--run", "nightly")
    assert (done.code, done.err) == (4, "error: no run `nightly`\nhint: `fleet runs` lists them\n")


def test_several_are_steered_at_once(cli: Cli) -> None:
    """Each is done by itself: what cannot be done is told, the others are done all the same, and the code says so."""
    one, two = cli.add("one"), cli.add("two")
    done = cli.run("stop", one, "nope", two)
    assert (done.code, done.lines) == (4, [f"Stopped {one}: one", f"Stopped {two}: two"])
    assert done.err == "error: no task `nope`\nhint: `fleet tasks --status all` lists them\n"
    assert [task["state"] for task in cli.json("restart", one, two)] == ["queued", "queued"]
    done = cli.run("interrupt", one, two)
    assert (done.code, done.out, done.err.count("error: ")) == (1, "", 2)
    done = cli.run("stop", one, "nope", "--json")
    assert (done.code, [task["id"] for task in json.loads(done.out)]) == (4, [one])
    assert json.loads(done.err)["exit_code"] == 4


def test_what_is_skipped_for_another_is_not_refused(cli: Cli) -> None:
    """A task and one that needs it are stopped by one command, in either order."""
    for turned in (False, True):
        first = cli.add("first")
        second = cli.add("second", "--needs", first)
        done = cli.ok("stop", *([second, first] if turned else [first, second]))
        assert len(done.lines) == 2
        assert [cli.json("show", uid)["data"][0]["fleet"]["state"] for uid in (first, second)] == ["cancelled"] * 2


def test_a_stop_that_is_killed_half_way_has_done_what_it_said(cli: Cli) -> None:
    """What it told of is stopped, the ledger is whole, and to say the same again stops the rest."""
    cli.ok("init")
    with cli.store() as store:
        made = store.submit([NewTask(title=f"task {n}") for n in range(900)], by="ana").result()
    with cli.started("stop", "--all") as process:
        assert process.stdout is not None
        told = process.stdout.read(4096).decode().splitlines()[:-1]
        process.kill()
    assert told
    with cli.store() as store:
        assert all(store.task(line.split()[1].rstrip(":")).state is TaskState.CANCELLED for line in told)
        audit(store)
        left = store.counts().get("queued", 0)
    assert len(cli.ok("stop", "--all").lines) == left < len(made)
    with cli.store() as store:
        assert store.counts()["cancelled"] == len(made)
        audit(store)
