"""Builders: a valid thing in one call, with only what the test is about spelled out."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from fleet.model.event import Event
from fleet.model.fold import fold_task
from fleet.model.receipt import Awaits, Verdict
from fleet.model.session import Defaults, Ending, Slot
from fleet.model.states import Result, SessionState, Source
from fleet.model.task import NewTask, Task

DEFAULTS = Defaults(coder="scripted", model="small")


def a_task(title: str = "Write the changelog", **fields: Any) -> NewTask:
    """A task as a person asks for it."""
    return NewTask(title=title, **fields)


def a_slot(worker: str = "local#1", host: str = "local@here", **fields: Any) -> Slot:
    """Room for one task, on a machine that can do everything."""
    return Slot(worker=worker, host=host, **fields)


def slots(n: int, **fields: Any) -> list[Slot]:
    """Room for n tasks."""
    return [a_slot(f"local#{k}", **fields) for k in range(1, n + 1)]


def a_pass(reason: str = "all checks passed") -> Verdict:
    """A verdict that completes a task."""
    return Verdict(result=Result.PASS, reason=reason, scorer="exit_code")


def a_fail(reason: str = "exit code 1", source: Source = Source.TASK) -> Verdict:
    """A verdict that fails a task."""
    return Verdict(result=Result.FAIL, reason=reason, source=source, scorer="exit_code")


def a_partial(reason: str = "waits for a verifier", awaits: Awaits | None = None) -> Verdict:
    """A verdict that a verifier, or a person, has yet to settle."""
    scorer = awaits.kind if awaits else "manual"
    return Verdict(result=Result.PARTIAL, reason=reason, scorer=scorer, awaits=awaits, duration_ms=1000)


def a_verifier(kind: str = "command", host: str = "local@here", **fields: Any) -> Awaits:
    """What a result waits for: a session of a verifier, where the files are."""
    return Awaits(kind=kind, coder="command", host=host, **fields)


EXITED = Ending(outcome="ok")
CRASHED = Ending(outcome="crashed")
LOST = Ending(outcome="transient", state=SessionState.LOST)


def fold_all(events: Iterable[Event]) -> Task | None:
    """The task that a whole chain stands for."""
    task: Task | None = None
    for event in events:
        task = fold_task(task, event)
    return task
