"""The objects that the front alone takes and gives. All others are those of the projections and of the model."""

from __future__ import annotations

from typing import Annotated, Any, Literal, TypeAlias

import msgspec
from msgspec import Meta

from fleet.model.intent import Intent
from fleet.model.receipt import Usage
from fleet.projections.queue import TaskDetail
from fleet.projections.runs import Live, RunView, TaskResult

Decided: TypeAlias = TaskDetail | Intent  # the task after a decision, or the wish that its supervisor has yet to fulfil


class RunDetail(msgspec.Struct, frozen=True, kw_only=True):
    """A run as `fleet wait` prints it."""

    run: RunView
    tasks: list[TaskResult]
    exit_code: int


class RunLive(msgspec.Struct, frozen=True, kw_only=True):
    """A run while it goes on: how it stands, and what is in progress, the longest first."""

    run: RunView
    live: list[Live]


class Created(msgspec.Struct, frozen=True, kw_only=True):
    """A run that entered the queue. Without supervisors it waits for `fleet run`."""

    run: RunView
    tasks: dict[str, str]  # by the ids of the spec, those of the queue
    warnings: list[str]
    supervisors: list[str]


class LogView(msgspec.Struct, frozen=True, kw_only=True):
    """What the agents of a task said, as a file; `session` where the word meant one of them alone."""

    task: str
    session: str | None
    file: str
    size: int | None  # bytes; None: there is none yet


class TaskFile(msgspec.Struct, frozen=True, kw_only=True):
    """A file of a task, as `fleet task` prints it; no text: there is none yet."""

    task: str
    file: str
    text: str | None
    left_out: int = 0  # bytes of its end that are not in the text


class TaskDiff(msgspec.Struct, frozen=True, kw_only=True):
    """What a task changed in its own worktree."""

    task: str
    diff: str


class ConfigView(msgspec.Struct, frozen=True, kw_only=True):
    """The settings as `fleet config show` prints them."""

    home: str
    file: str | None
    settings: dict[str, Any]
    defaults: list[str]


class Used(msgspec.Struct, frozen=True, kw_only=True):
    """What a session has used so far."""

    session: str
    usage: Usage
    peak_context_tokens: int


class SupervisorLog(msgspec.Struct, frozen=True, kw_only=True):
    """The newest lines of the supervisor's own log."""

    file: str | None
    lines: list[str]


class Add(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A task to put in the queue."""

    title: Annotated[str, Meta(min_length=1, max_length=500, description="One line that says what is to be done.")]
    description: Annotated[str, Meta(max_length=1_000_000, description="The details.")] = ""
    coder: Annotated[str, Meta(min_length=1, max_length=128)] | None = None
    model: Annotated[str, Meta(min_length=1, max_length=200)] | None = None
    cwd: Annotated[str, Meta(min_length=1, max_length=4096, description="Where the agent works.")] | None = None
    priority: Annotated[int, Meta(ge=0, le=4, description="0 is the most urgent.")] = 2
    needs: Annotated[list[str], Meta(max_length=1000, description="Tasks that must be completed first.")] = []
    labels: dict[str, str] = {}
    isolation: Literal["none", "worktree"] | None = None
