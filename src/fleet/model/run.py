"""A run: tasks that were submitted together."""

from __future__ import annotations

import msgspec

from fleet.model.states import RunState


class RunWorker(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, forbid_unknown_fields=True):
    """A worker as its run keeps it: who may take its tasks."""

    name: str
    capabilities: tuple[str, ...] = ()
    max_tasks: int = 1  # at once


class NewRun(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A run as a person asks for it."""

    name: str
    labels: dict[str, str] = {}
    max_workers: int | None = None
    workers: tuple[RunWorker, ...] = ()


class Run(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, forbid_unknown_fields=True):
    """A run as it stands."""

    id: str
    name: str
    labels: dict[str, str] = {}
    state: RunState = RunState.ACTIVE
    stopping: bool = False  # a person stopped it: it will not be completed
    tasks: int = 0
    max_workers: int | None = None  # how many of its tasks may run at once; None: as many as there is room for
    workers: tuple[RunWorker, ...] = ()  # who may take its tasks; none: any slot
    created_at: int
    created_by: str
    ended_at: int | None = None
