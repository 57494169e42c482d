"""`fleet exec`: one command on many machines, as the first Fleet Manager showed it."""

from __future__ import annotations

import json
import os
import pty
import select
import signal
import socket
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.cli import FLEET, Cli, line_from
from tests.support.machines import declare, local_host, several, ssh_host
from tests.support.session_host import lives, until
from tests.support.sshd import Sshd

RULE = "=" * 60


@pytest.fixture(scope="module")
def server() -> Iterator[Sshd]:
    with several(3) as found:
        yield found


@pytest.fixture
def fleet(cli: Cli, server: Sshd) -> Cli:
    """Somebody with three machines over ssh and this one."""
    names = {"agents-review-01": "hammer", "agents-synth-01": "forge", "dev-workspace-01": "mallet"}
    hosts = [ssh_host(server, name, at, api_name=api) for at, (name, api) in enumerate(names.items(), 1)]
    declare(cli, *hosts, local_host("here"), server=server)
    return cli


def blocks(lines: list[str]) -> set[str]:
    """The answers of the hosts, each with what it printed, in no order."""
    found: list[str] = []
    for line in lines:
        if line.startswith("["):
            found.append(line)
        else:
            found[-1] += f"|{line}"
    return set(found)


def test_the_screen(fleet: Cli) -> None:
    """A line that says what is run, a rule of 60, an answer of each host with its output set in, the count."""
    done = fleet.ok("exec", "echo hello; pwd | wc -l | tr -d ' '")
    head, rule, *answers, last = done.lines
    assert (head, rule) == ("Executing on 4 hosts: echo hello; pwd | wc -l | tr -d ' '...", RULE)
    assert blocks(answers) == {f"[{name}] OK|  hello|  1" for name in ("hammer", "forge", "mallet", "here")}
    assert last == "Complete: 4/4 succeeded"
    assert done.err == ""


def test_what_fails_is_counted(fleet: Cli, server: Sshd) -> None:
    """A code other than 0, and a host that cannot be reached, make exit code 1; the others are told as they are."""
    declare(fleet, ssh_host(server, "dead-box-01", 9))
    done = fleet.run("exec", "--host", "hammer", "--host", "dead-*", "echo out; echo err >&2; exit 3")
    assert done.code == 1
    assert "[hammer] FAILED (exit 3)\n  out\n  err\n" in done.out
    assert "\n[dead-box-01] UNREACHABLE: cannot reach host 127.0.0.9: " in done.out
    assert done.lines[-1] == "Complete: 0/2 succeeded"


def test_which_hosts(fleet: Cli) -> None:
    """A team, a role and either name select; a word that fits nothing is exit code 4, with the nearest name."""
    told = fleet.json("exec", "--team", "agents", "true")
    assert [each["host"] for each in told["results"]] == ["agents-review-01", "agents-synth-01"]
    told = fleet.json("exec", "--role", "work*", "true")
    assert [each["host"] for each in told["results"]] == ["dev-workspace-01"]
    done = fleet.run("exec", "--host", "hamer", "true")
    assert (done.code, done.err) == (4, "error: there is no host `hamer`\nhint: did you mean `hammer`?\n")


def test_a_timeout_kills_the_far_process(fleet: Cli, tmp_path: Path) -> None:
    """After -t seconds the command is ended over there too, and told as such."""
    note = tmp_path / "pid"
    done = fleet.run("exec", "-t", "2", "--host", "hammer", f"echo $$ >{note}; exec sleep 300")
    assert done.code == 1
    assert "[hammer] TIMEOUT: no end after 2 s; it was killed\n" in done.out
    until(lambda: not lives(int(note.read_text())), "it ended over there")


def test_what_was_cut_off_is_shown(fleet: Cli) -> None:
    """What had arrived of it, by the command that opens the connection and by the next, is shown and marked."""
    for _ in range(2):
        done = fleet.run("exec", "-t", "2", "--host", "forge", "echo one; echo two >&2; exec sleep 300")
        assert done.lines[2:-1] == [
            "[forge] TIMEOUT: no end after 2 s; it was killed",
            "  one",
            "  two",
            "  (cut off here)",
        ]


def test_a_host_that_never_answers(fleet: Cli, server: Sshd) -> None:
    """Nothing was killed there: it never began, and that is what is said."""
    with socket.socket() as silent:
        silent.bind(("127.0.0.1", 0))
        silent.listen(5)
        dark = ssh_host(server, "dark-box-01").replace(f"port = {server.port}", f"port = {silent.getsockname()[1]}")
        declare(fleet, dark)
        done = fleet.run("exec", "-t", "1", "--host", "dark-box-01", "true")
    reason = "it never began: after 1 s the connection was not up"
    assert (done.code, done.lines[2]) == (1, f"[dark-box-01] UNREACHABLE: {reason}")


def test_a_host_that_is_lost_half_way(fleet: Cli, tmp_path: Path) -> None:
    """What had arrived is shown, that the connection broke, and what is not known; without a word of ours."""
    command = f"echo one; echo two >&2; touch {tmp_path}/begun; while kill -0 $PPID; do sleep 0.1; done 2>/dev/null"
    with several(1) as other:
        declare(fleet, ssh_host(other, "lost-box-01"), server=other)
        with fleet.started("exec", "--host", "lost-box-01", command) as process:
            until((tmp_path / "begun").exists, "it began")
            fleet.ok("exec", "--host", "lost-box-01", "true")  # on the same connection, after what was printed
            other.stop()
            out, _ = process.communicate(timeout=30)
    reason = "the connection broke before the command ended, which may have gone on"
    assert out.decode().splitlines()[2:] == [
        f"[lost-box-01] UNREACHABLE: cannot reach host 127.0.0.1: {reason}",
        "  one",
        "  two",
        "  (cut off here)",
        "Complete: 0/1 succeeded",
    ]


def test_interrupting_stops_everywhere(fleet: Cli, tmp_path: Path) -> None:
    """Ctrl-C ends the command on every host, tells which had not ended, and is exit code 130."""
    pids = tmp_path / "pids"
    pids.mkdir()
    with fleet.started("exec", f'echo $$ >{pids}/$$; if [ -n "$SSH_CONNECTION" ]; then exec sleep 300; fi') as process:
        lines = [line_from(process.stdout) for _ in range(3)]
        assert lines[-1] == "[here] OK"
        until(lambda: len(list(pids.iterdir())) == 4, "it began everywhere")
        process.send_signal(signal.SIGINT)
        out, _ = process.communicate(timeout=30)
    assert process.returncode == 130
    told = out.decode().splitlines()
    assert sorted(line.split()[1] for line in told[:-1]) == ["STOPPED:"] * 3
    assert told[-1] == "Complete: 1/4 succeeded"
    until(lambda: not any(lives(int(file.name)) for file in pids.iterdir()), "it ended everywhere")


def test_stdin_and_scripts(fleet: Cli, tmp_path: Path) -> None:
    """Every host reads the same file; a script runs as its first line says, and leaves nothing behind."""
    given = tmp_path / "given"
    given.write_bytes(b"a\nb\n")
    told = fleet.json("exec", "--stdin", str(given), "wc -l | tr -d ' '")
    assert {each["stdout"] for each in told["results"]} == {"2\n"}
    assert fleet.json("exec", "--host", "here", "--stdin", "-", "cat", input="ours")["results"][0]["stdout"] == "ours"
    script = tmp_path / "script.py"
    script.write_text("#!/usr/bin/env python3\nimport sys\nprint(6 * 7, sys.stdin.read(), sys.argv[0])\n")
    told = fleet.json("exec", "--script", str(script))
    for each in told["results"]:
        number, left = each["stdout"].split()
        assert number == "42"
        assert not Path(left).exists()


@pytest.mark.parametrize(
    "words",
    [
        [],
        [""],
        [" "],
        ["true", "--script", "x"],
        ["--script", "x", "--stdin", "y"],
        ["-t", "0", "true"],
        ["--host", "", "true"],
    ],
)
def test_wrong_words(fleet: Cli, words: list[str]) -> None:
    """No command, an empty one, a command and a script, a script with input, no time, an empty name: exit code 2."""
    done = fleet.run("exec", *words)
    assert (done.code, done.out) == (2, "")


def test_equal_answers_are_folded(fleet: Cli) -> None:
    """With --group equal answers stand once, and what differs goes first."""
    done = fleet.ok("exec", "--group", 'if [ -n "$SSH_CONNECTION" ]; then echo far; else echo near; fi')
    assert done.lines[2:] == ["[here] OK", "  near", "[hammer, forge, mallet] OK", "  far", "Complete: 4/4 succeeded"]


def test_output_cannot_draw_on_the_terminal(fleet: Cli) -> None:
    """What a host prints is shown without what would steer a terminal."""
    done = fleet.ok("exec", "--host", "here", r"printf '\033[2Jx\n'")
    assert "\x1b" not in done.out
    assert "[2Jx" in done.out


def test_a_reader_that_has_gone(fleet: Cli) -> None:
    """`fleet exec ... | head -1` is no error."""
    done = subprocess.run(
        ["sh", "-c", '"$@" | head -1', "sh", *FLEET, "exec", "seq 100000"],
        env=fleet.env,
        capture_output=True,
        check=False,
        timeout=60,
    )
    assert (done.stdout, done.stderr) == (b"Executing on 4 hosts: seq 100000...\n", b"")


@pytest.mark.parametrize(("word", "code", "ran"), [("n", 1, False), ("y", 0, True)])
def test_what_looks_destructive_is_asked_about(fleet: Cli, tmp_path: Path, word: str, code: int, ran: bool) -> None:
    """At a terminal a person is asked once, before several hosts lose something; no is no."""
    victim = tmp_path / "victim"
    victim.touch()
    ours, theirs = pty.openpty()
    argv = [*FLEET, "exec", f"rm -f {victim}"]
    with subprocess.Popen(argv, env=fleet.env, stdin=theirs, stderr=theirs, stdout=subprocess.PIPE) as process:
        os.close(theirs)
        asked = b""
        while b"[y/N]" not in asked:
            assert select.select([ours], [], [], 30)[0], asked
            asked += os.read(ours, 1000)
        os.write(ours, f"{word}\n".encode())
        process.communicate(timeout=30)
    os.close(ours)
    assert b"This command deletes files, on 4 hosts. Run it?" in asked
    assert (process.returncode, victim.exists()) == (code, not ran)


def test_nobody_is_asked_without_a_terminal(fleet: Cli, tmp_path: Path) -> None:
    """In a script the command runs: there is nobody to ask."""
    victim = tmp_path / "victim"
    victim.touch()
    fleet.ok("exec", f"rm -f {victim}")
    assert not victim.exists()


def test_without_hosts(cli: Cli) -> None:
    """It is told how to get some, as JSON where that was asked for."""
    done = cli.run("exec", "true", "--json")
    assert done.code == 4
    assert json.loads(done.err)["hint"].startswith("declare one: `fleet hosts add --help`")


def test_without_a_home(newcomer: Cli) -> None:
    """Who has no home is told that, not that there are no hosts."""
    done = newcomer.run("exec", "true")
    assert (done.code, done.err.startswith("error: there is no Fleet home at ")) == (4, True)
