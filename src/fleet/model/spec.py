"""Specs: what a person writes in a file. The fields that this version honours, and no others."""

from __future__ import annotations

from typing import Annotated

import msgspec
from msgspec import Meta

from fleet.model.run import NewRun
from fleet.model.task import DEFAULT_PRIORITY, NewTask

Token = Annotated[str, Meta(pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]{0,127}$")]


class TaskSpec(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A task in a file."""

    id: Annotated[Token, Meta(description="Names the task within its run; other tasks need it by this.")]
    name: Annotated[str, Meta(min_length=1, max_length=500, description="One line that says what is to be done.")]
    description: Annotated[str, Meta(description="The details.")] = ""
    needs: Annotated[tuple[str, ...], Meta(description="Ids of tasks that must be completed first.")] = ()
    coder: Annotated[str | None, Meta(description="Who does it; else the configured coder.")] = None
    model: Annotated[str | None, Meta(description="With which model; else the coder's configured or own default.")] = (
        None
    )
    cwd: Annotated[str | None, Meta(description="The directory to work in.")] = None
    priority: Annotated[int, Meta(ge=0, le=4, description="0 is the most urgent.")] = DEFAULT_PRIORITY
    capabilities: Annotated[tuple[Token, ...], Meta(description="What the worker must be able to do.")] = ()
    labels: Annotated[dict[str, str], Meta(description="Words to find it by.")] = {}

    def new(self) -> NewTask:
        """The task that this asks for."""
        return NewTask(
            title=self.name,
            description=self.description,
            task_id=self.id,
            priority=self.priority,
            coder=self.coder,
            model=self.model,
            cwd=self.cwd,
            capabilities=self.capabilities,
            labels=self.labels,
            needs=self.needs,
        )


class RunSpec(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A run in a file: tasks that are submitted together."""

    name: Annotated[str, Meta(min_length=1, max_length=256, description="What the run is called.")]
    tasks: Annotated[tuple[TaskSpec, ...], Meta(min_length=1, description="What is to be done.")]
    labels: Annotated[dict[str, str], Meta(description="Words to find the run by.")] = {}

    def new(self) -> NewRun:
        """The run that this asks for."""
        return NewRun(name=self.name, labels=self.labels)
