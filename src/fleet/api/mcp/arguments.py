"""What tools take. An agent reads these as schemas: each bound and each word of help counts."""

from __future__ import annotations

from typing import Annotated, Any, Literal

import msgspec
from msgspec import Meta

from fleet.model.spec import DEFAULT_WORKERS
from fleet.model.states import TaskState

Id = Annotated[str, Meta(min_length=1, max_length=256, description="A worker, a task or a session; any unique part.")]
RunId = Annotated[str, Meta(min_length=1, max_length=256, description="A run; any unique part of its id.")]
Text = Annotated[str, Meta(min_length=1, max_length=100_000)]
Because = Annotated[str, Meta(max_length=2000, description="Why; stands in the ledger. No secrets.")]
Limit = Annotated[int, Meta(ge=1, le=1000, description="At most so many.")]


class Takes(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Nothing."""


class OfRun(Takes, frozen=True, kw_only=True):
    """All, or one run."""

    run: RunId | None = None


class OfOne(Takes, frozen=True, kw_only=True):
    """Whom it concerns."""

    id: Id


class OfTasks(Takes, frozen=True, kw_only=True):
    """Which tasks."""

    run: RunId | None = None
    states: Annotated[list[TaskState], Meta(description="In these states; else those in progress.")] = []
    limit: Limit = 50


class OfLogs(OfOne, frozen=True, kw_only=True):
    """Whose log, and how much of its end."""

    lines: Annotated[int, Meta(ge=1, le=500, description="How many records, from the end.")] = 50


class OfReceipts(Takes, frozen=True, kw_only=True):
    """Of a task, of a run, or all."""

    id: Id | None = None
    run: RunId | None = None


class OfCost(Takes, frozen=True, kw_only=True):
    """Of how long, and how it is divided."""

    hours: Annotated[int, Meta(ge=1, le=24 * 366, description="The last so many hours.")] = 24
    by: Literal["coder", "model", "host", "label", "run"] = "coder"


class OfWait(Takes, frozen=True, kw_only=True):
    """Which run, and how long at most."""

    run: RunId
    timeout_seconds: Annotated[int, Meta(ge=1, le=600)] = 60


class Submit(Takes, frozen=True, kw_only=True):
    """A spec, as `fleet run SPEC` takes it."""

    spec: Annotated[dict[str, Any], Meta(description="name, tasks[], workers[], labels; docs/reference/spec.md.")]
    max_workers: Annotated[int, Meta(ge=1, le=1000)] = DEFAULT_WORKERS


class Reasoned(OfOne, frozen=True, kw_only=True):
    """Whom it concerns, and why."""

    reason: Because = ""


class Restart(Reasoned, frozen=True, kw_only=True):
    """Also what is to be overridden: a person decides that."""

    force: Annotated[bool, Meta(description="Though it passed, has no attempt left, or is unsafe twice.")] = False
    abandon: Annotated[bool, Meta(description="Give up its session: the host does not answer.")] = False


class Stop(Takes, frozen=True, kw_only=True):
    """One of id, run and all."""

    id: Id | None = None
    run: RunId | None = None
    all: bool = False
    reason: Because = ""


class Say(OfOne, frozen=True, kw_only=True):
    """To which task, and what."""

    text: Text


class Judge(OfOne, frozen=True, kw_only=True):
    """Without `passed` the verifier runs again; with it, it is a verdict, which only a person should give."""

    passed: bool | None = None
    note: Annotated[str, Meta(max_length=2000)] = ""
