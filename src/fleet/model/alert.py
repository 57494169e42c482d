"""Alerts: what a person should hear of. Each is raised with the transition that causes it, and changes no state."""

from __future__ import annotations

from enum import StrEnum
from typing import TYPE_CHECKING, Literal

import msgspec

if TYPE_CHECKING:
    from fleet.model.host import Host


class AlertKind(StrEnum):
    """A closed set; the settings and specs name the same ones, as `AlertEvent`."""

    STALE = "stale"  # a session gave no sign of life for too long
    RESTART_EXHAUSTED = "restart_exhausted"  # the last attempt is spent
    NEEDS_HUMAN = "needs_human"
    BUDGET_EXCEEDED = "budget_exceeded"
    VERIFIER_FAILED = "verifier_failed"
    RUN_COMPLETED = "run_completed"
    HOST_UNHEALTHY = "host_unhealthy"
    HOST_RECOVERED = "host_recovered"


AlertEvent = Literal[
    "stale",
    "restart_exhausted",
    "needs_human",
    "budget_exceeded",
    "verifier_failed",
    "run_completed",
    "host_unhealthy",
    "host_recovered",
]


class Alert(msgspec.Struct, frozen=True):
    """One thing to be told."""

    kind: AlertKind
    reason: str  # one sentence


# The blocks that are raised to a person. A question is not: it is asked, and shown where questions are.
ESCALATED = frozenset({"needs_human", "permission", "secret", "destructive", "budget"})


def of_block(kind: str, text: str) -> tuple[Alert, ...]:
    """What is raised when a task is blocked."""
    return (Alert(AlertKind.NEEDS_HUMAN, f"{kind}: {text}"),) if kind in ESCALATED else ()


def of_host(host: Host, *, alerted: bool, after: int) -> tuple[Alert, ...]:
    """What is raised by a probe: that a machine is down, after so many that found it so; then that it is up again."""
    evidence = f": {host.evidence}" if host.evidence else ""
    if host.state == "down" and not alerted and host.failures >= after:
        return (Alert(AlertKind.HOST_UNHEALTHY, f"{host.name} is down{evidence}"),)
    if host.state == "up" and alerted:
        return (Alert(AlertKind.HOST_RECOVERED, f"{host.name} is up again{evidence}"),)
    return ()
