"""A fleet of every kind of host: this machine, one over a real sshd, sprites. The commands do not tell them apart."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.cli import Cli
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


@pytest.mark.parametrize("host", ["forge", "mallet", "here"])
def test_a_timeout_kills_on_every_kind(fleet: Cli, tmp_path: Path, host: str) -> None:
    """After -t seconds the process is gone where it ran, and its children with it."""
    note = tmp_path / "pids"
    done = fleet.run("exec", "-t", "2", "--host", host, f"sleep 300 & echo $$ $! >{note}; wait")
    assert (done.code, done.lines[2]) == (1, f"[{host}] TIMEOUT: no end after 2 s; it was killed")
    first, child = map(int, note.read_text().split())
    until(lambda: not lives(first), "the command ended")
    until(lambda: not lives(child), "what it had begun ended")
