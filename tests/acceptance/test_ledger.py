"""`fleet ledger`: tail, follow, export, and the check that finds what was tampered with."""

from __future__ import annotations

import json
import os
import re
import signal
from pathlib import Path

import apsw
import pytest

from fleet.testing.builders import a_task
from tests.support.cli import Cli, line_from


def submit(cli: Cli, n: int) -> list[str]:
    """Tasks, all at once."""
    with cli.store() as store:
        return [task.uid for task in store.submit([a_task(f"task {k}") for k in range(n)], by="ana").result()]


def test_tail(cli: Cli) -> None:
    """The newest events are printed, oldest of them first: place, time, subject, kind, gist and author."""
    assert cli.ok("ledger", "tail") == (0, "", "")
    uids = submit(cli, 25)
    lines = cli.ok("ledger", "tail").lines
    assert [line.split()[3] for line in lines] == uids[5:]
    line = r" +25  \d{4}-\d\d-\d\d \d\d:\d\d:\d\d  fleet-\w+ +task\.submitted +task 24  \(ana\)"
    assert re.fullmatch(line, lines[-1])
    assert [line.split()[3] for line in cli.ok("ledger", "tail", "-n", "2").lines] == uids[23:]
    assert [line.split()[3] for line in cli.ok("ledger", "tail", "--task", uids[0]).lines] == uids[:1]
    as_json = cli.ok("ledger", "tail", "-n", "1", "--json").lines
    assert [json.loads(line)["event"]["task"]["uid"] for line in as_json] == uids[-1:]
    assert cli.run("ledger", "tail", "--task", "fleet-000").code == 4


def test_follow(cli: Cli) -> None:
    """-f prints each event as it is committed, by whatever process, and Ctrl-C ends it with 130 and no complaint."""
    first = cli.add("first")
    with cli.started("ledger", "tail", "-f") as follower:
        assert first in line_from(follower.stdout)
        for n in range(3):
            uid = cli.add(f"new {n}")
            line = line_from(follower.stdout)
            assert uid in line
            assert f"new {n}" in line
        follower.send_signal(signal.SIGINT)
        assert follower.wait(20) == 130
        assert follower.stderr is not None
        assert follower.stderr.read() == b""
    assert os.listdir(cli.home.bells) == []


def test_follow_one_task(cli: Cli) -> None:
    """-f --task prints what happens to that task and passes over the rest."""
    mine = cli.add("mine")
    with cli.started("ledger", "tail", "-f", "--task", mine, "--json") as follower:
        assert mine in line_from(follower.stdout)
        cli.add("other")
        cli.ok("task", mine, "set", "priority=0")
        assert json.loads(line_from(follower.stdout))["event"]["kind"] == "task.edited"


def test_export_and_the_mirror_are_the_same(cli: Cli) -> None:
    """An export, on stdout or to a file, is byte for byte what fleet.jsonl has."""
    for n in range(3):
        cli.add(f"task {n}")
    exported = cli.ok("ledger", "export").out
    assert exported == cli.home.mirror.read_text()
    done = cli.ok("ledger", "export", "-o", "out.jsonl")
    assert (done.out, done.err) == ("", "3 events written to out.jsonl\n")
    assert (cli.cwd / "out.jsonl").read_text() == exported
    assert os.listdir(cli.cwd) == ["out.jsonl"]
    for target in ("missing/out.jsonl", "out.jsonl/below", "."):
        done = cli.run("ledger", "export", "-o", target)
        assert done.code == 2
        assert "cannot be written: " in done.err
    assert os.listdir(cli.cwd) == ["out.jsonl"]
    assert cli.run("ledger", "export", "out.jsonl").code == 2


def test_verify(cli: Cli) -> None:
    """A ledger that nobody touched holds: in the home, in an export, in the mirror, and against kept heads."""
    uid = submit(cli, 2)[0]
    assert cli.ok("ledger", "verify").out == "OK: 2 events in 2 chains hold\n"
    (cli.cwd / "heads.json").write_text(cli.ok("ledger", "export", "--heads").out)
    cli.ok("task", uid, "set", "priority=0")
    assert cli.ok("ledger", "verify", "--heads", "heads.json").out == (
        "OK: 3 events in 2 chains hold, 2 kept heads found\n"
    )
    cli.ok("ledger", "export", "-o", "out.jsonl")
    assert cli.ok("ledger", "verify", "out.jsonl", "--heads", "heads.json").code == 0
    assert cli.ok("ledger", "verify", str(cli.home.mirror)).code == 0
    found = cli.json("ledger", "verify")
    assert (found["events"], found["chains"], found["tasks"]) == (3, 2, 2)


@pytest.mark.parametrize("tampering", ["a word", "a removed line", "two lines swapped", "a forged hash", "garbage"])
def test_verify_finds_what_was_tampered_with_in_a_file(cli: Cli, tampering: str) -> None:
    """An exported ledger in which anything was changed, removed or moved does not pass: exit 1 and where it breaks."""
    uid = submit(cli, 1)[0]
    with cli.control() as control:
        for n in range(3):
            control.comment(uid, f"remark {n}")
    lines = cli.home.mirror.read_text().splitlines(keepends=True)
    if tampering == "a word":
        lines[1] = lines[1].replace("remark 0", "remark 9")
    elif tampering == "a removed line":
        del lines[1]
    elif tampering == "two lines swapped":
        lines[1], lines[2] = lines[2], lines[1]
    elif tampering == "a forged hash":
        lines[1] = re.sub('"hash":"..', '"hash":"00', lines[1])
    else:
        lines[1] = "garbage\n"
    (cli.cwd / "out.jsonl").write_text("".join(lines))
    done = cli.run("ledger", "verify", "out.jsonl")
    assert (done.code, done.out) == (1, "")
    assert done.err.startswith("error: ")
    assert uid in done.err or "out.jsonl:2" in done.err


def test_verify_finds_an_end_that_was_cut_off(cli: Cli) -> None:
    """A chain that lost its newest events holds by itself, but not against heads that were kept."""
    uid = submit(cli, 1)[0]
    with cli.control() as control:
        control.comment(uid, "the last word")
    (cli.cwd / "heads.json").write_text(cli.ok("ledger", "export", "--heads").out)
    lines = cli.home.mirror.read_text().splitlines(keepends=True)
    (cli.cwd / "cut.jsonl").write_text("".join(lines[:-1]))
    assert cli.run("ledger", "verify", "cut.jsonl").code == 0
    done = cli.run("ledger", "verify", "cut.jsonl", "--heads", "heads.json")
    assert done.code == 1
    assert f"the chain of {uid} does not contain the head" in done.err


def tamper(home: Path, *statements: str) -> None:
    """As somebody with a SQLite shell would."""
    connection = apsw.Connection(str(home / "fleet.db"))
    for statement in statements:
        connection.execute(statement)
    connection.close()


UNLOCK = ("DROP TRIGGER events_stay", "DROP TRIGGER events_last")


@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE events SET body = replace(body, 'remark 0', 'remark 9')",
        "DELETE FROM events WHERE seq = 2",
        "UPDATE events SET body = '{' WHERE seq = 2",
        "UPDATE events SET body = x'ff' WHERE seq = 2",
        "UPDATE events SET body = CAST(x'ff' AS TEXT) WHERE seq = 2",
        "UPDATE events SET hash = 'text' WHERE seq = 2",
        "UPDATE events SET seq = seq + 10 WHERE seq = 2",
        "UPDATE tasks SET doc = replace(doc, 'task 0', 'task 9')",
        "UPDATE tasks SET doc = '{}'",
        "UPDATE tasks SET doc = CAST(x'ff' AS TEXT)",
        "DELETE FROM tasks",
        "UPDATE tasks SET hash = x'00'",
        "UPDATE tasks SET head = head - 1, hash = (SELECT hash FROM events WHERE seq = head - 1)",
        "UPDATE events SET prev = NULL WHERE seq = 3",
    ],
)
def test_verify_finds_what_was_tampered_with_in_the_database(cli: Cli, statement: str) -> None:
    """An event or a row that was changed behind Fleet's back is found: exit 1 and a sentence, never a traceback."""
    uid = submit(cli, 1)[0]
    with cli.control() as control:
        for n in range(3):
            control.comment(uid, f"remark {n}")
    tamper(cli.home.path, *UNLOCK, statement)
    done = cli.run("ledger", "verify")
    assert (done.code, done.out) == (1, "")
    assert done.err.startswith("error: ")


def test_the_ledger_cannot_be_changed_by_a_plain_statement(cli: Cli) -> None:
    """The database itself refuses to change or delete an event."""
    uid = submit(cli, 1)[0]
    cli.ok("stop", uid)
    for statement in ("UPDATE events SET at = 0", "DELETE FROM events"):
        with pytest.raises(apsw.ConstraintError, match="are never"):
            tamper(cli.home.path, statement)
    assert cli.ok("ledger", "verify").code == 0


def test_verify_refuses_files_that_are_no_ledger(cli: Cli) -> None:
    """A file that cannot be read, or heads that are none, is exit 2 with the name of the file."""
    (cli.cwd / "list.json").write_text("[1]")
    for argv in (["missing.jsonl"], ["--heads", "missing.json"], ["--heads", "list.json"], ["."]):
        done = cli.run("ledger", "verify", *argv)
        assert done.code == 2, argv
        assert done.err.startswith(f"error: {argv[-1]} ")
    (cli.cwd / "text").write_text("once upon a time\n")
    done = cli.run("ledger", "verify", "text")
    assert (done.code, done.err.startswith("error: text:1: this is not a line of a ledger")) == (1, True)
