"""What belongs to one task: its files, its fields, edits of its task.json by hand; and the supervisor's log."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
from pathlib import Path
from typing import Any

import pytest

from fleet import wiring
from fleet.config.settings import Settings
from fleet.errors import UsageError
from fleet.front.logs import MOST_TEXT
from fleet.hosts.machine import local_host
from fleet.model.task import Task
from fleet.supervisor import handwritten
from fleet.testing.builders import DEFAULTS, a_task, slots
from tests.support.cli import Cli

FILES = {
    "log": "log.jsonl",
    "plan": "artifacts/PLAN_AND_STATUS.md",
    "knowledge": "artifacts/KNOWLEDGE.md",
    "qa": "artifacts/Q&A.md",
    "stderr": "stderr.log",
}


# task ID log|plan|knowledge|qa|stderr|events


@pytest.mark.parametrize("what", FILES)
def test_a_file_of_a_task(cli: Cli, what: str) -> None:
    """A file is printed as it is, ended by a line end; one that is not there yet is a note with its path, no error."""
    uid = cli.add("work")
    file = cli.task_file(uid, FILES[what])
    missing = cli.ok("task", uid, what)
    assert missing.out == ""
    assert missing.err.startswith(f"{uid} has no {what} yet (")
    file.write_bytes("first\nsecond: 日本".encode())
    assert cli.ok("task", uid, what).out == "first\nsecond: 日本\n"
    found = cli.json("task", uid, what)
    assert found == {"task": uid, "file": str(file), "text": "first\nsecond: 日本", "left_out": 0}


def test_files_that_are_not_text_or_not_readable(cli: Cli) -> None:
    """Bytes that are no text are shown as such, and a directory in a file's place is an error with its name."""
    uid = cli.add("work")
    cli.task_file(uid, FILES["log"]).write_bytes(b"\xff\xfe ok\n")
    assert cli.ok("task", uid, "log").out == "\ufffd\ufffd ok\n"
    cli.task_file(uid, FILES["plan"]).mkdir()
    done = cli.run("task", uid, "plan")
    assert (done.code, done.out) == (1, "")
    assert "PLAN_AND_STATUS.md cannot be read: Is a directory" in done.err


@pytest.mark.parametrize("what", FILES)
def test_a_word_that_no_file_can_be_called(cli: Cli, what: str) -> None:
    """It is the name of no task, as any other that is none."""
    cli.add("work")
    done = cli.run("task", "0" * 300, what)
    assert (done.code, done.out) == (4, "")
    assert done.err.startswith("error: no task `000")


def test_stderr_is_found_under_its_old_name(cli: Cli) -> None:
    """What an older supervisor wrote to log.stderr is printed as long as there is no stderr.log."""
    uid = cli.add("work")
    cli.task_file(uid, "log.stderr").write_text("old\n")
    assert cli.ok("task", uid, "stderr").out == "old\n"
    cli.task_file(uid, "stderr.log").write_text("new\n")
    assert cli.ok("task", uid, "stderr").out == "new\n"


def test_events_of_a_task(cli: Cli) -> None:
    """The events of one task are printed in order, as words or as objects, and no others."""
    uid = cli.add("work")
    cli.add("other")
    cli.ok("task", uid, "set", "priority=0")
    cli.ok("stop", uid, "--reason", "enough")
    lines = cli.ok("task", uid, "events").lines
    assert [line.split()[4] for line in lines] == ["task.submitted", "task.edited", "task.settled"]
    assert lines[1].endswith("priority=0  (ana)")
    assert "cancelled: enough" in lines[2]
    events = cli.json("task", uid, "events")
    assert [entry["event"]["kind"] for entry in events] == ["task.submitted", "task.edited", "task.settled"]


def test_task_refuses_what_it_does_not_know(cli: Cli) -> None:
    """An unknown file is exit 2 with the choices, an unknown task exit 4, and values go with `set` only."""
    uid = cli.add("work")
    assert "plan" in cli.run("task", uid, "diary").err
    assert cli.run("task", uid, "diary").code == 2
    assert cli.run("task", uid).code == 2
    assert cli.run("task", "fleet-000", "log").code == 4
    assert cli.run("task", uid, "log", "coder=x").err == "error: `coder=x`: only `set` takes values\n"


def test_a_file_without_end_is_shown_in_part(cli: Cli) -> None:
    """An agent may write any amount into its files: so much of one is shown, and what is left out is said."""
    uid = cli.add("work")
    file = cli.task_file(uid, "artifacts/PLAN_AND_STATUS.md")
    file.parent.mkdir(exist_ok=True)
    file.write_bytes(b"x" * MOST_TEXT + b"12345")
    done = cli.ok("task", uid, "plan")
    assert done.out == "x" * MOST_TEXT + "\n"
    assert done.err == f"the last 5 bytes of {file} are left out\n"
    assert cli.json("task", uid, "plan")["left_out"] == 5


def test_logs_prints_the_tail(cli: Cli) -> None:
    """`fleet logs` prints the last 50 lines of a task's log, or as many as are asked for."""
    uid = cli.add("work")
    assert cli.ok("logs", uid).out == ""
    cli.task_file(uid, "log.jsonl").write_text("".join(f"{n}\n" for n in range(100)))
    assert cli.ok("logs", uid).lines == [str(n) for n in range(50, 100)]
    assert cli.ok("logs", uid, "-n", "2").lines == ["98", "99"]
    assert cli.run("logs", uid, "-n", "0").code == 2


def test_help_of_task_lists_what_runs(cli: Cli) -> None:
    """`fleet task --help` ends with the ids that can be named now, each with its effective [coder/model]."""
    assert cli.ok("task", "--help").out.endswith("running now: none\n")
    plain, chosen = cli.add("plain"), cli.add("chosen", "--coder", "codex", "--model", "o3")
    with cli.store() as store:
        store.join("sup-1", machine="here", pid=os.getpid(), seconds=60).result()
        store.claim("sup-1", slots(2, host=store.task(plain).host), DEFAULTS).result()
    ending = ["running now:", f"  {plain}  [scripted/small]  plain", f"  {chosen}  [codex/o3]  chosen"]
    assert cli.ok("task", "--help").lines[-3:] == ending
    assert cli.ok("help", "task").lines[-3:] == ending
    elsewhere = cli.path / "elsewhere"
    for argv in (["--home", str(elsewhere), "task", "--help"], ["task", "--help", "--home", str(elsewhere)]):
        assert "running now" not in cli.ok(*argv).out
    assert not elsewhere.exists()


# task ID set


def test_set_changes_the_fields_of_a_task(cli: Cli) -> None:
    """`set` changes what it names and says how the task stands; an empty value goes back to the default."""
    uid = cli.add("work")
    done = cli.ok("task", uid, "set", "coder=codex", "model=o3", "priority=0", "cwd=..")
    assert done.out == f"{uid}: coder=codex, model=o3, cwd={cli.path}, priority=0\n"
    shown = cli.ok("show", uid).lines
    assert "coder:      codex" in shown
    assert "priority:   0" in shown
    assert json.loads(cli.task_file(uid, "task.json").read_text())["coder"] == "codex"
    done = cli.ok("task", uid, "set", "coder=", "model=", "cwd=")
    assert done.out == f"{uid}: coder=(default), model=(default), cwd=(default), priority=0\n"
    task = cli.json("task", uid, "set", "model=opus")
    assert (task["id"], task["model"], task["host"]) == (uid, "opus", None)


@pytest.mark.parametrize(
    ("pairs", "error"),
    [
        ([], "nothing to set"),
        (["coder"], "`coder` is none of coder=, model=, cwd=, priority="),
        (["title=x"], "`title=x` is none of coder=, model=, cwd=, priority="),
        (["coder=cladue"], "unknown coder `cladue`"),
        (["priority=high"], "priority must be 0 (most urgent) to 4, not `high`"),
        (["priority="], "priority must be 0 (most urgent) to 4, not ``"),
        (["priority=5"], "priority 5 is not one of 0"),
        (["cwd=/nowhere"], "error: cwd=/nowhere is not a directory\n"),
        (["model=o3", "coder=nobody"], "unknown coder `nobody`"),
    ],
)
def test_set_changes_all_or_nothing(cli: Cli, pairs: list[str], error: str) -> None:
    """One value that cannot be taken leaves the task as it was."""
    with cli.control() as control:
        uid = control.add(a_task("work")).uid
    before = cli.events()
    done = cli.run("task", uid, "set", *pairs)
    assert (done.code, done.out) == (2, "")
    assert error in done.err
    assert cli.events() == before


# task.json by hand


def edit(cli: Cli, uid: str, **fields: Any) -> Path:
    """Change a task.json as a person does with an editor."""
    file = cli.task_file(uid, "task.json")
    file.write_text(json.dumps({**json.loads(file.read_text()), **fields}, indent=4))
    return file


def taken(cli: Cli, uid: str) -> Task:
    """The task, once a hand edit was taken as at its next claim."""

    async def take() -> Task:
        house = wiring.open_house(cli.home, Settings(), coder=None, model=None, echo=None)
        with contextlib.closing(house.store):
            return await handwritten.take(house, house.store.task(uid))

    return asyncio.run(take())


def test_a_hand_edit_is_shown_and_taken(cli: Cli) -> None:
    """What was changed in task.json is shown as pending, and is the task's own once it is taken."""
    uid = cli.add("work")
    edit(cli, uid, coder="codex", model="o3", cwd="/srv")
    lines = cli.ok("show", uid).lines
    assert "coder:      claude (default); codex in task.json, taken at the next claim" in lines
    assert "model:      sonnet (default); o3 in task.json, taken at the next claim" in lines
    assert "            cwd is /srv in task.json; taken at the next claim" in lines
    after = taken(cli, uid)
    assert (after.coder, after.model, after.cwd) == ("codex", "o3", "/srv")
    assert after.host == local_host()  # where that directory is
    before = cli.events()
    assert taken(cli, uid) == after
    assert cli.events() == before
    shown = cli.ok("show", uid)
    assert "coder:      codex\n" in shown.out
    assert "task.json" not in shown.out
    edit(cli, uid, coder=None)
    assert "coder:      codex; the default in task.json, taken at the next claim" in cli.ok("show", uid).lines


def test_a_hand_edit_survives_other_commands(cli: Cli) -> None:
    """A command that changes something else leaves a pending edit in the file; one that sets the same field wins."""
    uid = cli.add("work")
    file = edit(cli, uid, coder="codex", model="o3", mine={"note": "kept"})
    cli.ok("task", uid, "set", "priority=0", "model=opus")
    content = json.loads(file.read_text())
    assert (content["priority"], content["coder"], content["model"]) == (0, "codex", "opus")
    assert content["mine"] == {"note": "kept"}
    lines = cli.ok("show", uid).lines
    assert "coder:      claude (default); codex in task.json, taken at the next claim" in lines
    assert "model:      opus" in lines


def test_an_older_task_file_is_understood(cli: Cli) -> None:
    """A file with nothing but cwd, coder and model, as older supervisors have it, is an edit like any other."""
    uid = cli.add("work")
    cli.task_file(uid, "task.json").write_text('{"cwd": "/srv", "coder": "agy"}')
    after = taken(cli, uid)
    assert (after.cwd, after.coder, after.model) == ("/srv", "agy", None)


def test_an_unknown_coder_in_the_file_is_an_error(cli: Cli) -> None:
    """A coder that nobody registered is refused when the edit is taken, with the nearest name; nothing changes."""
    uid = cli.add("work")
    edit(cli, uid, coder="cladue")
    before = cli.events()
    with pytest.raises(UsageError, match="unknown coder `cladue`") as caught:
        taken(cli, uid)
    assert caught.value.hint == "did you mean `claude`?"
    assert cli.events() == before


@pytest.mark.parametrize("content", ["{", "[]", '{"coder": 5}', "", "\ufeff{}", '{"as_written": []}'])
def test_a_broken_file_is_reported_and_left_alone(cli: Cli, content: str) -> None:
    """`show` goes on and says what is wrong; taking the edit is an error; no command overwrites the file."""
    uid = cli.add("work")
    file = cli.task_file(uid, "task.json")
    file.write_text(content)
    shown = cli.ok("show", uid)
    assert "title:      work\n" in shown.out
    assert f"            {file} cannot be read: " in shown.out
    with pytest.raises(UsageError, match="cannot be read"):
        taken(cli, uid)
    cli.ok("task", uid, "set", "priority=0")
    assert file.read_text() == content
    file.unlink()
    cli.ok("task", uid, "set", "priority=1")
    assert json.loads(file.read_text())["priority"] == 1


# log


def test_log_prints_the_newest_file(cli: Cli) -> None:
    """The whole newest log is printed, or its last N lines; a log of an older supervisor counts too."""
    assert cli.ok("log").err == f"there is no log yet in {cli.home.logs}: no supervisor has run\n"
    assert cli.json("log") == {"file": None, "lines": []}
    old, new = cli.home.logs / "fleet-2024-01-02.jsonl", cli.home.logs / "fleet-2024-01-01.jsonl"
    old.write_text("old\n")
    new.write_text("1\n2\n3\n")
    (cli.home.logs / "other.txt").write_text("not a log")
    os.utime(old, (1, 1))
    assert cli.ok("log").lines == ["1", "2", "3"]
    assert cli.ok("log", "2").lines == ["2", "3"]
    assert cli.ok("log", "999999999999999999999999").lines == ["1", "2", "3"]
    assert cli.json("log", "1") == {"file": str(new), "lines": ["3"]}
    cli.home.old_logs.mkdir()
    older = cli.home.old_logs / "fleet-2020-01-01.jsonl"
    older.write_text("from before\n")
    os.utime(new, (2, 2))
    assert cli.ok("log").lines == ["from before"]


@pytest.mark.parametrize(
    ("word", "hint"),
    [
        ("0", "`fleet log 200` prints the last 200 lines"),
        ("-1", "`fleet log 200` prints the last 200 lines"),
        ("1.5", "`fleet log 200` prints the last 200 lines"),
        ("", "`fleet log 200` prints the last 200 lines"),
        ("all", "the log of one task is `fleet logs all`"),
        ("fleet-abc", "the log of one task is `fleet logs fleet-abc`"),
    ],
)
def test_log_wants_a_positive_number(cli: Cli, word: str, hint: str) -> None:
    """Anything but a positive number is exit 2, and an id leads to the command that takes one."""
    done = cli.run("log", word)
    assert (done.code, done.out) == (2, "")
    assert done.err == f"error: N must be a positive number, not `{word}`\nhint: {hint}\n"
