"""When a session that runs must end."""

from __future__ import annotations

import pytest

from fleet.model.session import Progress
from fleet.policy.limits import Limits, exceeded

BOUNDS = Limits(seconds=60, idle_seconds=10, context_pct=90)


@pytest.mark.parametrize(
    ("elapsed", "idle", "in_tool", "tokens", "outcome"),
    [
        (60_000, 10_000, False, 0, None),
        (60_001, 0, False, 0, "budget"),
        (60_001, 0, True, 0, "budget"),
        (50_000, 10_001, False, 0, "stalled"),
        (50_000, 10_001, True, 0, None),
        (0, 0, False, 179_999, None),
        (0, 0, False, 180_000, "context"),
        (0, 0, True, 180_000, "context"),
    ],
)
def test_each_bound_ends_a_session(elapsed: int, idle: int, in_tool: bool, tokens: int, outcome: str | None) -> None:
    """Time, silence while no tool runs, and a context that is nearly full each end it with their own outcome."""
    progress = Progress(context_tokens=tokens)
    crossed = exceeded(BOUNDS, progress, elapsed_ms=elapsed, idle_ms=idle, in_tool=in_tool, window=200_000)
    assert (crossed.outcome if crossed else None) == outcome


def test_no_bound_means_none() -> None:
    """Zero is no bound, and a window that is not known cannot be full."""
    progress = Progress(context_tokens=10**9)
    assert exceeded(Limits(), progress, elapsed_ms=10**12, idle_ms=10**12, in_tool=False, window=None) is None


def test_a_bound_that_was_crossed_says_so() -> None:
    """The sentence has the numbers."""
    crossed = exceeded(BOUNDS, Progress(context_tokens=190_000), elapsed_ms=0, idle_ms=0, in_tool=False, window=200_000)
    assert crossed is not None
    assert crossed.reason == "its context is 95 % full, past the limit of 90 %"
