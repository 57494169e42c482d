"""Triage: what kind of trouble a task is in, and with what command it may be run again.

transient     it can recover without a change of the task: a restart is in order while attempts are left
task          the agent did its part and failed: look at what it left before it is run again
verifier      a result is there, and its verifier failed or has yet to say
needs-human   authority, a secret, a decision, or more attempts are missing: only a person can give these
"""

from __future__ import annotations

from fleet.model.outcome import OutcomeKind
from fleet.model.states import Source, TaskState
from fleet.model.task import Task
from fleet.policy.ending import Allowance
from fleet.policy.restarting import refusal

K = OutcomeKind
TRANSIENT, TASK, VERIFIER, NEEDS_HUMAN = "transient", "task", "verifier", "needs-human"
OF_OUTCOME = {
    K.TRANSIENT: TRANSIENT,
    K.PLAN_LIMIT: TRANSIENT,
    K.CONTEXT: TRANSIENT,
    K.STALLED: TRANSIENT,
    K.CRASHED: TASK,
    K.REFUSAL: TASK,
    K.BUDGET: TASK,
    K.AUTH: NEEDS_HUMAN,
    K.MISSING: NEEDS_HUMAN,
    K.DENIED: NEEDS_HUMAN,
    K.PLUGIN: NEEDS_HUMAN,
    K.INTERRUPTED: TRANSIENT,  # by somebody else; what a person interrupted is blocked
}


def classify(task: Task, outcome: str | None, *, orphaned: bool) -> str | None:
    """The kind of trouble; None when it is in none. `outcome` is that of its last session."""
    if orphaned:
        return TRANSIENT
    if task.state is TaskState.BLOCKED or task.escalated:
        return NEEDS_HUMAN
    if task.state is TaskState.PARTIAL or task.source is Source.VERIFIER:
        return VERIFIER
    if task.state is TaskState.FAILED:
        return TRANSIENT if task.source is Source.TRANSPORT else TASK
    if task.state is TaskState.QUEUED and outcome in list(K):
        return OF_OUTCOME.get(K(outcome))
    return None


def restart_command(task: Task, allowance: Allowance) -> str:
    """How it is run again; with --force where a person must say that they mean it."""
    return f"fleet restart {task.uid}" + (" --force" if refusal(task, allowance) else "")
