"""Alerts: what a person should hear of. Each is raised with the transition that causes it, and changes no state."""

from __future__ import annotations

from enum import StrEnum

import msgspec

from fleet.model.host import Host


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


def of_host(before: str, host: Host) -> tuple[Alert, ...]:
    """What is raised when a machine changed: that it is down, and that it is up again."""
    if "down" not in (before, host.state) or before == host.state:
        return ()
    evidence = f": {host.evidence}" if host.evidence else ""
    if host.state == "down":
        return (Alert(AlertKind.HOST_UNHEALTHY, f"{host.name} is down{evidence}"),)
    return (
        (Alert(AlertKind.HOST_RECOVERED, f"{host.name} is {host.state} again{evidence}"),) if host.state == "up" else ()
    )
