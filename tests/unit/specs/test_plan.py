"""The plan of a spec, the brief of a task, and the table of a run's results."""

from __future__ import annotations

from typing import Any

import msgspec

from fleet.cli.run_view import MOST_ROWS, dollars, short, table
from fleet.coders.prompts.brief import InputFile, brief, plain
from fleet.model.spec import RunSpec
from fleet.model.states import Result, TaskState
from fleet.model.terms import Terms
from fleet.projections.plan import Plan, plan
from fleet.projections.runs import TaskResult


def planned(*tasks: dict[str, Any], **fields: Any) -> Plan:
    """The plan of these tasks."""
    spec = msgspec.convert({"tasks": tasks, **fields}, RunSpec)
    return plan(spec, max_workers=3, default_coder="claude", default_model="sonnet", permissions=lambda *_: ())


def test_levels_follow_the_longest_way() -> None:
    """A task is on the level after the last of what it needs, also in a chain of ten thousand."""
    made = planned({"id": "c", "needs": ["a", "b"]}, {"id": "b", "needs": ["a"]}, {"id": "a"}, {"id": "d"})
    assert [(task.id, task.level) for task in made.tasks] == [("a", 1), ("d", 1), ("b", 2), ("c", 3)]
    chain = planned(*({"id": f"t{n}", "needs": [f"t{n - 1}"] if n else []} for n in range(10_000)))
    assert chain.levels == 10_000


def test_who_takes_a_task() -> None:
    """Declared workers that can do it are named; the coder and model are those that it would get."""
    here = {"kind": "local"}
    workers = [{"id": "small", "host": here}, {"id": "big", "host": here, "capabilities": ["gpu"]}]
    a, b = planned({"id": "a", "worker": {"capabilities": ["gpu"]}}, {"id": "b", "command": "x"}, workers=workers).tasks
    assert (a.workers, b.workers) == (("big",), ("small", "big"))
    (named,) = planned({"id": "a", "command": "x"}, workers=[{**workers[0], "name": "Small one"}]).tasks
    assert named.workers == ("small (Small one)",)
    assert (a.coder, a.model, b.coder, b.model) == ("claude", "sonnet", "command", None)


def test_who_waits_for_a_directory() -> None:
    """Agents that change one directory in place take turns; a command, a reader and a worktree do not."""
    made = planned(
        {"id": "a", "instructions": "x", "cwd": "/w"},
        {"id": "b", "instructions": "x", "cwd": "/w"},
        {"id": "c", "command": "x", "cwd": "/w"},
        {"id": "d", "instructions": "x", "cwd": "/w", "worker": {"tool_profile": "read-only"}},
        {"id": "e", "instructions": "x", "cwd": "/w", "isolation": "worktree"},
        {"id": "f", "instructions": "x", "cwd": "/v"},
    )
    assert [task.id for task in made.tasks if task.waits_for_directory] == ["a", "b"]


def test_every_bound_is_told() -> None:
    """What is given is told with what it does; what is not given is not."""
    (task,) = planned(
        {
            "id": "a",
            "instructions": "x",
            "workspace": {
                "repository": "/srv/shop.git",
                "writable_paths": [],
                "required_files": ["f"],
                "environment": {"required": ["V"]},
            },
            "budget": {"max_usd": 2.5, "on_exceeded": "pause"},
            "scorer": {"kind": "manual"},
            "retry_safe": False,
        }
    ).tasks
    told = {each.field: each.how for each in task.enforces}
    assert set(told) == {
        "instructions",
        "workspace.repository",
        "workspace.writable_paths",
        "workspace.required_files",
        "workspace.environment.required",
        "budget.max_usd",
        "scorer",
        "retry_safe",
    }
    assert told["budget.max_usd"] == "beyond 2.5 the session is ended and the task waits for a person"
    assert told["workspace.repository"].endswith("or the task fails: /srv/shop.git, its default branch")
    assert told["scorer"].endswith("partial until it is settled")


def test_the_brief_of_a_task() -> None:
    """Every part has its place; a file that holds a fence cannot end its own quotation."""
    terms = Terms(
        role="reviewer", objective="O", instructions="I", context=("C1", "C2"), expected_artifacts=("report",)
    )
    files = [InputFile("a.md", "text\n```\nmore", whole=False), InputFile("dir")]
    told = brief("D", terms, files)
    places = [told.index(part) for part in ("Your role: reviewer", "Objective: O", "D", "I", "- C1\n- C2", "- `dir`")]
    assert places == sorted(places)
    assert "````\ntext\n```\nmore\n````\n\n(This is the beginning" in told
    assert "a file named `report`" in told
    assert brief("D", Terms()) == "D"
    assert brief("", Terms(expected_artifacts=("log", "receipt"))) == ""


def test_what_a_program_is_told() -> None:
    """A program that is no agent gets words alone: description and instructions, else objective, else title."""
    assert plain("T", "D", Terms(instructions="I")) == "D\n\nI"
    assert plain("T", "", Terms(objective="O")) == "O"
    assert plain("T", "", Terms()) == "T"


def a_result(name: str, result: Result = Result.PASS, **fields: Any) -> TaskResult:
    """What came of a task."""
    values = {"reason": "fine", "scorer": "exit_code", "duration_ms": 0, "tokens": 0, "cost_microusd": 0, **fields}
    return TaskResult(
        id=name, task=name, title=name, state=TaskState.COMPLETED, result=result, source=None, attempts=1, **values
    )


def test_a_long_table_shows_what_did_not_pass() -> None:
    """Of many results, those that did not pass come first and the rest is counted."""
    found = [a_result(f"t{n}") for n in range(1000)] + [a_result("bad", Result.FAIL)]
    lines = table(found)
    assert (len(lines), lines[1].split()[0], lines[-1]) == (MOST_ROWS + 2, "bad", "and 801 more")
    assert table([a_result("x", scorer=None)])[1].endswith("[unverified]")


def test_words_in_a_table() -> None:
    """A reason is one line without control characters; small amounts of money keep their digits."""
    assert short("a\nb\x1b[2J " + "c" * 200).startswith("a b\N{REPLACEMENT CHARACTER}[2J ccc")
    assert len(short("c" * 200)) == 100
    assert [dollars(0), dollars(1500), dollars(2_500_000)] == ["-", "$0.0015", "$2.50"]
