"""The page of states: the tables of moves."""

from __future__ import annotations

from enum import StrEnum
from typing import Any

from fleet.model import states
from scripts.pages.words import doc, joined, table


def states_page() -> str:
    """The three tables of moves."""
    parts = []
    for title, kind, moves in (
        ("Task", states.TaskState, states.TASK_MOVES),
        ("Session", states.SessionState, states.SESSION_MOVES),
        ("Run", states.RunState, states.RUN_MOVES),
    ):
        parts += [f"## {title}", doc(kind), _moves(kind, moves)]
    sets = (
        ("in progress", states.IN_PROGRESS, "has a live session"),
        ("ended", states.ENDED, "has a final receipt"),
        ("open", states.OPEN, "has not ended"),
        ("unmet", states.UNMET, "what needs such a task is skipped"),
    )
    parts += [
        "## Sets of task states",
        table(
            ("name", "states", "meaning"), [(name, _listed(states.TaskState, each), why) for name, each, why in sets]
        ),
        "## From a result to a state",
        doc(states.Result),
        _results(),
    ]
    return joined(parts)


def task_moves() -> str:
    """The table of a task's moves, for the page that explains it."""
    return joined([_moves(states.TaskState, states.TASK_MOVES), _results()])


def _moves(kind: type[StrEnum], moves: dict[Any, frozenset[Any]]) -> str:
    return table(("from", "to"), [(f"`{old}`", _listed(kind, moves[old]) or "nothing: this is an end") for old in kind])


def _results() -> str:
    rows = [(f"`{result.value}`", f"`{states.STATE_OF_RESULT[result].value}`") for result in states.Result]
    return table(("result of the receipt", "state of the task"), rows)


def _listed(kind: type[StrEnum], some: frozenset[Any]) -> str:
    return ", ".join(f"`{state.value}`" for state in kind if state in some)
