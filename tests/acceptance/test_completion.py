"""`fleet completion`: what a shell is told while a command is typed, and the shells themselves."""

from __future__ import annotations

import argparse
import io
import os
import shutil
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from fleet.cli.app import make_parser
from fleet.cli.commands import COMMANDS
from fleet.cli.completing import next_words
from fleet.cli.completion import MOST_SECONDS, SCRIPTS, split
from fleet.cli.context import Context
from fleet.front.client import READ_SECONDS
from tests.support.cli import Cli, everything_in
from tests.support.programs import need
from tests.support.session_host import until

SECONDS = 60


def offered(cli: Cli, line: str, **how: dict[str, str]) -> list[str]:
    """The words that may come next."""
    found = cli.json("completion", "fish", "--line", line, **how)
    assert all(set(one) == {"word", "help"} for one in found)
    return [one["word"] for one in found]


# what is offered


def test_commands_and_what_may_stand_before_them(cli: Cli) -> None:
    """The first word is a command, or an option of all of them; `help` takes a command too."""
    assert offered(cli, "fleet ") == [command.name for command in COMMANDS]
    assert offered(cli, "fleet sta") == ["status"]
    assert offered(cli, "fleet help wor") == ["worktrees"]
    assert offered(cli, "fleet --json --h") == ["--home", "--help"]
    assert offered(cli, "fleet --home ") == []  # a directory: the shell's own affair
    assert offered(cli, f"fleet --home {cli.home.path} sta") == ["status"]


def test_options_and_their_values(cli: Cli) -> None:
    """An option that was given is not offered again, unless it may be; its values are, behind a blank or `=`."""
    assert offered(cli, "fleet add x --co") == ["--coder"]
    assert offered(cli, "fleet add x --coder co") == ["codex", "command"]
    assert offered(cli, "fleet add x --coder=co") == ["--coder=codex", "--coder=command"]
    assert offered(cli, "fleet add x --coder codex --co") == []
    assert offered(cli, "fleet tasks --label a=b --la") == ["--label"]
    assert offered(cli, "fleet add x --isolation ") == ["none", "worktree"]
    assert offered(cli, "fleet tasks --status c") == ["completed", "cancelled"]
    assert offered(cli, "fleet watch --kind task.se") == ["task.settled"]
    assert offered(cli, "fleet add -- --co") == []


def test_verbs_and_keys(cli: Cli) -> None:
    """The verbs of a command, and the keys and values that they take."""
    assert offered(cli, "fleet hosts re") == ["remove", "resume"]
    assert offered(cli, "fleet config get queue.s") == ["queue.source"]
    assert offered(cli, "fleet config set queue.s") == ["queue.source="]
    assert offered(cli, "fleet config set queue.source=") == ["queue.source=fleet", "queue.source=beads"]
    assert offered(cli, "fleet config set status.wake=t") == ["status.wake=true"]
    assert offered(cli, "fleet config set no.such=") == []
    assert offered(cli, "fleet bd cre") == ["create"]
    assert offered(cli, "fleet serve ") == ["token"]
    assert offered(cli, "fleet nonsense ") == []
    assert offered(cli, "fleet hosts nonsense ") == []


def test_what_there_is(cli: Cli) -> None:
    """Ids of tasks and runs, the newest first, with what they are; where only some can be meant, only those."""
    one, two = cli.add("First"), cli.add("Second")
    cli.ok("stop", one)
    assert offered(cli, "fleet show ") == [two, one]
    assert offered(cli, f"fleet show {one[:-1]}") == [uid for uid in (two, one) if uid.startswith(one[:-1])]
    assert offered(cli, "fleet stop ") == [two]
    assert offered(cli, f"fleet stop {two} ") == [two]
    assert offered(cli, "fleet interrupt ") == offered(cli, "fleet answer ") == []
    assert offered(cli, f"fleet add x --needs {one} ") == [two, one]
    assert offered(cli, f"fleet task {one} pl") == ["plan"]
    assert offered(cli, f"fleet task {one} set cod") == ["coder="]
    assert offered(cli, f"fleet task {one} set coder=ge") == ["coder=gemini"]
    assert offered(cli, f"fleet task {one} log ") == []
    assert offered(cli, "fleet bd show ") == [two, one]
    assert offered(cli, "fleet receipts ch") == ["check"]
    for name, role in (("web-dev-1", "dev"), ("web-ops-2", "ops")):
        cli.ok("hosts", "add", name, "host=127.0.0.1", "working_directory=/tmp", "agent_binary=true")
        assert role in offered(cli, "fleet exec --role ")
    assert offered(cli, "fleet exec --host ") == offered(cli, "fleet hosts probe ") == ["web-dev-1", "web-ops-2"]
    assert offered(cli, "fleet status --team ") == ["web"]
    assert set(offered(cli, "fleet hosts drain ")) > {"web-dev-1", "web-ops-2"}
    shown = cli.ok("completion", "zsh", "--line", "fleet show ").lines
    assert shown == [f"{two}\tqueued: Second", f"{one}\tcancelled: First"]
    assert cli.ok("completion", "bash", "--line", "fleet show ").lines == [two, one]


def test_of_a_fleet_that_is_served(cli: Cli) -> None:
    """Where one is named that does not answer, nothing is offered, and nothing of the home here."""
    cli.add("Here")
    away = {"FLEET_URL": "http://127.0.0.1:9", "FLEET_TOKEN": "x"}
    assert offered(cli, "fleet show ", env=away) == []
    assert offered(cli, "fleet show --js", env=away) == ["--json"]
    assert offered(cli, f"fleet show --home {cli.home.path} ", env=away) != []


def test_a_server_that_does_not_answer_is_not_waited_for(cli: Cli) -> None:
    """Who presses Tab waits a few seconds at the most, far less than a command does."""
    with socket.create_server(("127.0.0.1", 0)) as silent:
        away = {"FLEET_URL": f"http://127.0.0.1:{silent.getsockname()[1]}", "FLEET_TOKEN": "x"}
        assert 2 * MOST_SECONDS < READ_SECONDS / 4
        began = time.monotonic()
        done = cli.run("completion", "bash", "--line", "fleet show ", env=away)
        assert time.monotonic() - began < READ_SECONDS / 2
    assert (done.code, done.out, done.err) == (0, "", "")


def test_nothing_is_made_and_nothing_is_said(newcomer: Cli) -> None:
    """Without a home, in the middle of a wrong line: no word, no error, no file."""
    before = everything_in(newcomer.path)
    for line in (
        "fleet show ",
        "fleet --nonsense ",
        "fleet config get ",
        "",
        "fleet",
        "fleet 'open ",
        "fleet hosts drain ",
    ):
        done = newcomer.run("completion", "bash", "--line", line)
        assert (done.code, done.err) == (0, ""), line
    assert everything_in(newcomer.path) == before
    refused = newcomer.run("completion", "ksh")
    assert (refused.code, refused.err.splitlines()[0]) == (2, "error: SHELL: `ksh` is none of bash, zsh, fish")


def test_a_broken_home_offers_what_needs_none(cli: Cli) -> None:
    """What is wrong with it is told when a command is run, not while one is typed."""
    cli.home.toml.write_text("this is not TOML [")
    assert offered(cli, "fleet show ") == []
    assert offered(cli, "fleet sho") == ["show"]


def everywhere() -> Iterator[tuple[str, argparse.ArgumentParser]]:
    """Every command, and every verb of one."""
    for command in COMMANDS:
        if command.name == "bd":
            continue
        parser = make_parser(command)
        yield command.name, parser
        for action in parser._actions:
            if isinstance(action, argparse._SubParsersAction):
                yield from ((f"{command.name} {name}", verb) for name, verb in action.choices.items())


def test_every_option_of_every_command(cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever is typed to whichever command, it is completed; each of its long options is offered."""
    cli.add("Work")
    monkeypatch.setenv("FLEET_HOME", str(cli.home.path))
    seen = 0
    for name, parser in everywhere():
        for words in ((), ("x",), ("x", "y"), ("x", "y", "z")):
            context = Context(home=None, json=False, out=io.StringIO(), err=io.StringIO())
            next_words([*name.split(), *words, ""], context)
            context.close()
        context = Context(home=None, json=False, out=io.StringIO(), err=io.StringIO())
        found = {one.word for one in next_words([*name.split(), "--"], context)}
        shown = [one for one in parser._actions if one.help != argparse.SUPPRESS]
        assert found == {word for one in shown for word in one.option_strings if word.startswith("--")}, name
        seen += len(found)
    assert seen > 200


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("", [""]),
        ("fleet", ["fleet"]),
        ("fleet ", ["fleet", ""]),
        ("fleet add 'a b' --c", ["fleet", "add", "a b", "--c"]),
        ("fleet add 'a b", ["fleet", "add", "a b"]),
        ('fleet add "it\'s \\" so" ', ["fleet", "add", "it's \" so", ""]),
        ("fleet add '' x", ["fleet", "add", "", "x"]),
        ("fleet show a\\ b", ["fleet", "show", "a b"]),
        ("fleet add 'a\\'b", ["fleet", "add", "a\\b"]),
    ],
)
def test_a_line_that_is_still_typed(line: str, words: list[str]) -> None:
    """It is taken apart as the shell will, with quotes that are still open."""
    assert split(line) == words


# the shells


class Typing:
    """A shell on a terminal, with somebody at it."""

    def __init__(self, cli: Cli, words: list[str]) -> None:
        programs = f"{Path(sys.executable).parent}{os.pathsep}{cli.env['PATH']}"
        self._env = {**cli.env, "PATH": programs, "TERM": "xterm", "PS1": "$ ", "SHELL": "/bin/sh"}
        (cli.path / "user").mkdir(exist_ok=True)
        self._socket = cli.path / "tmux"
        self._tmux("-f", "/dev/null", "new-session", "-d", "-x", "120", "-y", "50", "-c", str(cli.cwd), *words)

    def _tmux(self, *words: str) -> str:
        argv = ["tmux", "-S", str(self._socket), *words]
        return subprocess.run(argv, env=self._env, check=True, capture_output=True, text=True, timeout=SECONDS).stdout

    def keys(self, *keys: str) -> None:
        self._tmux("send-keys", *keys)

    def sees(self, what: Callable[[str], bool]) -> None:
        """Wait until the screen is as expected."""
        until(lambda: what(self._tmux("capture-pane", "-p")), "what the shell should show", seconds=SECONDS)

    def leave(self) -> None:
        self._tmux("kill-server")


SHELLS = {
    "bash": (["bash", "--norc", "--noprofile", "-i"], 'eval "$(fleet completion bash)"'),
    "zsh": (["zsh", "-f", "-i"], 'autoload -U compinit && compinit -D -u && eval "$(fleet completion zsh)"'),
    "fish": (["fish", "--no-config", "-i"], "fleet completion fish | source"),
}


@pytest.mark.parametrize("shell", SHELLS)
def test_a_real_shell(cli: Cli, shell: str) -> None:
    """Tab ends a word, shows what there is to choose from, goes on behind `=`, and leaves files to the shell."""
    words, reads = SHELLS[shell]
    for program in ("tmux", shell):
        need(program, shutil.which(program), "run `sh scripts/tools`")
    one, two = cli.add("First thing"), cli.add("Second thing")
    (cli.cwd / "release-of-spring.yaml").touch()
    typing = Typing(cli, words)
    try:
        typing.keys(f"{reads} && echo re''ady", "Enter")
        typing.sees(lambda screen: "\nready" in screen)
        typing.keys("clear", "Enter")
        typing.keys("fleet quest", "Tab")
        typing.sees(lambda screen: "fleet questions" in screen)
        typing.keys("C-u")
        typing.keys("fleet config set queue.so", "Tab")
        typing.sees(lambda screen: "queue.source=" in screen)
        typing.keys("be", "Tab")
        typing.sees(lambda screen: "queue.source=beads" in screen)
        typing.keys("C-u")
        typing.keys("fleet run rel", "Tab")
        typing.sees(lambda screen: "fleet run release-of-spring.yaml" in screen)
        typing.keys("C-u")
        typing.keys("fleet show ", "Tab")
        typing.sees(lambda screen: "fleet show fleet-" in screen or one in screen)
        typing.keys("Tab", "Tab")  # bash asks for that
        typing.sees(lambda screen: one in screen and two in screen and ("First thing" in screen) is (shell != "bash"))
    finally:
        typing.leave()


def test_a_script_for_each_shell(cli: Cli) -> None:
    """It is what the shell reads, and the shell finds no fault in it."""
    for shell, script in SCRIPTS.items():
        assert cli.ok("completion", shell).out == script
        assert cli.json("completion", shell) == {"shell": shell, "script": script}
        program = need(shell, shutil.which(shell), "run `sh scripts/tools`")
        subprocess.run([program, "-n"], input=script.encode(), env=cli.env, check=True, timeout=SECONDS)
