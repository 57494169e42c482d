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
DEPTHS = (0, 1, 2)  # of the paths of tasks: the document, one of a list, one of a run's
PLACES = frozenset({"cwd", "workspace"})
# What the rules about a field look at: where one of these is wrong, what they say may come of that.
LOOKED_AT: dict[str, frozenset[str]] = {
    "instructions": frozenset({"instructions", "command", "name", "description", "objective"}),
    "command": frozenset({"command", "coder"}),
    "worker": frozenset({"worker", "coder", "command"}),
    "setup": frozenset({"setup", "isolation"}),
    "copy_files": PLACES | {"copy_files", "isolation"},
    "needs": frozenset({"needs", "id"}),
    **{name: PLACES | {name} for name in ("cwd", "workspace", "input_files", "expected_artifacts", "scorer")},
}
STEP = re.compile(r"\.([^.\[`]+)|\[(\d+)\]")


class Draft(msgspec.Struct, frozen=True, kw_only=True):
    """What a document holds. `ids` has every id that is written, also of tasks that could not be decoded."""

    run: RunSpec | None  # without its tasks; None: it could not be decoded
    tasks: tuple[tuple[KeyPath, TaskSpec], ...]
    ids: tuple[str, ...]
    problems: list[Problem]
    without: dict[KeyPath, frozenset[str]] = {}  # fields that a task had to be decoded without: they are wrong

    def stands(self, problem: Problem) -> bool:
        """Whether a rule's problem is one, though the task that it speaks of lacks what is wrong with it."""
        for length in DEPTHS:
            lost = self.without.get(problem.path[:length])
            if lost is not None:
                field = str(problem.path[length]) if len(problem.path) > length else ""
                return lost.isdisjoint(LOOKED_AT.get(field, {field}))
        return True


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
    decoded: list[tuple[KeyPath, TaskSpec]] = []
    without: dict[KeyPath, frozenset[str]] = {}
    for number, raw in enumerate(tasks):
        path: KeyPath = () if place is None else (*place, number)
        before = len(problems)
        task = _decoded(raw, TaskSpec, path, problems)
        if task is None:
            lost = frozenset(str(each.path[len(path)]) for each in problems[before:] if len(each.path) > len(path))
            task = _salvaged(raw, lost, number)
            without[path] = lost
        if task is not None:
            decoded.append((path, task))
    if not tasks:
        problems.append(Problem(place or (), "is empty; expected at least one task"))
    ids = tuple(str(raw["id"]) for raw in tasks if isinstance(raw, dict) and "id" in raw)
    return Draft(run=run, tasks=tuple(decoded), ids=ids, problems=problems, without=without)


def _salvaged(raw: Any, lost: frozenset[str], number: int) -> TaskSpec | None:
    """A task without its fields that are wrong, so that the rules about the others can be told too."""
    if not isinstance(raw, dict) or not lost:
        return None
    kept = {name: value for name, value in raw.items() if name not in lost}
    try:
        return msgspec.convert({"id": f"task-{number}", **kept}, TaskSpec)
    except msgspec.ValidationError:
        return None


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
