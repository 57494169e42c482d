"""The command line itself: help, homes, streams, and what happens when a stream is in the way."""

from __future__ import annotations

import contextlib
import fcntl
import os
import pty
import signal
import struct
import subprocess
import sys
import termios
from pathlib import Path

import pytest

import fleet
from fleet.cli.commands import COMMANDS, ELSEWHERE, GROUPS
from fleet.testing.builders import a_task
from tests.support.cli import FLEET, Cli

TIMES = "10m, 2h, 14:30, today or 2026-01-31T14:30"


def test_version(newcomer: Cli) -> None:
    """--version and -V print the version, and need no home."""
    for word in ("--version", "-V"):
        assert newcomer.run(word) == (0, f"fleet {fleet.__version__}\n", "")


def test_help_lists_every_command_by_group(newcomer: Cli) -> None:
    """`fleet`, --help, -h and help print the same overview: every command once, under its group."""
    printed = newcomer.run("--help").out
    for argv in ([], ["-h"], ["help"]):
        assert newcomer.run(*argv) == (0, printed, "")
    position = 0
    for group, title in GROUPS.items():
        position = printed.index(f"\n{title}:\n", position)
        for command in COMMANDS:
            if command.group == group:
                assert printed.index(f"\n  {command.name} ") > position
                assert printed.count(f"\n  {command.name} ") == 1
    assert "examples:" in printed
    assert not newcomer.home.path.exists()


@pytest.mark.parametrize("name", [command.name for command in COMMANDS if command.name != "bd"])
def test_help_of_a_command(newcomer: Cli, name: str) -> None:
    """`fleet help X` and `fleet X --help` say the same and end with two examples to paste."""
    printed = newcomer.run("help", name)
    assert printed.code == 0
    assert printed.out.startswith(f"usage: fleet {name} ")
    assert printed.out.partition("examples:\n")[2].count("  fleet ") >= 2
    assert newcomer.run(name, "--help") == printed


def test_unknown_commands_are_not_guessed_but_suggested(newcomer: Cli) -> None:
    """A word that is no command is exit 2 with the nearest one, or with where to look."""
    assert newcomer.run("redy") == (2, "", "error: unknown command `redy`\nhint: did you mean `fleet ready`?\n")
    done = newcomer.run("xyzzy")
    assert (done.code, done.err) == (
        2,
        "error: unknown command `xyzzy`\nhint: `fleet --help` lists the commands\n",
    )
    assert newcomer.run("help", "redy").code == 2


def test_a_verb_that_is_missing_or_unknown_is_told_with_those_there_are(newcomer: Cli) -> None:
    """A wrong verb and `fleet ledger` alone are exit 2, with the verbs to choose from, or the one that is near."""
    done = newcomer.run("config", "frobnicate", "model")
    assert (done.code, done.err.splitlines()) == (
        2,
        [
            "error: unknown command `fleet config frobnicate`",
            "hint: one of: show, get, set, unset, import, schema; see `fleet config --help`",
        ],
    )
    assert newcomer.run("config", "shwo").err.endswith("hint: did you mean `fleet config show`?\n")
    done = newcomer.run("ledger")
    assert (done.code, done.err.splitlines()[0]) == (2, "error: fleet ledger does what?")
    assert done.err.splitlines()[1].startswith("hint: one of: tail, export, verify; ")


def test_words_of_other_programs_lead_to_the_command(newcomer: Cli) -> None:
    """What others call it is told in our word, not by one that looks alike; each leads to a command that is there."""
    assert newcomer.run("kill", "x").err == "error: unknown command `kill`\nhint: here that is `fleet stop ID`\n"
    names = {command.name for command in COMMANDS}
    assert not names & set(ELSEWHERE)
    assert {words.split()[0] for words in ELSEWHERE.values()} <= names | {"--version"}
    assert newcomer.run("--frobnicate").code == 2


@pytest.mark.parametrize(
    ("argv", "said"),
    [
        (["--jsno", "status"], "error: unknown option `--jsno`\nhint: did you mean --json?\n"),
        (
            ["--all", "stop"],
            "error: unknown option `--all`\nhint: the options of a command follow it: fleet COMMAND --option\n",
        ),
        (
            ["tasks", "--stauts", "all"],
            "error: unrecognized arguments: --stauts all\nhint: did you mean --status? see `fleet tasks --help`\n",
        ),
        (
            ["cost", "--by", "codr"],
            "error: --by: `codr` is none of day, coder, model, host, label, run\nhint: did you mean coder?\n",
        ),
        (
            ["tasks", "--limit", "0"],
            "error: --limit: must be a positive number, not `0`\nhint: see `fleet tasks --help`\n",
        ),
        (
            ["show"],
            (
                "error: ID must be given\nhint: `fleet tasks --status all` lists the ids; "
                "such as `fleet show fleet-abc`; see `fleet show --help`\n"
            ),
        ),
        (
            ["config", "get"],
            (
                "error: KEY must be given\nhint: such as `fleet config get supervisor.max_concurrent`; "
                "see `fleet config get --help`\n"
            ),
        ),
    ],
)
def test_a_slip_is_told_with_what_was_meant(newcomer: Cli, argv: list[str], said: str) -> None:
    """Exit 2, and the option, the choice or the example that helps."""
    done = newcomer.run(*argv)
    assert (done.code, done.out, done.err) == (2, "", said)


def test_help_fits_the_terminal(newcomer: Cli) -> None:
    """Through a pipe no line of a text is wider than 100 columns, and on a narrow terminal none is than that."""
    for command in ("status", "stop", "config"):
        described = newcomer.ok(command, "--help").out.partition("examples:")[0]
        assert max(map(len, described.splitlines())) <= 100
    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 60, 0, 0))
    done = subprocess.run([*FLEET, "stop", "--help"], env=newcomer.env, stdout=theirs, check=True, timeout=60)
    os.close(theirs)
    shown = b""
    with contextlib.suppress(OSError):  # that is how a terminal says that it is over
        while piece := os.read(ours, 1 << 16):
            shown += piece
    os.close(ours)
    described = shown.decode().partition("examples:")[0]
    assert (done.returncode, max(map(len, described.splitlines())) <= 60) == (0, True)


def test_words_without_quotes(newcomer: Cli) -> None:
    """Several words where one text is meant are told what they lack; an option that is unknown is another matter."""
    done = newcomer.run("add", "Fix", "the", "login")
    hint = "hint: a TITLE of several words needs quotes around it; see `fleet add --help`\n"
    assert (done.code, done.err) == (2, f"error: unrecognized arguments: the login\n{hint}")
    assert "hint: a CMD of several words" in newcomer.run("exec", "df", "/").err
    assert newcomer.run("add", "x", "--frob").err.endswith("hint: see `fleet add --help`\n")
    assert newcomer.run("ready", "x").err.endswith("hint: see `fleet ready --help`\n")


def test_the_home_may_be_named_before_or_after_the_command(newcomer: Cli) -> None:
    """--home works on both sides of the command, with = or without, and goes before $FLEET_HOME."""
    one, two = str(newcomer.path / "one"), str(newcomer.path / "two")
    newcomer.ok("init", "--home", one)
    newcomer.ok("--home", two, "init")
    newcomer.ok("add", "in one", "--home", one)
    newcomer.ok(f"--home={two}", "add", "in two")
    assert [task["title"] for task in newcomer.json("ready", f"--home={one}")] == ["in one"]
    assert [task["title"] for task in newcomer.json("--home", two, "ready")] == ["in two"]
    assert [task["title"] for task in newcomer.json("--home", one, "ready", "--home", two)] == ["in two"]
    assert not newcomer.home.path.exists()
    for argv in (["--home"], ["ready", "--home"], ["--home=", "ready"], ["ready", "--home="]):
        assert newcomer.run(*argv).code == 2


def test_json_may_be_asked_for_before_the_command(cli: Cli) -> None:
    """--json before the command is the same as after it."""
    cli.add("x")
    assert cli.ok("--json", "ready").out == cli.ok("ready", "--json").out


def many(cli: Cli, n: int = 600) -> None:
    """More than fits into a pipe."""
    with cli.store() as store:
        store.submit([a_task(f"task {k}", description="x" * 200) for k in range(n)], by="ana").result()


@pytest.mark.parametrize(
    "argv", [["ledger", "export"], ["ready", "--limit", "1000", "--json"], ["ledger", "tail", "-n", "600"]]
)
def test_a_reader_that_leaves_is_no_error(cli: Cli, argv: list[str]) -> None:
    """`fleet ... | head -1` prints one line, no traceback, and exit 0."""
    many(cli)
    with cli.started(*argv) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        assert process.stdout.read(1)
        process.stdout.close()
        assert process.stderr.read() == b""
        assert process.wait(20) == 0


def test_a_full_disk_under_stdout_is_an_error_in_words(cli: Cli) -> None:
    """When what is printed cannot be written, the command says so and is exit 1."""
    cli.add("x")
    with open("/dev/full", "wb") as full:
        done = subprocess.run(
            [*FLEET, "ready"], env=cli.env, cwd=cli.cwd, stdout=full, stderr=subprocess.PIPE, check=False
        )
    assert done.returncode == 1
    assert done.stderr.decode().splitlines() == [
        "error: what it says cannot be written: No space left on device",
        "hint: the command itself was carried out: look before you run it again",
    ]


@pytest.mark.parametrize("closed", ["<&-", ">&-", "2>&-", "<&- >&- 2>&-"])
def test_closed_streams_do_no_harm(cli: Cli, closed: str) -> None:
    """With any of its streams closed a command works, and no file of the home gets their numbers."""
    words = " ".join(FLEET)
    done = subprocess.run(["sh", "-c", f"{words} add quiet {closed}"], env=cli.env, cwd=cli.cwd, check=False)
    assert done.returncode == 0
    assert [task["title"] for task in cli.json("ready")] == ["quiet"]
    assert cli.home.mirror.read_text() == cli.ok("ledger", "export").out
    refused = subprocess.run(
        ["sh", "-c", f"{words} add x -d - <&-"], env=cli.env, cwd=cli.cwd, check=False, capture_output=True
    )
    assert (refused.returncode, refused.stderr) == (2, b"error: stdin is closed\n")


def on_a_terminal(cli: Cli, *argv: str, **env: str) -> str:
    """What a command prints on a terminal."""
    ours, theirs = pty.openpty()
    environment = {**cli.env, "TERM": "xterm-256color", "COLUMNS": "200", **env}
    process = subprocess.Popen([*FLEET, *argv], env=environment, cwd=cli.cwd, stdout=theirs, stderr=theirs)
    os.close(theirs)
    printed = b""
    while True:
        try:
            block = os.read(ours, 4096)
        except OSError:  # the other side is gone
            break
        if not block:
            break
        printed += block
    os.close(ours)
    assert process.wait(20) == 0
    return printed.decode()


def test_colour_only_on_a_terminal_that_wants_it(cli: Cli) -> None:
    """Escape codes reach a terminal, and neither a pipe nor a person who asked for none."""
    cli.add("plain")
    cli.add("chosen", "--coder", "codex", "--model", "o3")
    table = ("tasks", "--status", "all")
    coloured = on_a_terminal(cli, *table)
    assert "\x1b[1mcodex" in coloured
    assert "\x1b[2mclaude" in coloured
    for env in ({"NO_COLOR": "1"}, {"TERM": "dumb"}):
        assert "\x1b" not in on_a_terminal(cli, *table, **env)
    for argv in (table, ("ready",), ("status",), ("ledger", "tail")):
        assert "\x1b" not in cli.ok(*argv, env={"TERM": "xterm-256color", "FORCE_COLOR": "1"}).out


def test_an_encoding_that_lacks_a_character_is_no_error(cli: Cli) -> None:
    """Where the terminal cannot show a character it is printed as an escape, and what is stored is whole."""
    uid = cli.add("日本", env={"PYTHONIOENCODING": "ascii"})
    assert "\\u65e5\\u672c" in cli.ok("ready", env={"PYTHONIOENCODING": "ascii"}).out
    assert "日本" in cli.ok("show", uid).out


def test_a_directory_with_a_name_that_is_no_text(cli: Cli) -> None:
    """A task cannot be bound to a directory whose name is not text; the error says what to do."""
    odd = Path(os.fsdecode(os.fsencode(cli.path) + b"/odd-\xff"))
    odd.mkdir()
    done = cli.run("add", "x", cwd=odd)
    assert (done.code, done.err) == (
        2,
        "error: the name of the directory is not UTF-8 text\nhint: name another with --cwd\n",
    )
    assert cli.events() == 0


BY_MODULE, BY_SCRIPT = FLEET, (str(Path(sys.executable).with_name("fleet")),)
STUCK = "import os, sys\nsys.stderr.write('here')\nsys.stderr.flush()\nos.read(0, 1)\nos._exit(7)\n"


def interrupted_at(cli: Cli, module: str, program: tuple[str, ...], meant: object) -> tuple[int, bytes, bytes]:
    """What is left of `fleet ready` that gets a SIGINT while it imports `module`, and then may go on."""
    (cli.path / "stuck").mkdir()
    (cli.path / "stuck" / f"{module}.py").write_text(STUCK)
    ours = signal.signal(signal.SIGINT, meant)  # type: ignore[arg-type]  # what a child is started with
    process = subprocess.Popen(
        [*program, "ready"],
        env=cli.env | {"PYTHONPATH": str(cli.path / "stuck")},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    signal.signal(signal.SIGINT, ours)
    with process:
        assert process.stderr is not None
        assert process.stderr.read(4) == b"here"
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(b"x", timeout=30)
    return process.returncode, out, err


@pytest.mark.parametrize("module", ["argparse", "msgspec", "apsw"])
@pytest.mark.parametrize("program", [BY_MODULE, BY_SCRIPT], ids=["module", "script"])
def test_ctrl_c_while_it_still_starts(cli: Cli, program: tuple[str, ...], module: str) -> None:
    """Ctrl-C in the middle of an import, before or after the command has begun, is exit code 130 and not a word."""
    assert interrupted_at(cli, module, program, signal.default_int_handler) == (130, b"", b"")


@pytest.mark.parametrize("module", ["argparse", "apsw"])
def test_ctrl_c_that_is_ignored_stays_ignored(cli: Cli, module: str) -> None:
    """Who starts it in the background, where Ctrl-C is not meant for it, has it go on."""
    assert interrupted_at(cli, module, FLEET, signal.SIG_IGN) == (7, b"", b"")
