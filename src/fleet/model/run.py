"""A run: tasks that were submitted together."""

from __future__ import annotations

from typing import Any

import msgspec

from fleet.model.reach import Reach
from fleet.model.states import RunState


class RunWorker(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, forbid_unknown_fields=True):
    """A worker as its run keeps it: who may take its tasks."""

    name: str
    capabilities: tuple[str, ...] = ()
    max_tasks: int = 1  # at once
    host: str = ""  # the name of a host of the settings; empty: this machine, unless it is described here
    reach: Reach | None = None  # how the worker's own machine is reached

    @property
    def is_here(self) -> bool:
        """Whether it works on the machine that supervises."""
        return not self.host and self.reach is None

    def host_in(self, run: str) -> str:
        """The name of its host: a machine that a run brought with it is the run's own. Empty: this machine."""
        return f"{run}/{self.name}" if self.reach is not None else self.host


class NewRun(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A run as a person asks for it."""

    name: str
    labels: dict[str, str] = {}
    max_workers: int | None = None
    workers: tuple[RunWorker, ...] = ()
    alerts: dict[str, Any] | None = None  # as its spec declares them


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
    alerts: dict[str, Any] | None = None  # as its spec declares them; beside what fleet.toml says
    created_at: int
    created_by: str
    ended_at: int | None = None
