"""The states of tasks, sessions and runs, and the moves between them. Any other move raises.

task     queued ──▶ running ──▶ verifying ──▶ completed | partial | failed | cancelled
           ▲           │            │
           ├───────────┴────────────┤   retry, plan limit, our own stop: back to queued
           └──────── blocked ◀──────┘   a question, an interrupt, needs a person
         partial ──▶ verifying   and back, when a verifier ended without a verdict; an end may be verified again

session  starting ──▶ running ──▶ stopping ──▶ exited | lost
run      active ──▶ completed | stopped
"""

from __future__ import annotations

from enum import StrEnum

from fleet.errors import IllegalMove


class TaskState(StrEnum):
    """Where a task stands. *Ready* is not here: it is derived (queued, needs completed, not_before past)."""

    QUEUED = "queued"
    RUNNING = "running"
    VERIFYING = "verifying"
    COMPLETED = "completed"
    PARTIAL = "partial"
    FAILED = "failed"
    CANCELLED = "cancelled"
    BLOCKED = "blocked"


class SessionState(StrEnum):
    """Where one attempt stands."""

    STARTING = "starting"
    RUNNING = "running"
    STOPPING = "stopping"
    EXITED = "exited"
    LOST = "lost"


class RunState(StrEnum):
    """Where a run stands."""

    ACTIVE = "active"
    COMPLETED = "completed"
    STOPPED = "stopped"


class Result(StrEnum):
    """The verdict of a receipt."""

    PASS = "pass"
    FAIL = "fail"
    PARTIAL = "partial"
    SKIP = "skip"
    TIMEOUT = "timeout"


class Source(StrEnum):
    """Who failed."""

    TRANSPORT = "transport"
    TASK = "task"
    VERIFIER = "verifier"


T, S = TaskState, SessionState

IN_PROGRESS = frozenset({T.RUNNING, T.VERIFYING})
ENDED = frozenset({T.COMPLETED, T.FAILED, T.CANCELLED})
OPEN = frozenset(T) - ENDED
UNMET = frozenset({T.FAILED, T.CANCELLED})  # a need in one of these will not be met
LIVE = frozenset({S.STARTING, S.RUNNING, S.STOPPING})

STATE_OF_RESULT = {
    Result.PASS: T.COMPLETED,
    Result.PARTIAL: T.PARTIAL,
    Result.FAIL: T.FAILED,
    Result.TIMEOUT: T.FAILED,
    Result.SKIP: T.CANCELLED,
}

# A person may settle or cancel what is not in progress, and may take back an end (restart, reopen, verify again).
TASK_MOVES: dict[TaskState, frozenset[TaskState]] = {
    T.QUEUED: frozenset({T.RUNNING, T.BLOCKED, T.COMPLETED, T.CANCELLED}),
    T.RUNNING: frozenset({T.VERIFYING, T.QUEUED, T.BLOCKED, *ENDED, T.PARTIAL}),
    T.VERIFYING: frozenset({T.QUEUED, T.BLOCKED, *ENDED, T.PARTIAL}),
    T.PARTIAL: frozenset({T.VERIFYING, T.PARTIAL, T.COMPLETED, T.FAILED, T.CANCELLED, T.QUEUED}),
    T.BLOCKED: frozenset({T.QUEUED, T.COMPLETED, T.CANCELLED, T.BLOCKED}),
    T.COMPLETED: frozenset({T.QUEUED, T.PARTIAL}),
    T.FAILED: frozenset({T.QUEUED, T.PARTIAL}),
    T.CANCELLED: frozenset({T.QUEUED}),
}

SESSION_MOVES: dict[SessionState, frozenset[SessionState]] = {
    S.STARTING: frozenset({S.RUNNING, S.STOPPING, S.EXITED, S.LOST}),
    S.RUNNING: frozenset({S.STOPPING, S.EXITED, S.LOST}),
    S.STOPPING: frozenset({S.EXITED, S.LOST}),
    S.EXITED: frozenset(),
    S.LOST: frozenset(),
}

RUN_MOVES: dict[RunState, frozenset[RunState]] = {
    RunState.ACTIVE: frozenset({RunState.COMPLETED, RunState.STOPPED}),
    RunState.COMPLETED: frozenset({RunState.ACTIVE}),  # a restarted task re-opens its run
    RunState.STOPPED: frozenset({RunState.ACTIVE}),
}


def move_task(uid: str, old: TaskState, new: TaskState) -> TaskState:
    """The new state, if the table has the move."""
    if new not in TASK_MOVES[old]:
        raise IllegalMove(f"task {uid} is {old.value}; it cannot become {new.value}")
    return new


def move_session(session: str, old: SessionState, new: SessionState) -> SessionState:
    """The new state, if the table has the move."""
    if new not in SESSION_MOVES[old]:
        raise IllegalMove(f"session {session} is {old.value}; it cannot become {new.value}")
    return new


def move_run(run: str, old: RunState, new: RunState) -> RunState:
    """The new state, if the table has the move."""
    if new not in RUN_MOVES[old]:
        raise IllegalMove(f"run {run} is {old.value}; it cannot become {new.value}")
    return new
