"""The machines in `fleet status`: probed at once, each within its time, and shown as the first Fleet Manager did."""

from __future__ import annotations

import os
import pty
import re
import select
import signal
import socket
import subprocess
import time
from collections.abc import Iterator

import pytest

from tests.support.cli import FLEET, Cli
from tests.support.machines import declare, local_host, several, ssh_host
from tests.support.sshd import Sshd

HEAD = "Host (API Name)                                   Status        Resp    ms        Claude"


@pytest.fixture(scope="module")
def server() -> Iterator[Sshd]:
    with several(2) as found:
        yield found


@pytest.fixture
def claude(cli: Cli) -> Cli:
    """Somebody on whose machine there is a program that is called claude."""
    place = cli.path / "bin"
    place.mkdir()
    (place / "claude").write_text("#!/bin/sh\n")
    (place / "claude").chmod(0o755)
    cli.env["PATH"] = f"{place}:{cli.env['PATH']}"
    return cli


def without_ms(row: str) -> str:
    """A row whose milliseconds are called N; the columns stay where they are."""
    assert row[72:82].strip().isdecimal(), row
    return row[:72] + "N".ljust(10) + row[82:]


def test_the_screen(claude: Cli, server: Sshd) -> None:
    """Title, rule, columns and totals stand where the first manager had them; the exit code is 0."""
    declare(claude, ssh_host(server, "agents-synth-01", 1, api_name="forge"), local_host("here"), server=server)
    done = claude.ok("status")
    first, rule, head, line, *rows, line_too, last = done.lines
    assert (first, rule, head) == ("Fleet Status (2 hosts)", "=" * 90, HEAD)
    assert (line, line_too) == ("-" * 90, "-" * 90)
    assert [without_ms(row) for row in rows] == [
        "agents-synth-01 (forge)                           up            yes     N         yes",
        "here                                              up            yes     N         yes",
    ]
    assert last == "Total: 2 | Healthy: 2 | Unhealthy: 0"
    assert done.err == ""


def test_of_a_team(claude: Cli) -> None:
    """Only its machines are shown, and no work."""
    declare(claude, local_host("agents-a-01"), local_host("agents-b-01"), local_host("dev-a-01"))
    claude.add("some work")
    done = claude.ok("status", "--team", "agents")
    assert done.lines[0] == "Fleet Status (2 hosts (team: agents))"
    assert [row.split()[0] for row in done.lines[4:-2]] == ["agents-a-01", "agents-b-01"]
    assert claude.run("status", "--team", "nobody").code == 4


def test_under_the_work(claude: Cli) -> None:
    """With tasks the work goes first; without hosts it is all there is; a run is shown without machines."""
    uid = claude.add("some work")
    assert "Fleet Status" not in claude.ok("status").out
    declare(claude, local_host("here"))
    lines = claude.ok("status").lines
    assert lines[0].startswith("Fleet: 1 task in ")
    assert lines.index("Fleet Status (1 host)") > lines.index("Supervisors: none is running")
    told = claude.json("status")
    assert (told["total"], told["machines"]["healthy"], told["machines"]["machines"][0]["coder"]) == (1, 1, True)
    assert uid


def test_a_machine_that_is_ill(claude: Cli, server: Sshd) -> None:
    """It is told as such, with the reason; the next look recalls since when; the exit code stays 0."""
    declare(claude, ssh_host(server, "dead-box-01", 9), local_host("here"), server=server)
    rows = claude.ok("status").lines[4:]
    assert rows[0].startswith(
        "dead-box-01                                       down          no      -         -       cannot"
    )
    assert "never answered" in rows[0]
    assert rows[-1] == "Total: 2 | Healthy: 1 | Unhealthy: 1"
    recalled = claude.json("status", "--no-probe", "--host", "dead-*")["machines"][0]
    assert (recalled["status"], recalled["healthy"], recalled["reason"]) == ("down", False, "unresponsive")
    assert recalled["since"] is not None


def test_what_was_never_probed(cli: Cli) -> None:
    """It is unknown, neither well nor ill; and nothing is probed."""
    declare(cli, local_host("here"))
    before = cli.events()
    done = cli.ok("status", "--no-probe")
    assert (
        "here                                              unknown       -       -         -       it was never"
        in done.out
    )
    assert done.lines[-1] == "Total: 1 | Healthy: 0 | Unhealthy: 0 | Unknown: 1"
    assert cli.events() == before


def test_a_missing_coder_is_told(cli: Cli) -> None:
    """The machine answers, so it is healthy; that the coder is missing stands behind its row."""
    declare(cli, local_host("here", agent_binary="no-such-coder"))
    rows = cli.ok("status").lines[4:]
    assert without_ms(rows[0]) == (
        "here                                              up            yes     N         no      "
        "no-such-coder is not found"
    )
    assert rows[-1] == "Total: 1 | Healthy: 1 | Unhealthy: 0"


@pytest.fixture
def black_hole() -> Iterator[int]:
    """A port where connections are taken and nothing is ever said."""
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        listener.listen(5)
        yield listener.getsockname()[1]


def test_nobody_waits_for_the_slowest(claude: Cli, server: Sshd, black_hole: int) -> None:
    """On a terminal the row of a machine that answers is there while another one still hangs; the end has its bound."""
    dead = ssh_host(server, "dark-box-01", 1).replace(f"port = {server.port}", f"port = {black_hole}")
    slow = "[timeouts]\nhealth_probe = 4\n"
    text = claude.home.toml.read_text().replace("[timeouts]\n", slow)
    claude.home.toml.write_text(text)
    declare(claude, dead, ssh_host(server, "agents-synth-01", 2), local_host("here"), server=server)
    ours, theirs = pty.openpty()
    begun = time.monotonic()
    with subprocess.Popen([*FLEET, "status"], env=claude.env, stdin=theirs, stdout=theirs, stderr=theirs) as process:
        os.close(theirs)
        text = ""
        when: dict[str, float] = {}
        while "Total:" not in text:
            assert select.select([ours], [], [], 30)[0], text
            text += os.read(ours, 4096).decode()
            for word in ("here", "agents-synth-01", "dark-box-01"):
                if re.search(rf"^{word} .*\n", text, re.MULTILINE):
                    when.setdefault(word, time.monotonic())
        process.wait(30)
    os.close(ours)
    assert process.returncode == 0
    assert max(when["here"], when["agents-synth-01"]) < when["dark-box-01"]
    assert when["dark-box-01"] - begun >= 4
    assert "no answer within 4 s" in text


def test_an_interrupted_look(claude: Cli, server: Sshd, black_hole: int) -> None:
    """Ctrl-C ends it at once, with exit code 130, what was known by then, and how many had not answered."""
    dead = ssh_host(server, "dark-box-01", 1).replace(f"port = {server.port}", f"port = {black_hole}")
    declare(claude, dead, local_host("here"), server=server)
    ours, theirs = pty.openpty()
    with subprocess.Popen([*FLEET, "status"], env=claude.env, stdin=theirs, stdout=theirs, stderr=theirs) as process:
        os.close(theirs)
        text = ""
        while "\nhere " not in text:
            assert select.select([ours], [], [], 30)[0], text
            text += os.read(ours, 4096).decode()
        process.send_signal(signal.SIGINT)
        while "not waited for" not in text:
            assert select.select([ours], [], [], 30)[0], text
            text += os.read(ours, 4096).decode()
        process.wait(30)
    os.close(ours)
    assert process.returncode == 130
    assert "note: stopped; the answer of 1 of 2 was not waited for" in text


def test_a_narrow_terminal(cli: Cli) -> None:
    """Names take no more room than they need there, so that a row is one line."""
    declare(cli, local_host("here"))
    ours, theirs = pty.openpty()
    env = {**cli.env, "COLUMNS": "60"}
    with subprocess.Popen([*FLEET, "status"], env=env, stdin=theirs, stdout=theirs, stderr=theirs) as process:
        os.close(theirs)
        text = ""
        while "Total:" not in text:
            assert select.select([ours], [], [], 30)[0], text
            text += os.read(ours, 4096).decode()
        process.wait(30)
    os.close(ours)
    assert "\nHost (API Name)    Status        Resp    ms        " in text
    assert "\nhere               up            yes     " in text


@pytest.mark.parametrize(
    "words", [["--run", "r", "--host", "here"], ["--run", "r", "--watch"], ["--wake", "--no-probe"], ["--team", ""]]
)
def test_words_that_do_not_fit_together(cli: Cli, words: list[str]) -> None:
    """What would be ignored is refused, and so is an empty word: a variable that was not set is no choice."""
    declare(cli, local_host("here"))
    done = cli.run("status", *words)
    assert (done.code, done.out) == (2, "")


def test_watching_needs_a_terminal(cli: Cli) -> None:
    """In a pipe it is refused, with what to do instead."""
    declare(cli, local_host("here"))
    assert cli.run("status", "--watch").code == 2
