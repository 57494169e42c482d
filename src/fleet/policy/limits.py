"""Limits: when a session that runs must end, and why."""

from __future__ import annotations

import msgspec

from fleet.model.session import Progress


class Limits(msgspec.Struct, frozen=True, kw_only=True):
    """The bounds of a session; 0 is none."""

    seconds: int = 0
    idle_seconds: int = 0
    context_pct: int = 90


class Exceeded(msgspec.Struct, frozen=True):
    """A bound that was crossed: the outcome it makes, and the sentence."""

    outcome: str
    reason: str


def exceeded(
    limits: Limits, progress: Progress, *, elapsed_ms: int, idle_ms: int, in_tool: bool, window: int | None
) -> Exceeded | None:
    """The first bound that is crossed. Silence while a tool runs is work, not idleness."""
    if limits.seconds and elapsed_ms > limits.seconds * 1000:
        return Exceeded("budget", f"it ran longer than {limits.seconds} s")
    if limits.idle_seconds and not in_tool and idle_ms > limits.idle_seconds * 1000:
        return Exceeded("stalled", f"it said nothing for {idle_ms // 1000} s")
    if window and progress.context_tokens * 100 >= window * limits.context_pct:
        share = progress.context_tokens * 100 // window
        return Exceeded("context", f"its context is {share} % full, past the limit of {limits.context_pct} %")
    return None
