"""A fleet of every kind of host: this machine, one over a real sshd, sprites. The commands do not tell them apart."""

from __future__ import annotations

import json
import os
import pty
import re
import select
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.cli import FLEET, Cli
from tests.support.machines import declare, furnish, local_host, several, sprites, ssh_host, table
from tests.support.session_host import lives, until
from tests.support.sprites.machine import Machine
from tests.support.sprites.server import StandIn, stand_in
from tests.support.sshd import Sshd

SCREEN = """\
Fleet Status (3 hosts)
==========================================================================================
Host (API Name)                                   Status        Resp    ms        Claude
------------------------------------------------------------------------------------------
agents-synth-01 (forge)                           up            yes     N         yes
dev-workspace-01 (mallet)                         warm          yes     N         yes
here                                              up            yes     N         yes
------------------------------------------------------------------------------------------
Total: 3 | Healthy: 3 | Unhealthy: 0
"""
NAMES = ("forge", "here", "mallet")


@pytest.fixture(scope="module")
def sshd() -> Iterator[Sshd]:
    with several(1) as found:
        yield found


@pytest.fixture(scope="module")
def provider() -> Iterator[StandIn]:
    with stand_in() as found:
        yield found


@pytest.fixture
def sprite(provider: StandIn) -> Machine:
    """A sprite that sleeps."""
    machine = provider.sprite("mallet")
    furnish(machine)
    machine.status = "warm"
    return machine


@pytest.fixture
def fleet(cli: Cli, sshd: Sshd, provider: StandIn, sprite: Machine, tmp_path: Path) -> Cli:
    """Somebody with a host of each kind, a coder on all of them, and sprites that are woken to be seen."""
    assert sprite.status == "warm"
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "claude").write_text("#!/bin/sh\n")
    (tmp_path / "bin" / "claude").chmod(0o755)
    cli.env["PATH"] = f"{tmp_path / 'bin'}:{cli.env['PATH']}"
    over_ssh = ssh_host(sshd, "agents-synth-01", api_name="forge", agent_binary="sh")
    declare(
        cli,
        over_ssh,
        table({"name": "dev-workspace-01", "kind": "sprite", "api_name": "mallet"}),
        local_host("here"),
        server=sshd,
    )
    sprites(cli, provider)
    cli.ok("config", "set", "status.wake=true")
    return cli


def answers(lines: list[str]) -> list[str]:
    """The answers of the hosts, each with what it printed, by name."""
    return sorted(re.findall(r"\[.*\](?:.*\n)(?:  .*\n)*", "\n".join(lines) + "\n"))


def test_status(fleet: Cli) -> None:
    """The columns stand where they stand for sprites; a sprite has its provider's word, the others up or down."""
    screen = re.sub(r"(?m)^(.{72})\d+ *", lambda row: row[1] + "N".ljust(10), fleet.ok("status").out)
    assert screen == SCREEN


def test_exec(fleet: Cli) -> None:
    """The same lines for every kind."""
    head, _, *told, last = fleet.ok("exec", "echo $((6 * 7))").lines
    assert (head, last) == ("Executing on 3 hosts: echo $((6 * 7))...", "Complete: 3/3 succeeded")
    assert answers(told) == [f"[{name}] OK\n  42\n" for name in NAMES]


def test_update(fleet: Cli) -> None:
    """A recipe runs on every kind, with the versions."""
    fleet.ok("config", "set", "updates.tool.command=true", "updates.tool.version=echo 1.0")
    head, *told, last = fleet.ok("update", "tool").lines
    assert (head, last) == ("Updating 'tool' on all hosts...", "Complete: 3/3 succeeded")
    assert answers(told) == [f"[{name}] OK\n  1.0 (as before)\n" for name in NAMES]


def test_health_and_report(fleet: Cli, sprite: Machine) -> None:
    """One line for all; whom nobody finds is told beside the others; the report has all three."""
    assert fleet.ok("health").out == "OK: All 3 hosts healthy\n"
    assert [each["kind"] for each in json.loads(fleet.ok("report").out)["sprites"]] == ["ssh", "sprite", "local"]
    sprite.faults.vanished = True
    try:
        done = fleet.run("health")
    finally:
        sprite.faults.vanished = False
    assert (done.code, done.out) == (1, "UNHEALTHY hosts:\n  mallet: api:not_found\n")


def test_what_a_person_should_see_to(fleet: Cli, sprite: Machine) -> None:
    """A login that has expired and a missing coder are told on stderr; the machine answers, so it is healthy."""
    (sprite.home / ".claude").mkdir(exist_ok=True)
    login = {"claudeAiOauth": {"accessToken": "hunter2", "expiresAt": 1748276587173}}
    (sprite.home / ".claude" / ".credentials.json").write_text(json.dumps(login))
    (sprite.home / ".local" / "bin" / "claude").unlink()
    done = fleet.ok("health", "--host", "mallet", env={"PATH": "/usr/bin:/bin"})
    assert done.out == "OK: 1 sprite healthy\n"
    assert "mallet: the login of claude has expired\n" in done.err
    assert "hunter2" not in fleet.ok("report", "--no-probe").out


def test_hosts_by_either_name(fleet: Cli) -> None:
    """What a provider calls a host is accepted by the verbs of hosts too; a word that fits several drains none."""
    assert fleet.ok("hosts", "probe", "mallet").out.startswith("dev-workspace-01: up in ")
    assert [host["name"] for host in fleet.json("hosts", "probe", "*-01")] == ["agents-synth-01", "dev-workspace-01"]
    assert fleet.ok("hosts", "drain", "forge").out.startswith("agents-synth-01 takes no new work")
    for words in (["drain", "*-01"], ["remove", "*-01"]):
        done = fleet.run("hosts", *words)
        assert (done.code, "several hosts are meant: agents-synth-01, dev-workspace-01" in done.err) == (2, True)
    assert fleet.ok("hosts", "remove", "mallet").out.startswith("Removed ")
    assert "mallet" not in fleet.home.toml.read_text()


@pytest.mark.parametrize("host", ["forge", "mallet", "here"])
def test_a_timeout_kills_on_every_kind(fleet: Cli, tmp_path: Path, host: str) -> None:
    """After -t seconds the process is gone where it ran, and its children with it."""
    note = tmp_path / "pids"
    done = fleet.run("exec", "-t", "2", "--host", host, f"sleep 300 & echo $$ $! >{note}; wait")
    assert (done.code, done.lines[2]) == (1, f"[{host}] TIMEOUT: no end after 2 s; it was killed")
    first, child = map(int, note.read_text().split())
    until(lambda: not lives(first), "the command ended")
    until(lambda: not lives(child), "what it had begun ended")


def test_watching_lets_sprites_sleep(fleet: Cli, sprite: Machine, provider: StandIn) -> None:
    """On a terminal the table comes again and again; a sprite that was probed is left alone, one that sleeps too."""
    fleet.ok("status")
    before = len(provider.asked)
    ours, theirs = pty.openpty()
    with subprocess.Popen(
        [*FLEET, "status", "--watch", "--host", "mallet"], env=fleet.env, stdin=theirs, stdout=theirs, stderr=theirs
    ) as process:
        os.close(theirs)
        text = ""
        while text.count("Total:") < 2:
            assert select.select([ours], [], [], 60)[0], text
            text += os.read(ours, 4096).decode()
            if text.count("Total:") == 1:
                sprite.status = "warm"
        process.send_signal(signal.SIGINT)
        process.wait(30)
    os.close(ours)
    assert process.returncode == 130
    assert "running       yes" in text
    assert "asleep; answered" in text
    assert not [path for method, path in provider.asked[before:] if "/exec" in path], "nothing was run on it"
    assert sprite.status == "warm"


def test_interrupting_stops_on_every_kind(fleet: Cli, tmp_path: Path) -> None:
    """Ctrl-C ends the command wherever it runs, and tells so."""
    pids = tmp_path / "pids"
    pids.mkdir()
    with fleet.started("exec", f"touch {pids}/$$; exec sleep 300") as process:
        until(lambda: len(list(pids.iterdir())) == 3, "it began everywhere")
        process.send_signal(signal.SIGINT)
        out, _ = process.communicate(timeout=60)
    assert process.returncode == 130
    told = out.decode().splitlines()[2:]
    assert sorted(line.split()[:2] for line in told[:-1]) == [[f"[{name}]", "STOPPED:"] for name in NAMES]
    assert told[-1] == "Complete: 0/3 succeeded"
    until(lambda: not any(lives(int(file.name)) for file in pids.iterdir()), "it ended everywhere")
