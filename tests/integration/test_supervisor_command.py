"""`fleet run` as a person runs it: drain, detach, status, stop, and one per home."""

from __future__ import annotations

import json
import os
import re
import signal
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.cli import Cli, line_from
from tests.support.session_host import kill, processes_with, until


@pytest.fixture
def cli(tmp_path: Path) -> Iterator[Cli]:
    """A person with a home that runs shell commands."""
    made = Cli(tmp_path)
    made.env["PYTHONPATH"] = ":".join(filter(None, sys.path))
    made.ok("init")
    made.ok("config", "set", "coder=command", "max_concurrent=2")
    yield made
    for pid in processes_with(os.fsencode(made.home.path)):
        kill(pid)


def state(cli: Cli, uid: str) -> str:
    """Where a task stands."""
    with cli.store() as store:
        return store.task(uid).state.value


def test_drain_does_all_there_is_and_ends(cli: Cli) -> None:
    """`fleet run --drain` completes what is ready and ends with 0."""
    uids = [cli.add(f"task {n}", "-d", "echo done") for n in range(3)]
    done = cli.json("run", "--drain", "-q")
    assert (done["sessions"], done["left_running"]) == (3, 0)
    assert [state(cli, uid) for uid in uids] == ["completed"] * 3


def test_it_tells_what_happens_and_why(cli: Cli) -> None:
    """`fleet run` prints a line for each thing that happens to a task, with its title and why; then the sum."""
    passed = cli.add("Fix the login page", "-d", "echo fixed")
    failed = cli.add("Break it", "-d", "echo no >&2; exit 3")
    asked = cli.add("Choose", "-d", 'fleet ask "Blue or green?"')
    cli.ok("config", "set", "supervisor.max_attempts=1")
    done = cli.run("run", "--drain")
    assert done.out == ""
    assert "\x1b" not in done.err
    assert f"{passed}  started    Fix the login page: command" in done.err
    assert re.search(rf"{passed}  completed  Fix the login page: exit code 0 \(\d+s, unverified\)", done.err)
    assert re.search(rf"{failed}  failed     Break it: exit code 3: no \(\d+s\)", done.err)
    assert f'{asked}  asks       Choose: Blue or green?; fleet answer {asked} "..."' in done.err
    *_, summary, first, second = done.err.splitlines()
    assert summary.startswith("1 task completed, 1 failed, 1 waits for you; 3 sessions")
    assert first == f"  failed: {failed} Break it: exit code 3: no (fleet why {failed})"
    assert second == f"  blocked: {asked} Choose: Blue or green? (fleet show {asked})"
    tail = cli.ok("ledger", "tail", "-n", "50").out
    assert re.search(rf"question: Blue or green\?  \(command in {asked}\.1\)", tail)
    assert re.search(r"supervisor\.joined   began as process \d+ at ", tail)


def test_for_programs_it_prints_the_events(cli: Cli) -> None:
    """`fleet run --json` prints each event of the ledger as a line, and the sum as the last; nothing on stderr."""
    uid = cli.add("Fix it", "-d", "echo fixed")
    done = cli.ok("run", "--drain", "--json")
    *events, last = [json.loads(line) for line in done.lines]
    kinds = [event["event"]["kind"] for event in events if event["event"]["subject"] == uid]
    assert kinds == ["task.claimed", "session.started", "session.ended", "task.settled"]
    assert last["summary"]["completed"] == 1
    assert done.err == ""


def test_a_home_has_one_supervisor(cli: Cli) -> None:
    """A second `fleet run` is refused, and names the process that has the home."""
    with cli.started("run") as first:
        assert "started    supervisor sup-" in line_from(first.stderr)
        second = cli.run("run", "--drain")
        assert second.code == 3
        assert f"supervisor {first.pid} (sup-" in second.err
        assert ") already runs this home" in second.err
        assert "fleet run stop" in second.err
        first.send_signal(signal.SIGTERM)
        assert first.wait(20) == 0


def test_detached_it_can_be_asked_and_stopped(cli: Cli) -> None:
    """`run --detach` returns once it runs; `run status` tells of it; `run stop` ends it and leaves its agents."""
    uid = cli.add("long", "-d", 'until [ -e "$FLEET_TASK_DIR/go" ]; do sleep 0.05; done')
    pid = cli.json("run", "--detach")["pid"]
    until(lambda: state(cli, uid) == "running", "a session")
    status = cli.json("run", "status")
    assert (status["running"], status["pid"], status["sessions"]) == (True, pid, 1)
    assert [(one["pid"], one["sessions"]) for one in status["supervisors"]] == [(pid, 1)]
    assert cli.json("run", "stop") == {"stopped": [pid]}
    assert cli.run("run", "status").code == 1
    assert cli.run("run", "stop").code == 1
    cli.task_file(uid, "go").touch()
    cli.ok("run", "--drain", "-q")
    assert state(cli, uid) == "completed"


def test_one_that_stands_still_is_not_taken_for_one_that_works(cli: Cli) -> None:
    """Whoever looks is told that it gives no sign of life, and for how long; until it goes on."""
    uid = cli.add("long", "-d", "sleep 100")
    pid = cli.json("run", "--detach")["pid"]
    until(lambda: state(cli, uid) == "running", "a session")
    assert cli.json("status")["silent"] == {}
    (lease,) = cli.home.leases.iterdir()
    os.kill(pid, signal.SIGSTOP)
    try:
        lease.write_bytes(b"%020d" % (time.monotonic_ns() - 45 * 10**9))  # it has stood still for so long
        shown = rf"Supervisors: {lease.name} \(no sign of life for 4[5-9]s: fleet doctor\)"
        assert re.search(shown, cli.ok("status").out)
        ready = cli.add("ready", "-d", "true")
        assert re.search(r"is running, with 1 session; it has given no sign of life for 4", cli.ok("run", "status").out)
        told = cli.json("status")
        assert told["supervisors"] == list(told["silent"]) == [lease.name]
        assert told["counts"]["stale"] == 1
        assert cli.json("inspect", uid)["stale_reason"] == "no supervisor attends it"
        for each in (uid, ready):
            why = cli.json("why", each)
            assert f"supervisor {lease.name} ought to see to it and gives no sign of life" in why["summary"]
            assert why["action"] == "fleet doctor"
        checks = [one for one in json.loads(cli.run("doctor", "--json").out)["checks"] if one["what"] == "supervisor"]
        assert [one["level"] for one in checks] == ["ok", "FAIL"]
        assert f"(process {pid}) has given no sign of life for 4" in checks[1]["detail"]
    finally:
        os.kill(pid, signal.SIGCONT)
    until(lambda: cli.json("status")["silent"] == {}, "a sign of life")
    assert cli.json("status")["counts"]["stale"] == 0
    assert cli.json("why", uid)["summary"] == "runs on local#1"
    cli.ok("run", "stop", "--stop-agents")


def test_interrupted_it_leaves_its_agents_and_says_so(cli: Cli) -> None:
    """Ctrl-C ends the supervisor in order; what goes on is told, and the next takes it over."""
    uid = cli.add("long", "-d", 'until [ -e "$FLEET_TASK_DIR/go" ]; do sleep 0.05; done')
    with cli.started("run", "-q") as process:
        until(lambda: state(cli, uid) == "running", "a session")
        process.send_signal(signal.SIGINT)
        assert process.wait(20) == 0
        assert process.stderr is not None
        assert b"the next `fleet run` takes over" in process.stderr.read()
    cli.task_file(uid, "go").touch()
    cli.ok("run", "--drain", "-q")
    assert state(cli, uid) == "completed"


def test_stop_agents_ends_them_and_costs_nothing(cli: Cli) -> None:
    """`run stop --stop-agents` ends the agents too; the task is queued as if nothing had been."""
    uid = cli.add("long", "-d", "sleep 300")
    cli.ok("run", "--detach")
    until(lambda: state(cli, uid) == "running", "a session")
    cli.ok("run", "stop", "--stop-agents")
    assert state(cli, uid) == "queued"
    until(lambda: not processes_with(os.fsencode(cli.home.path)), "the end of all processes")
