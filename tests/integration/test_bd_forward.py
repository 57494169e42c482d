"""`[queue] source = "beads"`: the real bd behind `fleet bd`."""

from __future__ import annotations

import json
import os
import select
from collections.abc import Iterator
from pathlib import Path

import pytest

from fleet.config.home import Home
from fleet.errors import ProgramError
from fleet.sources.bd_answers import Trouble
from fleet.sources.beads import Bd, has_queue, init_beads
from tests.support.bd import Beads, fleet_process, real_bd


@pytest.fixture(scope="module")
def beads(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Beads]:
    """One home for all of these tests: to make one costs bd seconds. Afterwards no process of bd's is left."""
    made = Beads(tmp_path_factory.mktemp("beads"), real_bd())
    done = made.fleet("init")
    assert done.code == 0, done
    assert "keeps the queue" in done.err
    yield made
    assert left_behind(made.home) == []


def left_behind(home: Path) -> list[str]:
    """The processes that still work in a directory."""
    found = []
    for process in Path("/proc").glob("[0-9]*"):
        try:
            if str(home) in os.readlink(process / "cwd"):
                found.append((process / "cmdline").read_text())
        except OSError:
            continue
    return found


@pytest.mark.real_bd
def test_init_touches_nothing_around(beads: Beads) -> None:
    """bd's queue is in the home; the repository around it has no commit, no setting and no file more than before."""
    assert has_queue(Home(beads.home))
    assert beads.git("status", "--short") == "?? home/\n"
    assert "beads" not in (beads.path / "repository" / ".git" / "config").read_text()
    assert not (beads.home / ".git").exists()
    assert not (beads.home / ".gitignore").exists()


@pytest.mark.real_bd
def test_init_again_destroys_nothing(beads: Beads) -> None:
    """A second init does nothing; with --force bd is asked again, refuses, and every issue is still there."""
    uid = beads.bd("create", "Precious", "--silent").out.strip()
    assert beads.fleet("init").err == ""
    forced = beads.fleet("init", "--force")
    assert forced.code == 0
    assert "does not initialize it again" in forced.err
    assert beads.bd("show", uid, "--json").data[0]["title"] == "Precious"


@pytest.mark.real_bd
def test_create_records_what_bd_does_not_know(beads: Beads) -> None:
    """Coder, model and directory go to task.json and not to bd; the rest goes to bd."""
    said = beads.bd("create", "--coder", "codex", "--title", "Heavy refactor", "--model=o3", "-p", "1", "-d", "Why.")
    uid = said.out.split()[1].rstrip(":")
    line = f"Created {uid}: Heavy refactor  [cwd: {beads.project}, coder: codex, model: o3]\n"
    assert said == (0, line, "")
    written = beads.task_json(uid)
    assert written == {
        "id": uid,
        "title": "Heavy refactor",
        "description": "Why.",
        "cwd": str(beads.project),
        "coder": "codex",
        "model": "o3",
        "priority": 1,
        "needs": [],
        "as_written": {"coder": "codex", "model": "o3", "cwd": str(beads.project)},
    }
    shown = beads.bd("show", uid, "--json").data[0]
    assert (shown["description"], shown["priority"]) == ("Why.", 1)


@pytest.mark.real_bd
def test_create_with_json(beads: Beads) -> None:
    """--json prints bd's envelope, and what is needed first stands in task.json."""
    first = beads.bd("create", "first", "--json").data["id"]
    second = beads.fleet("--json", "bd", "new", "second", "--deps", first, "--cwd", str(beads.path)).data["id"]
    written = beads.task_json(second)
    assert (written["cwd"], written["needs"]) == (str(beads.path), [first])


@pytest.mark.real_bd
def test_create_reads_stdin(beads: Beads) -> None:
    """What bd would read from stdin reaches it."""
    uid = beads.bd("create", "from a pipe", "--stdin", "--silent", stdin="the details\n").out.strip()
    assert beads.bd("show", uid, "--json").data[0]["description"].strip() == "the details"


@pytest.mark.real_bd
def test_an_unknown_coder_never_reaches_bd(beads: Beads) -> None:
    """A coder that is not registered fails with exit 2 before bd is invoked, or even looked for."""
    before = beads.bd("count", "--json").data
    said = beads.bd("create", "X", "--coder", "zork")
    assert said.code == 2
    assert "unknown coder `zork`" in said.err
    assert beads.bd("count", "--json").data == before
    without_bd = fleet_process(
        beads.env | {"PATH": "/nowhere"},
        beads.project,
        "--home",
        str(beads.home),
        "bd",
        "create",
        "X",
        "--coder",
        "zork",
    )
    assert "unknown coder" in without_bd.err


@pytest.mark.real_bd
def test_a_dry_run_writes_nothing(beads: Beads) -> None:
    """With --dry-run bd only says what it would do, and no task.json is written."""
    before = sorted(path.name for path in (beads.home / "tasks").iterdir())
    said = beads.bd("create", "X", "--dry-run", "--coder", "codex")
    assert said.code == 0
    assert "DRY RUN" in said.out
    assert sorted(path.name for path in (beads.home / "tasks").iterdir()) == before


@pytest.mark.real_bd
def test_what_bd_refuses_is_said_as_bd_says_it(beads: Beads) -> None:
    """A create that bd refuses keeps bd's exit code and words, with --json in the envelope; nothing is recorded."""
    before = len(list((beads.home / "tasks").iterdir()))
    plain = beads.bd("create", "X", "-p", "high")
    assert (plain.code, plain.out) == (1, "")
    assert 'invalid priority "high"' in plain.err
    as_json = beads.bd("create", "X", "-t", "zork", "--json")
    assert as_json.code == 1
    assert "invalid issue type: zork" in as_json.data["error"]
    assert len(list((beads.home / "tasks").iterdir())) == before


@pytest.mark.real_bd
def test_everything_else_is_passed_on(beads: Beads) -> None:
    """list, ready, show, dep, comment and the question protocol are bd's own, with its output and its exit codes."""
    one = beads.bd("create", "one", "--silent").out.strip()
    two = beads.bd("create", "two", "--silent").out.strip()
    assert beads.bd("dep", "add", two, one).code == 0
    ready = [row["id"] for row in beads.bd("ready", "--json").data]
    assert one in ready
    assert two not in ready
    assert "Comment added" in beads.bd("comment", one, "a note").out
    assert beads.bd("update", one, "--status", "blocked", "--notes", "QUESTION: which port?").code == 0
    assert [row["id"] for row in beads.bd("list", "--status=blocked", "--json").data] == [one]
    assert beads.bd("update", one, "--status", "open", "--assignee", "").code == 0
    assert beads.bd("show", "fleet-zzzz").code == 1
    assert beads.bd("nosuchverb").code == 1


@pytest.mark.real_bd
def test_help_is_bds_own(beads: Beads) -> None:
    """`fleet bd --help` and `fleet bd create --help` are what bd prints, not Fleet."""
    assert "Issues chained together like beads" in beads.bd("--help").out
    assert "--waits-for-gate" in beads.bd("create", "--help").out


@pytest.mark.real_bd
def test_bd_is_missing(beads: Beads) -> None:
    """Without bd on the PATH the error says so and how to go on, for a call as for init."""
    env = beads.env | {"PATH": "/nowhere"}
    said = fleet_process(env, beads.project, "--home", str(beads.home), "bd", "list")
    assert said.code == 1
    assert "bd is not installed" in said.err
    assert "queue.source=fleet" in said.err


def script(path: Path, text: str) -> str:
    """A program that stands in for bd."""
    program = path / "bd"
    program.write_text(f"#!/bin/sh\n{text}\n")
    program.chmod(0o755)
    return str(program)


def test_an_old_bd_is_refused(tmp_path: Path) -> None:
    """A bd whose failures look like successes, or a bd that is another program, is not used."""
    home, env = Home(tmp_path), {"PATH": os.environ["PATH"]}
    with pytest.raises(ProgramError, match=r"bd 0\.49\.6"):
        Bd(home, script(tmp_path, "echo 'bd version 0.49.6 (dev)'"), env).version()
    with pytest.raises(ProgramError, match="not the bd of beads"):
        Bd(home, script(tmp_path, "echo usage: bd DIRECTORY; exit 1"), env).version()
    assert Bd(home, script(tmp_path, "echo 'bd version 1.0.4'"), env).version() == (1, 0, 4)


def test_a_call_that_hangs_is_ended(tmp_path: Path) -> None:
    """A bd that does not end in time is ended with what it started, and the outcome counts as unknown."""
    bd = Bd(Home(tmp_path), script(tmp_path, "sleep 60 & echo $! > child; wait"), {"PATH": os.environ["PATH"]})
    answer = bd.call("list", seconds=1)
    assert answer.trouble is Trouble.UNKNOWN
    assert ended(int((tmp_path / "child").read_text()))


def ended(pid: int) -> bool:
    """Whether a process is over, or is so within ten seconds."""
    try:
        process = os.pidfd_open(pid)
    except ProcessLookupError:
        return True
    try:
        return bool(select.select([process], [], [], 10)[0])
    finally:
        os.close(process)


def test_an_init_that_fails_is_an_error(tmp_path: Path) -> None:
    """When bd makes no queue, init says what bd said."""
    script(tmp_path, 'case $1 in version) echo "bd version 1.3.0";; *) echo "Error: no space left" >&2; exit 1;; esac')
    with pytest.raises(ProgramError, match="no space left"):
        init_beads(Home(tmp_path), prefix="fleet", force=False, env={"PATH": f"{tmp_path}:{os.environ['PATH']}"})


@pytest.mark.real_bd
def test_the_queue_commands_speak_of_bds_queue(beads: Beads) -> None:
    """`fleet add`, `ready`, `show`, `tasks` and `task` act on the queue that bd keeps, with what task.json says."""
    first = beads.fleet("add", "Lay the table", "--priority", "1", "--coder", "codex", "-q")
    assert first.code == 0, first
    uid = first.out.strip()
    second = beads.fleet("add", "Serve the soup", "--needs", uid, "-d", "hot", "--label", "area=kitchen")
    assert second.code == 0, second
    later = second.out.split(":")[0].removeprefix("Created ")
    ready = json.loads(beads.fleet("ready", "--json").out)
    assert [line["cwd"] for line in ready if line["id"] == uid] == [str(beads.project)]
    assert later not in [line["id"] for line in ready]
    shown = beads.fleet("show", uid).out
    assert "coder:      codex\n" in shown
    assert "model:      the coder's own (default)" in shown
    assert beads.fleet("show", later, "--json").data[0]["labels"] == ["area=kitchen"]
    assert uid in beads.fleet("tasks", "--status", "queued").out
    assert beads.fleet("task", uid, "plan").code == 0
    assert beads.fleet("show", "nope-1").code == 4


@pytest.mark.real_bd
def test_what_nobody_has_taken_is_left_to_bd(beads: Beads) -> None:
    """A command that needs a task says that an issue has not become one yet, and what to do instead."""
    for words in (("stop", "x-1"), ("why", "x-1"), ("answer", "x-1", "y"), ("task", "x-1", "set", "coder=codex")):
        said = beads.fleet(*words)
        assert said.code == 4, said
        assert "kept by bd" in said.err
        assert "x-1" in said.err.partition("hint:")[2]
    assert beads.fleet("stop", "--all").err == "nothing to stop\n"
    assert beads.fleet("questions").err == "nothing waits for you\n"
