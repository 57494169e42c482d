"""`fleet bd` on Fleet's own queue: what it records in Fleet, and what it refuses."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from fleet.config.home import Home
from fleet.config.settings import Settings
from fleet.hosts.machine import local_host
from fleet.model.session import Defaults, Slot
from fleet.model.states import TaskState
from fleet.wiring import make_store
from tests.support.bd import ACTOR, OwnQueue

RUNNING = Slot(worker="local#1", host=local_host())


@pytest.fixture
def queue(tmp_path: Path) -> OwnQueue:
    """An empty queue."""
    return OwnQueue(tmp_path)


def run_one(queue: OwnQueue) -> str:
    """Let a supervisor claim the first ready task; gives its id."""
    store = make_store(Home(queue.home), Settings())
    store.join("s1", machine="here", pid=1, seconds=60).result()
    (claimed,) = store.claim("s1", [RUNNING], Defaults(coder="scripted", model="small")).result()
    store.close()
    return claimed.task.uid


def test_create_says_what_it_recorded(queue: OwnQueue, tmp_path: Path) -> None:
    """The line names the directory, the coder and the model, and task.json holds them."""
    said = queue.bd("create", "Heavy refactor", "--coder=agy", "--model", "opus", "--cwd", str(tmp_path))
    uid = said.out.split()[1].rstrip(":")
    assert said == (0, f"Created {uid}: Heavy refactor  [cwd: {tmp_path}, coder: agy, model: opus]\n", "")
    written = json.loads((queue.home / "tasks" / uid / "task.json").read_text())
    assert (written["cwd"], written["coder"], written["model"]) == (str(tmp_path), "agy", "opus")


def test_create_keeps_the_current_directory(queue: OwnQueue, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without --cwd the shell's directory is captured, and the line has no other parts."""
    monkeypatch.chdir(tmp_path)
    said = queue.bd("create", "Implement feature X")
    assert said.out.endswith(f": Implement feature X  [cwd: {tmp_path}]\n")


@pytest.mark.parametrize("words", [("--coder", "zork"), ("--cwd", "/nowhere/at/all"), ("-p", "9"), ("--deps", "nope")])
def test_what_cannot_be_taken_creates_nothing(queue: OwnQueue, words: tuple[str, str]) -> None:
    """A wrong coder, directory, priority or dependency is refused before anything is written."""
    assert queue.bd("create", "X", *words).code != 0
    assert queue.bd("count", "--json").data == {"count": 0}


def test_dry_run_creates_nothing(queue: OwnQueue) -> None:
    """With --dry-run no task and no task.json is there afterwards."""
    assert "Would create" in queue.bd("create", "X", "--dry-run").out
    assert list((queue.home / "tasks").iterdir()) == []


def test_a_description_may_come_from_stdin(queue: OwnQueue) -> None:
    """`-d -`, --stdin and --body-file - read the details from stdin, as in bd."""
    for flags in (("-d", "-"), ("--stdin",), ("--body-file", "-")):
        said = queue.bd("create", "X", *flags, "--json", stdin="the details\n")
        assert said.data["description"] == "the details\n"


def test_a_question_by_hand(queue: OwnQueue) -> None:
    """A blocked task with QUESTION: in its notes is a question of Fleet's, and setting it open queues it again."""
    uid = queue.made("Choose a port")
    assert queue.bd("update", uid, "--status", "blocked", "--notes", "QUESTION: which port?").code == 0
    (question,) = json.loads(queue.fleet("questions", "--json").out)
    assert (question["id"], question["kind"], question["text"]) == (uid, "question", "which port?")
    assert [row["id"] for row in queue.bd("list", "--status=blocked", "--json").data] == [uid]
    assert queue.bd("ready", "--json").data == []
    assert queue.bd("update", uid, "--status", "open", "--assignee", "").code == 0
    assert [row["id"] for row in queue.bd("ready", "--json").data] == [uid]
    assert json.loads(queue.fleet("questions", "--json").out) == []


def test_a_question_asked_otherwise_stands_in_the_notes(queue: OwnQueue) -> None:
    """A question that was not written with bd is shown by bd all the same."""
    uid = queue.made("X")
    store = make_store(Home(queue.home), Settings())
    store.block(uid, "question", "which port?", by="an agent").result()
    store.close()
    assert queue.shown(uid)["notes"] == "QUESTION: which port?"


def test_a_claim_is_one_persons(queue: OwnQueue) -> None:
    """A claim shows in_progress with its assignee, holds for the same person, and is refused to others."""
    uid = queue.made("X")
    assert queue.bd("update", uid, "--claim", actor="ann").code == 0
    shown = queue.shown(uid)
    assert (shown["status"], shown["assignee"]) == ("in_progress", "ann")
    assert queue.bd("update", uid, "--claim", actor="ann").code == 0
    refused = queue.bd("update", uid, "--claim", actor="bob")
    assert refused.code == 1
    assert "already claimed by ann" in refused.err
    assert queue.bd("ready", "--json").data == []
    assert queue.bd("unclaim", uid, actor="bob").code == 1
    assert queue.bd("unclaim", uid, actor="ann").code == 0
    assert "assignee" not in queue.shown(uid)


def test_in_progress_by_hand_is_a_claim(queue: OwnQueue) -> None:
    """--status in_progress takes the task for whoever says it."""
    uid = queue.made("X")
    (row,) = queue.bd("update", uid, "--status", "in_progress", "--json").data
    assert (row["status"], row["assignee"]) == ("in_progress", ACTOR)


def test_ready_claim_takes_the_first(queue: OwnQueue) -> None:
    """`ready --claim` takes tasks in their order, and gives an empty list when there is none left."""
    low, high = queue.made("low", "-p", "3"), queue.made("high", "-p", "1")
    taken = [queue.bd("ready", "--claim", "--json").data for _ in range(3)]
    assert [[row["id"] for row in rows] for rows in taken] == [[high], [low], []]


def test_a_running_task_is_its_sessions(queue: OwnQueue) -> None:
    """What a session works on shows its slot, and cannot be claimed, closed, reassigned or requeued by hand."""
    uid = queue.made("X")
    assert run_one(queue) == uid
    shown = queue.shown(uid)
    assert (shown["status"], shown["assignee"]) == ("in_progress", "local#1")
    for words in (
        ("update", uid, "--claim"),
        ("update", uid, "-a", "me", "--force"),
        ("update", uid, "--status", "open"),
        ("update", uid, "--status", "blocked"),
    ):
        assert queue.bd(*words).code == 1
    refused = queue.bd("close", uid, "--force")
    assert refused.code == 1
    assert f"fleet stop {uid}" in refused.err
    assert queue.shown(uid)["status"] == "in_progress"


def test_close_is_a_verdict(queue: OwnQueue) -> None:
    """Closing completes the task with a receipt that says who closed it and why, and lets what waited go."""
    first = queue.made("first")
    second = queue.made("second", "--deps", first)
    refused = queue.bd("close", second, "--json")
    assert refused.code == 1
    assert f"blocked by [{first}]" in refused.data["error"]
    closed = queue.bd("close", first, "--reason", "done it", "--suggest-next", "--json").data
    assert [row["id"] for row in closed["unblocked"]] == [second]
    store = make_store(Home(queue.home), Settings())
    (receipt,) = store.receipts(task=first)
    assert (receipt.result.value, receipt.reason, receipt.evidence) == ("pass", "done it", (f"closed by {ACTOR}",))
    assert store.task(first).state is TaskState.COMPLETED
    store.close()
    assert queue.bd("reopen", first).code == 0
    assert queue.shown(first)["status"] == "open"


def test_an_epic_with_open_children_stays_open(queue: OwnQueue) -> None:
    """Children that are not closed hold their parent open, unless it is forced."""
    epic = queue.made("epic", "-t", "epic")
    queue.made("child", "--parent", epic)
    refused = queue.bd("close", epic)
    assert "1 open child issue(s)" in refused.err
    assert queue.bd("close", epic, "--force").code == 0


def test_a_change_needs_the_whole_id(queue: OwnQueue) -> None:
    """The beginning of an id shows an issue, but changes none."""
    uid = queue.made("X")
    assert queue.bd("show", uid[:-1]).code == 0
    assert queue.bd("close", uid[:-1]).code == 1
    assert queue.shown(uid)["status"] == "open"
    assert queue.bd("close", uid.removeprefix("fleet-")).code == 0


def test_labels_of_both_kinds(queue: OwnQueue) -> None:
    """A bd label is a label of Fleet's, and `name=value` is one with a value."""
    uid = queue.made("X", "-l", "backend,area=web")
    store = make_store(Home(queue.home), Settings())
    assert store.task(uid).labels == {"backend": "", "area": "web"}
    store.close()
    assert queue.bd("list", "--label", "area=web", "--json").data[0]["labels"] == ["area=web", "backend"]
    queue.bd("label", "remove", uid, "area=web")
    assert queue.bd("label", "list", uid, "--json").data == ["backend"]


def test_put_off(queue: OwnQueue) -> None:
    """A date hides a task from ready until then; without one it waits for undefer."""
    uid = queue.made("X", "--defer", "+1h")
    assert queue.shown(uid)["status"] == "deferred"
    assert queue.bd("ready", "--json").data == []
    assert queue.bd("undefer", uid).code == 0
    assert queue.bd("defer", uid).code == 0
    assert [row["id"] for row in queue.bd("list", "--status", "deferred", "--json").data] == [uid]
    assert queue.bd("update", uid, "--status", "open").code == 0
    assert len(queue.bd("ready", "--json").data) == 1


def test_failures_of_several(queue: OwnQueue) -> None:
    """Of several issues each is changed by itself; one failure makes the exit code 1 and is named on stderr."""
    uid = queue.made("X")
    said = queue.bd("update", uid, "fleet-zzzz", "-p", "1", "--json")
    assert said.code == 1
    assert [row["priority"] for row in said.data] == [1]
    assert 'Error resolving fleet-zzzz: no issue found matching "fleet-zzzz"' in said.err
    assert json.loads(said.err.splitlines()[-1])["data"]["failed"][0]["id"] == "fleet-zzzz"


@pytest.mark.parametrize(
    "words", [("dolt", "push"), ("init",), ("doctor", "--fix"), ("delete", "x"), ("dep", "relate")]
)
def test_verbs_of_the_real_bd_only(queue: OwnQueue, words: tuple[str, ...]) -> None:
    """A verb that Fleet's queue does not have exits 2, is named, and the way to the real bd is shown."""
    said = queue.bd(*words)
    assert said.code == 2
    assert words[-1 if words[0] == "dep" else 0] in said.err
    assert 'source = "beads"' in said.err


def test_an_unknown_flag(queue: OwnQueue) -> None:
    """A flag that a verb does not have exits 2 and is named; nothing is done."""
    said = queue.bd("create", "X", "--ephemeral")
    assert said.code == 2
    assert "unknown flag: --ephemeral of `bd create`" in said.err
    assert queue.bd("count").out == "0\n"


def test_json_before_the_verb(queue: OwnQueue) -> None:
    """--json counts wherever it stands: before bd, before the verb, after it."""
    for words in (["--json", "bd", "count"], ["bd", "--json", "count"], ["bd", "count", "--json"]):
        assert queue.fleet(*words).data == {"count": 0}


def test_read_only(queue: OwnQueue) -> None:
    """--readonly lets looking through and refuses every change."""
    uid = queue.made("X")
    assert queue.bd("show", uid, "--readonly").code == 0
    for words in (("close", uid), ("create", "Y"), ("ready", "--claim"), ("comment", uid, "hi")):
        assert queue.bd(*words, "--readonly").code == 1
    assert queue.bd("count").out == "1\n"


def test_help(queue: OwnQueue) -> None:
    """Help of the whole and of a verb is Fleet's own, needs no issue, and exits 0."""
    for words in (("--help",), ("help",), ()):
        assert "create" in queue.bd(*words).out
    assert "--append-notes" in queue.bd("update", "--help").out
    assert queue.bd("help", "update").out == queue.bd("update", "-h").out


def test_prime_tells_the_protocol(queue: OwnQueue) -> None:
    """`prime` is short, names the question protocol, and warns of what an agent must never do."""
    said = queue.bd("prime").out
    assert "QUESTION:" in said
    assert "--force" in said
    assert len(said.splitlines()) < 50


def test_lists_for_people(queue: OwnQueue) -> None:
    """A list has a line for each issue with mark, id, priority and title; show is a block."""
    uid = queue.made("A bug", "-t", "bug", "-p", "1", "-d", "It loops.", "-a", "ann")
    assert f"○ {uid} P1 [bug] A bug  @ann\n" in queue.bd("list").out
    shown = queue.bd("show", uid).out
    assert shown.startswith(f"○ {uid} · A bug   [P1 · OPEN]\n")
    assert "\nDESCRIPTION\n  It loops.\n" in shown


def test_show_is_what_fleet_show_gives(queue: OwnQueue) -> None:
    """`fleet show --json` prints bd's envelope, and beside bd's fields what only Fleet knows."""
    uid = queue.made("X", "-d", "y")
    (shown,) = queue.fleet("show", uid, "--json").data
    assert shown.pop("fleet")["coder"] == "claude"
    assert [shown] == queue.bd("show", uid, "--json").data


def test_no_home_yet(tmp_path: Path) -> None:
    """Without a home the verbs say how to make one, and make none."""
    queue = OwnQueue(tmp_path)
    queue.home = tmp_path / "nowhere"
    for words in (("list",), ("create", "X")):
        said = queue.bd(*words)
        assert said.code == 4
        assert "fleet init" in said.err
    assert not queue.home.exists()
