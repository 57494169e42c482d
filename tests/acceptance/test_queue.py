"""The queue as a person uses it: add, ready, show, tasks, stop, status."""

from __future__ import annotations

import json
import os
import re
import subprocess
from pathlib import Path

import pytest

from fleet.model.run import NewRun
from fleet.testing.builders import CRASHED, DEFAULTS, EXITED, a_fail, a_partial, a_pass, a_task, slots
from tests.support.cli import FLEET, Cli

SUP = "sup-1"


# add


def test_add_says_the_id_the_title_and_what_was_recorded(cli: Cli) -> None:
    """The line names the new task, the directory and each choice that was made; nothing goes to stderr."""
    plain = cli.ok("add", "Fix the login page")
    assert re.fullmatch(rf"Created fleet-\w{{3}}: Fix the login page  \[cwd: {cli.cwd}\]\n", plain.out)
    assert plain.err == ""
    chosen = cli.ok("add", "Heavy refactor", "--coder", "agy", "--model", "opus")
    assert chosen.out.endswith(f": Heavy refactor  [cwd: {cli.cwd}, coder: agy, model: opus]\n")


def test_add_takes_a_description_from_words_a_file_or_stdin(cli: Cli, tmp_path: Path) -> None:
    """-d TEXT, -d @FILE and -d - all give the same description."""
    text = "It loops.\n\nAfter a wrong password: ünïcödé.\n"
    (tmp_path / "notes.md").write_text(text, "utf-8")
    given = [
        cli.json("add", "a", "-d", text),
        cli.json("add", "b", "-d", f"@{tmp_path / 'notes.md'}"),
        cli.json("add", "c", "--description", "-", input=text),
    ]
    assert [task["description"] for task in given] == [text] * 3
    (cli.path / "user").mkdir()
    (cli.path / "user" / "mine.md").write_text("from home")
    assert cli.json("add", "d", "-d", "@~/mine.md")["description"] == "from home"


def test_add_keeps_every_field(cli: Cli, tmp_path: Path) -> None:
    """Coder, model, priority, needs, directory and labels are stored as they were given."""
    one, two, three = cli.add("one"), cli.add("two"), cli.add("three")
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    task = cli.json(
        "add",
        "all of it",
        *("--coder", "codex", "--model", "o3", "--priority", "0"),
        *("--needs", one, two.removeprefix("fleet-"), "--needs", three),
        *("--cwd", "../elsewhere", "--label", "area=web", "--label", "urgent", "--label", "a=b=c"),
    )
    assert (task["coder"], task["model"], task["priority"]) == ("codex", "o3", 0)
    assert task["needs"] == [{"id": uid, "state": "queued"} for uid in (one, two, three)]
    assert task["cwd"] == str(elsewhere)
    assert task["labels"] == {"area": "web", "urgent": "", "a": "b=c"}
    assert task["created_by"] == "ana"
    assert task["host"].startswith("local@")


def test_add_as_json_has_every_field(cli: Cli) -> None:
    """--json gives the whole task, also the fields that have their default."""
    task = cli.json("add", "plain")
    assert (task["state"], task["priority"], task["needs"], task["question"]) == ("queued", 2, [], None)
    assert (task["coder"], task["coder_inherited"], task["model"]) == ("claude", True, "sonnet")
    assert cli.ok("add", "for a script", "-q").out == cli.json("ready")[1]["id"] + "\n"


def test_add_names_its_author(cli: Cli) -> None:
    """$FLEET_ACTOR goes before the user's name."""
    assert cli.json("add", "x", env={"FLEET_ACTOR": "release bot"})["created_by"] == "release bot"


TITLES = [
    *("日本語の題名", "🦑 squid 👩‍👩‍👧", "שלום עולם", "مرحبا", "naïve café", "a [bold]b[/bold] {c} %s \\n"),
    "  spaces  kept  ",
]


def test_names_in_any_script_come_back(cli: Cli) -> None:
    """A title in any script, or full of marks that mean something elsewhere, is shown as it was given."""
    japanese = cli.add(TITLES[0], "-d", TITLES[1])
    with cli.store() as store:
        store.submit([a_task(title, description=title) for title in TITLES[1:]], by="ana").result()
    assert [task["title"] for task in cli.json("ready")] == TITLES
    for argv in (["ready"], ["tasks", "--status", "all"], ["ledger", "tail"]):
        printed = cli.ok(*argv).out
        assert all(title in printed for title in TITLES)
    shown = cli.ok("show", japanese)
    assert f"title:      {TITLES[0]}\n" in shown.out
    assert shown.out.endswith(f"\n\n{TITLES[1]}\n")


@pytest.mark.parametrize(
    ("argv", "code", "error", "hint"),
    [
        (["add", ""], 2, "the title is empty", "give it in quotes"),
        (["add", " \t "], 2, "the title is empty", ""),
        (["add", "two\nlines"], 2, "the title must be one printable line", "use -d"),
        (["add", "escape \x1b[31m"], 2, "the title must be one printable line", ""),
        (["add", "x" * 501], 2, "the title has 501 characters; at most 500 fit", "use -d"),
        (["add"], 2, "TITLE", "see `fleet add --help`"),
        (["add", "x", "--needs", "fleet-000"], 4, "no task `fleet-000`", ""),
        (["add", "x", "--needs", ""], 4, "no task ``", ""),
        (["add", "x", "--coder", "cladue"], 2, "unknown coder `cladue`", "did you mean `claude`?"),
        (["add", "x", "--coder", "command", "--model", "o3"], 2, "a command has no model, and `o3` is given", "leave"),
        (["add", "x", "--coder", "zzzzzz"], 2, "unknown coder `zzzzzz`", "registered coders: agy, claude"),
        (["add", "x", "--priority", "5"], 2, "priority 5 is not one of 0 (most urgent) to 4", ""),
        (["add", "x", "--priority", "-1"], 2, "priority -1", ""),
        (["add", "x", "--priority", "high"], 2, "--priority", "see `fleet add --help`"),
        (["add", "x", "--cwd", "nowhere"], 2, "is not a directory", ""),
        (["add", "x", "-d", "@missing.md"], 2, "missing.md cannot be read: No such file", ""),
        (["add", "x", "-d", "@."], 2, "cannot be read: Is a directory", ""),
        (["add", "x", "-d", "@binary"], 2, "binary is not text: invalid start byte at byte 4", ""),
        (["add", "x", "--label", "=web"], 2, "--label `=web` has no name", "--label area=web"),
        (["add", b"\xff\xfe"], 2, "not UTF-8 text", ""),
        (["add", "x", "--label", b"\xff=1"], 2, "not UTF-8 text", ""),
        (["add", "x", "--frobnicate"], 2, "--frobnicate", "see `fleet add --help`"),
        (
            ["add", "x", "--prior", "1"],
            2,
            "--prior",
            "",
        ),  # no abbreviations: a new option must not change their meaning
    ],
)
def test_what_cannot_be_taken_writes_nothing(
    cli: Cli, argv: list[str | bytes], code: int, error: str, hint: str
) -> None:
    """Bad input has its exit code, one sentence and a hint, and neither the ledger nor the home changes."""
    with cli.store() as store:
        store.submit([a_task("already here")], by="ana").result()
    (cli.cwd / "binary").write_bytes(b"text\xff\x00\x01")
    before, tasks = cli.events(), os.listdir(cli.home.tasks)
    done = cli.run(*argv)
    assert (done.code, done.out) == (code, "")
    first, *rest = done.err.splitlines()
    assert first.startswith("error: ")
    assert error in first
    assert hint in "".join(rest)
    assert cli.events() == before
    assert os.listdir(cli.home.tasks) == tasks


def test_binary_on_stdin_is_refused(cli: Cli) -> None:
    """What comes on stdin and is not text is an error, and nothing is added."""
    done = cli.run("add", "x", "-d", "-", input=b"\x89PNG\r\n")
    assert (done.code, done.err) == (2, "error: stdin is not text: invalid start byte at byte 0\n")
    assert cli.events() == 0


def test_a_description_that_is_too_long_is_refused_and_not_cut(cli: Cli, tmp_path: Path) -> None:
    """More than 10 MiB is refused, from a file and from stdin alike; exactly 10 MiB fits and is shown in full."""
    limit = 10 << 20
    (tmp_path / "long").write_bytes(b"x" * (limit + 1))
    for how in ({"input": b"x" * (limit + 1)}, {}):
        done = cli.run("add", "x", "-d", "-" if how else f"@{tmp_path / 'long'}", **how)  # type: ignore[arg-type]
        assert done.code == 2
        assert "has more than 10 MiB" in done.err
    uid = cli.add("fits", "-d", "-", input=b"y" * limit)
    shown = cli.ok("show", uid)
    assert len(shown.out) > limit
    assert "task.json" not in shown.out


def test_a_task_cannot_need_one_that_will_not_be_completed(cli: Cli) -> None:
    """--needs of a cancelled or failed task is refused with what to do instead, and nothing is written."""
    cancelled, failed = cli.add("cancelled"), cli.add("failed")
    cli.ok("stop", cancelled)
    with cli.store() as store:
        store.join(SUP, machine="here", pid=os.getpid(), seconds=60).result()
        (claimed,) = store.claim(SUP, slots(1, host=store.task(failed).host), DEFAULTS).result()
        store.finish(claimed.session.fence, CRASHED, a_fail(), by=SUP).result()
    before = cli.events()
    for uid, state in ((cancelled, "cancelled"), (failed, "failed")):
        done = cli.run("add", "late", "--needs", uid)
        assert done.code == 2
        assert f"needs {uid}, which is {state}; a task that needs it could never start" in done.err
        assert f"hint: restart {uid} first, or leave it out" in done.err
    assert cli.events() == before


def test_add_cannot_make_a_circle(cli: Cli) -> None:
    """A new task needs only what is there, so that no order of `fleet add` leaves a task waiting for itself."""
    uids = [cli.add("0")]
    for n in range(1, 4):
        uids.append(cli.add(str(n), "--needs", *uids))
    assert [task["id"] for task in cli.json("ready")] == uids[:1]
    assert cli.run("add", "x", "--needs", "0").code == 4  # no id has a 0
    assert cli.json("ledger", "verify")["tasks"] == 4


def test_the_directory_that_was_removed(cli: Cli) -> None:
    """From a directory that is gone, `fleet add` says so; with --cwd it works."""
    gone = cli.path / "gone"
    gone.mkdir()
    script = f'rmdir "{gone}" && exec "$@"'
    argv = ["sh", "-c", script, "sh", *FLEET, "add", "x"]
    done = subprocess.run(argv, cwd=gone, env=cli.env, capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert done.stderr == "error: the current directory no longer exists\nhint: name another with --cwd\n"


# ready


def test_ready_lists_what_could_start_most_urgent_first(cli: Cli) -> None:
    """A line has the id, the priority, the title and the directory; order is by priority, then age."""
    later, urgent, other = cli.add("later"), cli.add("urgent", "--priority", "0"), cli.add("other")
    cli.add("waits", "--needs", later)
    done = cli.ok("ready")
    assert done.lines == [
        f"{urgent}  P0  urgent  {cli.cwd}",
        f"{later}  P2  later   {cli.cwd}",
        f"{other}  P2  other   {cli.cwd}",
    ]
    assert done.err == ""
    limited = cli.ok("ready", "--limit", "2")
    assert limited.lines == done.lines[:2]
    assert limited.err == "(2 shown; --limit N shows more)\n"
    assert len(cli.json("ready", "--limit", "2")) == 2
    assert cli.ok("ready", "--limit", "3").err == ""


def test_ready_as_json(cli: Cli) -> None:
    """With --json the same lines are objects, and an empty queue is an empty list."""
    assert cli.json("ready") == []
    uid = cli.add("one", "--priority", "1")
    assert cli.json("ready") == [{"id": uid, "title": "one", "cwd": str(cli.cwd), "priority": 1}]


def test_ready_says_why_it_is_empty(cli: Cli) -> None:
    """An empty list goes to nobody's stdout; the note says whether nothing is there or all of it waits."""
    done = cli.ok("ready")
    assert (done.out, done.err) == ("", 'nothing is ready; add something: fleet add "TITLE"\n')
    first = cli.add("first")
    cli.add("second", "--needs", first)
    with cli.store() as store:
        store.block(first, "held", "wait for May", by="ana").result()
    done = cli.ok("ready")
    assert (done.out, done.err) == (
        "",
        "nothing is ready: 1 queued (waiting for others, or for their time), 1 blocked\n",
    )


@pytest.mark.parametrize("word", ["0", "-3", "x", "1.5", ""])
def test_a_limit_is_a_positive_number(cli: Cli, word: str) -> None:
    """A --limit that is no positive number is refused by every command that has one."""
    for command in ("ready", "tasks"):
        done = cli.run(command, f"--limit={word}")
        assert done.code == 2
        assert f"must be a positive number, not `{word}`" in done.err


# show


def test_show_tags_what_is_inherited(cli: Cli) -> None:
    """A coder or model from fleet.toml is tagged (default), one of the task's own stands bare."""
    shown = cli.ok("show", cli.add("plain")).lines
    assert "coder:      claude (default)" in shown
    assert "model:      sonnet (default)" in shown
    shown = cli.ok("show", cli.add("own", "--coder", "claude", "--model", "opus")).lines
    assert "coder:      claude" in shown
    assert "model:      opus" in shown
    shown = cli.ok("show", cli.add("other coder", "--coder", "codex")).lines
    assert "coder:      codex" in shown
    assert "model:      the coder's own (default)" in shown
    for coder, model in (("command", "-"), ("scripted", "-"), ("codex", "the coder's own (default)")):
        cli.ok("config", "set", f"coder={coder}")
        uid = cli.add("inherits")
        assert f"model:      {model}" in cli.ok("show", uid).lines
        assert cli.json("show", uid)["data"][0]["fleet"]["model"] is None
    cli.ok("config", "set", "coder=agy", "model=large")
    shown = cli.ok("show", cli.add("after")).lines
    assert "coder:      agy (default)" in shown
    assert "model:      large (default)" in shown


def test_show_tells_all_that_is_known(cli: Cli) -> None:
    """Status, directory, priority, needs with states, labels, description have a line each; what is absent has none."""
    done, open_, failed = cli.add("done"), cli.add("open"), cli.add("failed")
    uid = cli.add(
        "all",
        "-d",
        "the details",
        "--needs",
        done,
        open_,
        "--label",
        "area=web",
        "--label",
        "urgent",
        "--priority",
        "1",
    )
    with cli.store() as store:
        store.settle(done, a_pass(), by="ana").result()
    lines = cli.ok("show", uid).lines
    assert lines[0] == f"id:         {uid}"
    assert f"status:     queued: waits for {open_}" in lines
    assert f"cwd:        {cli.cwd}" in lines
    assert "priority:   1" in lines
    assert f"needs:      {done} (completed), {open_} (queued)" in lines
    assert "labels:     area=web, urgent" in lines
    assert any(re.fullmatch(r"created:    \d{4}-\d\d-\d\d \d\d:\d\d:\d\d by ana \(\d+s ago\)", line) for line in lines)
    assert lines[-2:] == ["", "the details"]
    assert f"needed by:  {uid}" in cli.ok("show", open_).lines
    assert not any(line.startswith(("needs:", "labels:", "run:", "receipt:")) for line in cli.ok("show", failed).lines)


def test_show_tells_of_a_worktree_of_its_own(cli: Cli) -> None:
    """Where a task was told how it is kept apart, that has a line; else none."""
    assert "isolation:  worktree" in cli.ok("show", cli.add("apart", "--isolation", "worktree")).lines
    assert "isolation" not in cli.ok("show", cli.add("plain")).out


def test_show_asks_the_question(cli: Cli) -> None:
    """A blocked task shows what it waits for and how to answer."""
    uid = cli.add("unclear")
    with cli.store() as store:
        store.block(uid, "question", "Which database?", by="agent").result()
    lines = cli.ok("show", uid).lines
    assert "status:     blocked" in lines
    assert "question:   Which database?" in lines
    assert f'            answer with: fleet answer {uid} "..."' in lines


def test_show_as_json_is_the_envelope_of_bd(cli: Cli) -> None:
    """--json gives what `bd show --json` gives: a schema version and a list with the one task."""
    uid = cli.add("one", "-d", "text", "--priority", "1")
    shown = cli.json("show", uid)
    assert shown["schema_version"] == 1
    (issue,) = shown["data"]
    assert (issue["id"], issue["title"], issue["description"]) == (uid, "one", "text")
    assert (issue["status"], issue["priority"]) == ("open", 1)


def test_ids_may_be_short(cli: Cli) -> None:
    """Any unique beginning or end of an id will do; an unknown one is exit 4, one that fits several is exit 2."""
    with cli.store() as store:
        uids = [task.uid for task in store.submit([a_task(f"task {n}") for n in range(20)], by="ana").result()]
    uid = uids[0]
    assert cli.ok("show", uid.removeprefix("fleet-")).lines[0] == f"id:         {uid}"
    assert cli.run("show", "fleet-0000").code == 4
    done = cli.run("show", "fleet-")
    assert done.code == 2
    assert re.match(r"error: `fleet-` fits 6 tasks: (fleet-\w+, ){5}\.\.\.\nhint: give more of the id\n", done.err)
    for word in ("", "%", "*", "fleet", "../..", "fleet-%"):
        done = cli.run("show", word)
        assert done.code in (2, 4), (word, done)


# tasks


def test_tasks_lists_what_is_in_progress(cli: Cli) -> None:
    """Without --status only running tasks are listed, with the facts of their sessions."""
    cli.add("queued")
    assert cli.ok("tasks") == (0, "", "no task is in progress; 1 queued: fleet tasks --status queued\n")
    running = cli.add("running", "--coder", "codex", "--model", "o3", "--priority", "0")
    _claim(cli)
    header, line = cli.ok("tasks").lines
    names = ["ID", "Status", "Started", "Elapsed", "Idle", "Context", "Events", "Coder", "Model", "Title", "cwd"]
    assert header.split() == names
    assert line.split()[:2] == [running, "running"]
    assert line.split()[-4:] == ["codex", "o3", "running", str(cli.cwd)]
    (shown,) = cli.json("tasks")
    assert (shown["id"], shown["coder"], shown["model"], shown["state"]) == (running, "codex", "o3", "running")
    assert shown["elapsed_ms"] >= 0


def test_tasks_by_state(cli: Cli) -> None:
    """--status takes states with commas between, or all; an unknown one is named with those there are."""
    queued, blocked, cancelled = cli.add("queued"), cli.add("blocked"), cli.add("cancelled")
    cli.ok("stop", cancelled)
    with cli.store() as store:
        store.block(blocked, "held", "later", by="ana").result()

    def ids(status: str) -> set[str]:
        return {task["id"] for task in cli.json("tasks", "--status", status)}

    assert ids("queued") == {queued}
    assert ids("queued,blocked") == {queued, blocked}
    assert ids("all") == {queued, blocked, cancelled}
    assert len(cli.json("tasks", "--status", "all", "--limit", "2")) == 2
    assert cli.ok("tasks", "--status", "all", "--limit", "2").err == "(2 shown; --limit N shows more)\n"
    assert cli.ok("tasks", "--status", "all", "--limit", "3").err == ""
    assert cli.ok("tasks", "--status", "failed,partial") == (0, "", "no task is failed or partial\n")
    for word in ("nonsense", "queued,", "QUEUED", ""):
        done = cli.run("tasks", "--status", word)
        assert done.code == 2
        assert "error: unknown state `" in done.err
        assert "hint: states: queued, running, verifying, completed" in done.err


def test_a_description_may_begin_with_an_at(cli: Cli) -> None:
    """@@ begins a text, which is kept as it stands; @ alone names a file, and stdin takes anything."""
    script = '@@scripted [{"say": "hello"}]'
    assert cli.json("add", "a", "-d", script)["description"] == script
    assert cli.json("add", "b", "-d", "-", input=b"@ana knows")["description"] == "@ana knows"
    done = cli.run("add", "c", "-d", "@ana knows")
    assert (done.code, done.err.splitlines()[1]) == (
        2,
        "hint: @ reads a file; a text that begins with @ can be piped: -",
    )


# stop


def test_stop_cancels_and_skips_what_needs_it(cli: Cli) -> None:
    """A cancelled task takes with it all that needs it, each with a receipt that says why; others stay."""
    one = cli.add("one")
    two = cli.add("two", "--needs", one)
    other = cli.add("other")
    done = cli.ok("stop", one, "--reason", "no longer wanted")
    assert done.lines == [f"Stopped {one}: one", f"Skipped {two}: two  [needs {one}]"]
    states = {task["id"]: (task["state"], task["reason"]) for task in cli.json("tasks", "--status", "all")}
    assert states[one] == ("cancelled", "no longer wanted")
    assert states[two] == ("cancelled", f"skipped: it needs {one}, which is cancelled")
    assert states[other] == ("queued", "")
    assert f"receipt:    {one}.r1" in cli.ok("show", one).lines
    again = cli.run("stop", one)
    assert (again.code, again.err) == (1, f"error: task {one} has ended already: it is cancelled\n")


def test_stop_all(cli: Cli) -> None:
    """--all cancels what waits, then asks the supervisor for what runs, and has nothing to do the second time."""
    running = cli.add("running", "--priority", "0")
    _claim(cli)
    one = cli.add("one")
    two = cli.add("two", "--needs", one)
    done = cli.ok("stop", "--all")
    asked = f"Stopping {running}: its supervisor has been asked"
    assert done.lines == [f"Stopped {one}: one", f"Skipped {two}: two  [needs {one}]", asked]
    assert {task["id"]: task["state"] for task in cli.json("tasks")} == {running: "running"}
    with cli.store() as store:
        assert [(intent.verb, intent.target) for intent in store.intents()] == [("stop", running)]
    before = cli.events()
    assert cli.ok("stop", "--all").lines == [f"Stopping {running}: its supervisor has been asked"]
    assert cli.events() == before
    for argv in (["stop"], ["stop", running, "--all"]):
        done = cli.run(*argv)
        assert (done.code, done.err.splitlines()[0]) == (2, "error: give tasks, --run R, or --all")
        assert done.err.splitlines()[1] == "hint: `fleet tasks` lists what runs, `fleet runs` the runs"


def test_stop_all_with_nothing_to_stop(cli: Cli) -> None:
    """An empty queue is stopped without complaint."""
    assert cli.ok("stop", "--all") == (0, "", "nothing to stop\n")
    assert cli.json("stop", "--all") == []


# status

COUNTS = {
    *("queued", "running", "completed", "partial", "failed", "restarted", "escalated", "cancelled", "stale"),
    "interrupted",
    *("transport_failed", "task_failed", "verifier_failed", "verifying", "blocked"),
}


def test_status_counts_everything(cli: Cli) -> None:
    """The counts have every name of the table, and each task is counted under its state and its failure."""
    uids = [cli.add(f"task {n}") for n in range(6)]
    with cli.store() as store:
        store.join(SUP, machine="here", pid=os.getpid(), seconds=60).result()
        claimed = store.claim(SUP, slots(3, host=store.task(uids[0]).host), DEFAULTS).result()
        for found, verdict in zip(claimed, (a_pass(), a_fail(), a_partial()), strict=True):
            store.finish(found.session.fence, EXITED, verdict, by=SUP).result()
        store.block(uids[3], "needs_human", "the deploy key is missing", by=SUP).result()
        store.cancel(uids[4], "not wanted", by="ana").result()
    found = cli.json("status")
    assert found["counts"].keys() == COUNTS
    some = {"queued": 1, "completed": 1, "failed": 1, "task_failed": 1, "partial": 1, "blocked": 1, "escalated": 1}
    assert {name: n for name, n in found["counts"].items() if n} == {**some, "cancelled": 1}
    assert found["total"] == 6
    assert [question["id"] for question in found["needs_you"]] == [uids[3]]
    assert found["home"] == str(cli.home.path)
    lines = cli.ok("status").lines
    assert lines[0] == f"Fleet: 6 tasks in {cli.home.path}"
    assert "  completed 1     partial 1       failed 1        cancelled 1" in lines
    assert "  failed by source: transport 0, task 1, verifier 0" in lines
    assert any(re.fullmatch(rf"  {uids[3]}  needs_human, \d+s ago: the deploy key is missing", line) for line in lines)
    assert lines[-1] == "Supervisors: none is running"


def test_status_names_the_supervisors_that_live(cli: Cli) -> None:
    """A supervisor is listed while its process lives, and not after."""
    with cli.store() as store:
        store.join(SUP, machine="here", pid=os.getpid(), seconds=60).result()
        assert cli.ok("status").lines[-1] == f"Supervisors: {SUP}"
    assert cli.ok("status").lines[-1] == "Supervisors: none is running"


def test_status_of_a_run(cli: Cli) -> None:
    """--run counts only the tasks of that run, and an unknown run is exit 4."""
    cli.add("apart")
    with cli.store() as store:
        (task,) = store.submit([a_task("of the run")], run=NewRun(name="nightly"), by="ana").result()
    assert cli.json("status", "--run", str(task.run))["total"] == 1
    assert cli.json("status")["total"] == 2
    assert cli.run("status", "--run", "nothing").code == 4


# homes that are not there

NO_HOME = [
    *(["ready"], ["show", "fleet-abc"], ["tasks"], ["task", "fleet-abc", "log"], ["logs", "fleet-abc"], ["log"]),
    *(["status"], ["questions"], ["cost"], ["ledger", "tail"], ["ledger", "export"], ["ledger", "verify"]),
    *(["add", "x"], ["stop", "--all"], ["answer", "fleet-abc", "yes"], ["task", "fleet-abc", "set", "coder=codex"]),
]


@pytest.mark.parametrize("argv", NO_HOME, ids=" ".join)
def test_without_a_home_nothing_is_made(newcomer: Cli, argv: list[str]) -> None:
    """On a machine without a home a command is exit 4 with a hint, and makes no file or directory."""
    before = sorted(newcomer.path.rglob("*"))
    done = newcomer.run(*argv)
    assert (done.code, done.out) == (4, "")
    assert done.err == (
        f"error: there is no Fleet home at {newcomer.home.path} yet\n"
        "hint: run `fleet init` (or `fleet init --here` for a home in this directory)\n"
    )
    assert sorted(newcomer.path.rglob("*")) == before


def test_an_error_is_an_object_where_one_was_asked_for(newcomer: Cli) -> None:
    """With --json stderr has the error, the hint and the exit code as an object, and stdout nothing."""
    done = newcomer.run("ready", "--json")
    assert (done.code, done.out) == (4, "")
    problem = json.loads(done.err)
    assert problem["exit_code"] == 4
    assert problem["error"].startswith("there is no Fleet home at ")
    assert problem["hint"].startswith("run `fleet init`")


def _claim(cli: Cli) -> None:
    """As a supervisor would: the most urgent task is running from now on."""
    with cli.store() as store:
        (task,) = store.ready(limit=1)
        store.join(SUP, machine="here", pid=os.getpid(), seconds=60).result()
        (claimed,) = store.claim(SUP, slots(1, host=task.host), DEFAULTS).result()
        store.started(claimed.session.fence, 4242, by=SUP).result()
