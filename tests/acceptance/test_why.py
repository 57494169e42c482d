"""`fleet why`: why a task is where it is, and what may be done."""

from __future__ import annotations

import json
import re

import pytest

from tests.support.cli import Cli


def scripted(*steps: dict[str, object]) -> str:
    """The description of a task for the scripted coder."""
    return f"\n@@scripted {json.dumps(steps)}"


def play(cli: Cli, *steps: dict[str, object], **settings: int) -> str:
    """A task whose agent does these steps; run until nothing is left to do."""
    for name, value in {"backoff_seconds": 0, "max_attempts": 2, **settings}.items():
        cli.ok("config", "set", f"supervisor.{name}={value}")
    uid = cli.add("work", "--coder", "scripted", "-d", scripted(*steps))
    assert cli.run("run", "--drain", "-q").code in (0, 1, 3)  # by what became of the tasks
    return uid


def test_a_task_that_has_not_begun(cli: Cli) -> None:
    """It says that nothing runs, or which tasks it waits for; nothing is wrong with it."""
    first = cli.add("first")
    second = cli.add("second", "--needs", first)
    found = cli.json("why", first)
    assert (found["state"], found["classification"], found["action"]) == ("queued", None, "fleet run")
    assert found["summary"] == "it is ready, and no supervisor is running"
    assert (found["attempts_used"], found["attempts_left"], found["last"]) == (0, 3, None)
    found = cli.json("why", second)
    assert found["waits_for"] == [{"id": first, "state": "queued"}]
    assert found["action"] == f"fleet why {first}"
    assert cli.run("why", "fleet-000").code == 4


def test_the_evidence_is_an_event(cli: Cli) -> None:
    """The event that is named is in the ledger, and says what the task's state says."""
    uid = play(cli, {"say": "hello"})
    found = cli.json("why", uid)
    events = {entry["seq"]: entry["event"] for entry in cli.json("task", uid, "events")}
    assert events[found["evidence"]["seq"]]["kind"] == found["evidence"]["kind"] == "task.settled"
    assert events[found["evidence"]["seq"]]["at"] == found["since"]
    assert (found["state"], found["classification"], found["action"]) == ("completed", None, "nothing to do")
    text = cli.ok("why", uid).out
    assert text.startswith(f"{uid} is completed: work\n")
    assert re.search(r"^  evidence:  event \d+, task.settled, by sup-\w+$", text, re.MULTILINE)


@pytest.mark.parametrize(
    ("outcome", "state", "kind", "used"),
    [
        ("crashed", "failed", "needs-human", 2),
        ("transient", "failed", "needs-human", 2),
        ("refusal", "failed", "task", 1),
        ("auth", "blocked", "needs-human", 0),
    ],
)
def test_what_kind_of_trouble_it_is(cli: Cli, outcome: str, state: str, kind: str, used: int) -> None:
    """Each outcome has its class, its remedy and its cost in attempts, and an action that is a command."""
    uid = play(cli, {"end": outcome})
    found = cli.json("why", uid)
    assert (found["state"], found["classification"]) == (state, kind)
    assert (found["last"]["outcome"], found["attempts_used"]) == (outcome, used)
    assert found["last"]["remedy"]
    assert not found["last"]["remedy"].startswith("wait")  # nothing happens by itself any more
    assert f"fleet restart {uid}" in found["action"]


def test_a_question_needs_a_person(cli: Cli) -> None:
    """The question is told, and how to answer it; no attempt is used."""
    uid = play(cli, {"ask": "Which host?"})
    found = cli.json("why", uid)
    assert found["summary"] == "it waits for a person (question): Which host?"
    assert (found["classification"], found["attempts_used"]) == ("needs-human", 0)
    assert found["action"] == f'fleet answer {uid} "..."'


def test_a_skipped_task_names_the_one_to_look_at(cli: Cli) -> None:
    """What was skipped for another leads to that one."""
    first = cli.add("first")
    second = cli.add("second", "--needs", first)
    cli.ok("stop", first)
    assert cli.json("why", second)["action"] == f"fleet why {first}"
    assert cli.json("why", first)["action"] == f"fleet restart {first}"


def test_a_session_that_ran_too_long_is_given_more_time(cli: Cli) -> None:
    """What may be done names the bound that was crossed: to run it again as it is would end in the same way."""
    uid = play(cli, {"sleep": 30}, timeout_seconds=1)
    found = cli.json("why", uid)
    assert (found["state"], found["summary"]) == ("failed", "it ran longer than 1 s")
    assert f"fleet task {uid} set timeout_seconds=N, then fleet restart {uid}" in found["action"]
