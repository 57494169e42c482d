"""A document as far as it makes sense: the tasks that could be decoded, and what is wrong with the others."""

from __future__ import annotations

import re
from typing import Any, TypeVar

import msgspec

from fleet.config.fields import KeyPath
from fleet.config.problems import Problem
from fleet.config.specs.problems import found_words, shape_problems
from fleet.model.clash import ClashError
from fleet.model.spec import RunSpec, TaskSpec

T = TypeVar("T")
OF_A_RUN = frozenset({"tasks", "workers", "alerts"})
ANY_TASK = {"id": "any"}
STEP = re.compile(r"\.([^.\[`]+)|\[(\d+)\]")


class Draft(msgspec.Struct, frozen=True, kw_only=True):
    """What a document holds. `ids` has every id that is written, also of tasks that could not be decoded."""

    run: RunSpec | None  # without its tasks; None: it could not be decoded
    tasks: tuple[tuple[KeyPath, TaskSpec], ...]
    ids: tuple[str, ...]
    problems: list[Problem]


def draft(value: Any) -> Draft:
    """A run, a list of tasks, or a single task."""
    if isinstance(value, list):
        return _with_tasks({}, value, ())
    if not isinstance(value, dict):
        problem = Problem((), f"expected a run, a list of tasks or a task, found {found_words(value)}")
        return Draft(run=None, tasks=(), ids=(), problems=[problem])
    if "id" in value and not OF_A_RUN & value.keys():
        return _with_tasks({}, [value], None)
    tasks = value.get("tasks")
    if not isinstance(tasks, list):
        return Draft(run=None, tasks=(), ids=(), problems=shape_problems(value, RunSpec, ()))
    return _with_tasks({name: each for name, each in value.items() if name != "tasks"}, tasks, ("tasks",))


def _with_tasks(head: dict[str, Any], tasks: list[Any], place: KeyPath | None) -> Draft:
    """`place` is where the tasks stand; None: the document is the one task."""
    problems: list[Problem] = []
    run = _decoded({**head, "tasks": [ANY_TASK]}, RunSpec, (), problems)
    decoded = []
    for number, raw in enumerate(tasks):
        path: KeyPath = () if place is None else (*place, number)
        task = _decoded(raw, TaskSpec, path, problems)
        if task is not None:
            decoded.append((path, task))
    if not tasks:
        problems.append(Problem(place or (), "is empty; expected at least one task"))
    ids = tuple(str(raw["id"]) for raw in tasks if isinstance(raw, dict) and "id" in raw)
    return Draft(run=run, tasks=tuple(decoded), ids=ids, problems=problems)


def _decoded(value: Any, kind: type[T], path: KeyPath, problems: list[Problem]) -> T | None:
    try:
        return msgspec.convert(value, kind)
    except msgspec.ValidationError as exc:
        found = shape_problems(value, kind, path)
        problems += found or [_by_the_decoder(exc, path)]  # the schema cannot say all that the decoder knows
        return None


def _by_the_decoder(error: msgspec.ValidationError, path: KeyPath) -> Problem:
    """What the decoder says: its own words, or those of a rule that several fields break together."""
    text, _, place = str(error).rpartition(" - at `$")
    steps = [int(number) if number else name for name, number in STEP.findall(place)]
    within = error.__cause__.path if isinstance(error.__cause__, ClashError) else ()
    return Problem((*path, *steps, *within), text or str(error))
