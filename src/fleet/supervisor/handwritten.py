"""Edits by hand: what a person changed in the task.json of a task is taken when the task is about to be claimed."""

from __future__ import annotations

from typing import Any

from fleet.model.task import Task, TaskEdit
from fleet.plugins import check_coder
from fleet.store import taskfile
from fleet.supervisor.house import House

BY = "task.json"


async def take(house: House, task: Task) -> Task:
    """The task with its edits. UsageError: they cannot be taken, and nothing has changed.

    A directory binds the task to this machine, as it does where it is set by a command.
    """
    edits: dict[str, Any] = taskfile.edits(house.home, task)
    if not edits:
        return task
    if edits.get("coder"):
        check_coder(edits["coder"], house.settings.own_coders)
    if "cwd" in edits:
        edits["host"] = house.machine if edits["cwd"] else None
    after = await house.store.edit(task.uid, TaskEdit(**edits), by=BY)
    taskfile.write(house.home, after)
    return after
