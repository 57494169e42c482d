"""What is seen of agents at work: `fleet logs` and `fleet tasks --watch`."""

from __future__ import annotations

import json
import os
import pty
import select
import signal
import subprocess
import time

import pytest

from tests.support.cli import FLEET, Cli, line_from

SPEAKS: tuple[dict[str, object], ...] = (
    {"say": "one\ntwo"},
    {"tool": "Read"},
    {"fail": "Edit"},
    {"run": "echo hi"},
    {"usage": [10, 20, 30, 400]},
    {"context": 120000},
)


def add(cli: Cli, *steps: dict[str, object]) -> str:
    """A task whose agent does these steps."""
    return cli.add("work", "--coder", "scripted", "-d", f"\n@@scripted {json.dumps(steps)}")


def test_logs_are_in_words(cli: Cli) -> None:
    """What was said, which tools were called, what failed, and in the end what was used; no line for what went well."""
    uid = add(cli, *SPEAKS)
    assert cli.run("run", "--drain", "-q").code in (0, 1, 3)  # by what became of the tasks
    heading, *said, total = cli.ok("logs", uid).lines
    assert heading.startswith(f"--- {uid}.1  ")
    assert [line[10:] for line in said] == [
        "started with scripted, version 1",
        "one",
        "two",
        "> Read",
        "> Edit",
        "! Edit failed",
        "> shell  echo hi",
        "ended its turn",
    ]
    assert total == f"--- {uid}.1: 3 tool calls, 10 tokens in, 30 cached, 20 out, $0.0004, context at most 120,000"
    assert cli.ok("logs", uid, "-n", "1").lines[0].endswith("ended its turn")


def test_logs_can_be_raw(cli: Cli) -> None:
    """--raw gives the lines of log.jsonl as they are, --json the records, and a session's id only its own."""
    uid = add(cli, {"say": "hello"}, {"end": "crashed"})
    cli.ok("config", "set", "supervisor.backoff_seconds=0", "supervisor.max_attempts=2")
    assert cli.run("run", "--drain", "-q").code in (0, 1, 3)  # by what became of the tasks
    file = cli.task_file(uid, "log.jsonl").read_text()
    assert cli.ok("logs", uid, "--raw", "-n", "1000").out == file
    records = cli.json("logs", uid, "-n", "1000")["records"]
    assert records == [json.loads(line) for line in file.splitlines()]
    sessions = {record["session"] for record in cli.json("logs", f"{uid}.2")["records"]}
    assert sessions == {f"{uid}.2"}
    assert len({record["session"] for record in records}) == 2


def test_an_agent_cannot_draw_on_the_terminal(cli: Cli) -> None:
    """Control characters in what an agent said are not printed as such."""
    uid = add(cli, {"say": "\x1b]0;owned\x07\x1b[2J"})
    assert cli.run("run", "--drain", "-q").code in (0, 1, 3)  # by what became of the tasks
    assert "owned" in cli.ok("logs", uid).out
    assert "\x1b" not in cli.ok("logs", uid).out
    assert "\x07" not in cli.ok("logs", uid).out


def test_what_an_agent_asks_cannot_draw_either(cli: Cli) -> None:
    """A question reaches whoever looks in plain letters, by every command; its file is whole for a program."""
    question = r'''fleet ask "$(printf 'May I\033[2J\033]0;owned\007 go?\r\nOr not?')"'''
    uid = cli.add("Ask", "--coder", "command", "-d", question)
    drained = cli.run("run", "--drain")
    looks = (["questions"], ["status"], ["show", uid], ["why", uid], ["inspect", uid], ["ledger", "tail"])
    for seen in (drained, *(cli.ok(*words) for words in looks)):
        assert "owned" in seen.out + seen.err
        assert not {"\x1b", "\x07", "\r"} & set(seen.out + seen.err)
    assert "\x1b[2J" in cli.ok("task", uid, "qa").out
    master, slave = pty.openpty()
    subprocess.run([*FLEET, "task", uid, "qa"], env=cli.env, cwd=cli.cwd, stdout=slave, check=True)
    shown = os.read(master, 65_536)
    os.close(master)
    os.close(slave)
    assert b"owned" in shown
    assert b"\x1b" not in shown


def test_logs_follow_until_the_end(cli: Cli) -> None:
    """-f prints what comes while the agent works, a line once, and ends by itself when the task has ended."""
    uid = add(cli, {"say": "first"}, {"sleep": 1}, {"say": "second"}, {"close": "all done"})
    with cli.started("logs", uid, "-f") as following, cli.started("run", "--drain", "-q") as supervisor:
        out, err = following.communicate(timeout=30)
        supervisor.wait(30)
    words = [line[10:] for line in out.decode().splitlines() if line[:1].isdigit()]
    assert (words.count("first"), words.count("second")) == (1, 1)
    assert words[-1] == "ended its turn"
    assert following.returncode == 0
    assert err.decode().endswith(f"{uid} is completed: all done\n")


def test_what_a_crash_cut_off_is_shown_once(cli: Cli) -> None:
    """A supervisor that takes over cuts the log back and writes it again: who follows sees every line once."""
    uid = add(cli, {"say": "hello"})
    file = cli.task_file(uid, "log.jsonl")
    lines = [record(uid, offset, text) for offset, text in enumerate(("one", "two", "three", "four"))]
    file.write_text("".join(lines[:2]))
    with cli.started("logs", uid, "-f") as following:
        assert [line_from(following.stdout)[-3:] for _ in range(3)][1:] == ["one", "two"]
        file.write_text("".join(lines[:3]))
        assert line_from(following.stdout).endswith("three")
        file.write_text("".join(lines[:2]))
        cli.ok("task", uid, "set", "priority=1")  # rings: the cut is seen
        time.sleep(1.5)
        file.write_text("".join(lines))
        assert line_from(following.stdout).endswith("four")
        following.send_signal(signal.SIGINT)
        assert following.wait(20) == 130


def record(uid: str, offset: int, text: str) -> str:
    """A line of log.jsonl."""
    said = {"kind": "text", "text": text}
    return json.dumps({"session": f"{uid}.1", "offset": offset, "at": 1_700_000_000_000, "said": said}) + "\n"


def test_following_can_be_broken_off(cli: Cli) -> None:
    """Ctrl-C ends it with 130; the note says why nothing comes."""
    uid = add(cli, {"say": "hello"})
    with cli.started("logs", uid, "-f") as following:
        assert line_from(following.stderr) == f"{uid} has said nothing yet"
        assert line_from(following.stderr).startswith(f"{uid} is queued")
        following.send_signal(signal.SIGINT)
        assert following.wait(20) == 130


def test_watching_needs_a_terminal(cli: Cli) -> None:
    """Without a terminal, or with --json, --watch is refused with a hint and exit 2."""
    for argv in (("tasks", "--watch"), ("tasks", "--watch", "--json")):
        done = cli.run(*argv)
        assert (done.code, done.out) == (2, "")
        assert "--watch needs a terminal" in done.err
        assert "`fleet watch` follows without one" in done.err
    master, slave = pty.openpty()
    env = {**cli.env, "TERM": "dumb"}  # nothing can be drawn over there: a person would see nothing until Ctrl-C
    dumb = subprocess.run([*FLEET, "tasks", "--watch"], env=env, stdout=slave, stderr=subprocess.PIPE, check=False)
    os.close(master)
    os.close(slave)
    assert (dumb.returncode, b"--watch needs a terminal" in dumb.stderr) == (2, True)
    done = cli.run("status", "--watch")
    assert (done.code, "`fleet top` shows the work as it goes" in done.err) == (4, True)


@pytest.mark.parametrize("colour", [True, False])
def test_watching_shows_what_runs(cli: Cli, colour: bool) -> None:
    """On a terminal the running task is shown with its context in colour, the table follows its end, Ctrl-C is 130."""
    add(cli, {"context": 170000}, {"sleep": 1.5}, {"say": "done"})
    with cli.started("run", "--drain", "-q") as supervisor:
        seen, code = watched(cli, {} if colour else {"NO_COLOR": "1"}, until=(b"170,000 85%", b"completed 1"))
        supervisor.wait(30)
    assert code == 130
    assert b"scripted" in seen
    assert (b"\x1b[31m170,000 85%" in seen) is colour


def watched(cli: Cli, env: dict[str, str], *, until: tuple[bytes, ...]) -> tuple[bytes, int]:
    """What `fleet tasks --watch` draws on a terminal until it has shown all of these, then Ctrl-C; its exit code."""
    ours, theirs = pty.openpty()
    before = signal.signal(signal.SIGINT, signal.default_int_handler)  # a test in the background ignores it
    process = subprocess.Popen(
        [*FLEET, "tasks", "--watch"],
        cwd=cli.cwd,
        env={**cli.env, "TERM": "xterm-256color", "COLUMNS": "160", "LINES": "40", **env},
        stdin=theirs,
        stdout=theirs,
        stderr=theirs,
        start_new_session=True,
    )
    signal.signal(signal.SIGINT, before)
    os.close(theirs)
    seen, deadline = b"", time.monotonic() + 30
    try:
        while not all(part in seen for part in until):
            ready, _, _ = select.select([ours], [], [], max(0.0, deadline - time.monotonic()))
            assert ready, seen
            seen += os.read(ours, 1 << 16)
        process.send_signal(signal.SIGINT)
        while process.poll() is None and time.monotonic() < deadline:
            if select.select([ours], [], [], 0.1)[0]:
                try:
                    seen += os.read(ours, 1 << 16)
                except OSError:
                    break
        return seen, process.wait(10)
    finally:
        if process.poll() is None:
            process.kill()
            process.wait()
        os.close(ours)
