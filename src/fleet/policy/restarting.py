"""Restarting: whether a person may run a task again without saying that they mean it."""

from __future__ import annotations

import msgspec

from fleet.model.states import TaskState
from fleet.model.task import Task
from fleet.policy.ending import Allowance
from fleet.policy.limits import Exceeded


class Refusal(msgspec.Struct, frozen=True):
    """Why not, and what helps."""

    reason: str
    hint: str


BUDGET_KEYS = {"tokens": "budget_tokens", "tool_calls": "budget_tool_calls", "seconds": "budget_seconds"}
BUDGET_KEYS |= {"usd": "budget_usd", "idle_seconds": "budget_idle_seconds", "timeout": "timeout_seconds"}


def refusal(task: Task, allowance: Allowance) -> Refusal | None:
    """Why a task is not run again, if it is not. What it says of a task that never began does not hold."""
    forced = f"fleet restart {task.uid} --force"
    if task.state is TaskState.COMPLETED:
        return Refusal(f"task {task.uid} has passed", f"to run it once more all the same: {forced}")
    if not allowance.retry_safe and task.epoch:
        return Refusal(f"task {task.uid} is not safe to run twice", f"look at what it has done; then: {forced}")
    if task.state is TaskState.FAILED and task.charged >= allowance.max_attempts:
        spent = f"{task.charged} of {allowance.max_attempts}"
        return Refusal(f"task {task.uid} has no attempt left ({spent} are spent)", f"to give it one more: {forced}")
    return None


def without_budget(task: Task, gone: Exceeded) -> Refusal:
    """What is told of a task that has nothing left to run on: no force helps, it would end at once."""
    return Refusal(f"task {task.uid}: {gone.reason}", f"raise it: {raise_command(task, gone)}")


def raise_command(task: Task, gone: Exceeded) -> str:
    """How the bound that was crossed is raised."""
    return f"fleet task {task.uid} set {BUDGET_KEYS[gone.bound]}=N"
