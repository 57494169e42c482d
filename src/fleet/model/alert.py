"""Alerts: what a person should hear of. Each is raised with the transition that causes it, and changes no state."""

from __future__ import annotations

from enum import StrEnum

import msgspec


class AlertKind(StrEnum):
    """A closed set."""

    STALE = "stale"  # a session gave no sign of life for too long
    RESTART_EXHAUSTED = "restart_exhausted"  # the last attempt is spent
    NEEDS_HUMAN = "needs_human"
    BUDGET_EXCEEDED = "budget_exceeded"
    VERIFIER_FAILED = "verifier_failed"
    RUN_COMPLETED = "run_completed"
    HOST_UNHEALTHY = "host_unhealthy"
    HOST_RECOVERED = "host_recovered"


class Alert(msgspec.Struct, frozen=True):
    """One thing to be told."""

    kind: AlertKind
    reason: str  # one sentence


# The blocks that are raised to a person. A question is not: it is asked, and shown where questions are.
ESCALATED = frozenset({"needs_human", "permission", "secret", "destructive", "budget"})


def of_block(kind: str, text: str) -> tuple[Alert, ...]:
    """What is raised when a task is blocked."""
    return (Alert(AlertKind.NEEDS_HUMAN, f"{kind}: {text}"),) if kind in ESCALATED else ()
