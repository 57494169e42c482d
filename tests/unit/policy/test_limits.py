"""When a session that runs must end."""

from __future__ import annotations

import pytest

from fleet.config.settings import Supervisor
from fleet.model.receipt import Usage
from fleet.model.session import Progress
from fleet.model.terms import Budget, Terms
from fleet.policy.limits import Exceeded, Limits, Used, exceeded, limits_of, used_up, verifier_limits

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


def test_what_was_printed_is_bounded() -> None:
    """By what was read and by what is known to be there; a task's own bound goes before that of the settings."""
    limits = limits_of(Terms(max_output_mb=2), Supervisor(max_output_mb=1, max_log_mb=3))
    assert (limits.output_bytes, limits.log_bytes) == (2_000_000, 3_000_000)

    def crossed(cursor: int, printed: int) -> Exceeded | None:
        progress = Progress(cursor=cursor)
        return exceeded(limits, progress, elapsed_ms=0, idle_ms=0, in_tool=True, window=None, printed=printed)

    assert crossed(2_000_000, 2_000_000) is None
    for over in (crossed(2_000_001, 0), crossed(0, 2_000_001)):
        assert over == Exceeded("budget", "it printed more than 2 MB (max_output_mb)", "output_mb")
    assert verifier_limits(9, Supervisor(max_output_mb=1)).output_bytes == 1_000_000


USED = Usage(input_tokens=40, cached_tokens=5000, output_tokens=60, tool_calls=3, cost_microusd=250_000)


@pytest.mark.parametrize(
    ("budget", "bound", "reason"),
    [
        (Budget(max_tokens=200), None, ""),
        (Budget(max_tokens=199), "tokens", "it used 200 tokens, more than its budget of 199 tokens"),
        (Budget(max_tool_calls=6), None, ""),
        (Budget(max_tool_calls=5), "tool_calls", "it used 6 tool calls, more than its budget of 5 tool calls"),
        (Budget(max_microusd=500_000), None, ""),
        (Budget(max_microusd=400_000), "usd", "it used $0.5, more than its budget of $0.4"),
        (Budget(max_seconds=90), None, ""),
        (Budget(max_seconds=89), "seconds", "it used 90 s, more than its budget of 89 s"),
        (Budget(idle_seconds=9), None, ""),
        (
            Budget(idle_seconds=8),
            "idle_seconds",
            "it said nothing for 9 s, and its budget allows 8 s of silence",
        ),
    ],
)
def test_a_budget_counts_all_attempts(budget: Budget, bound: str | None, reason: str) -> None:
    """What earlier sessions used counts; of input only what came from no cache; silence is that of this one."""
    crossed = exceeded(
        Limits(budget=budget),
        Progress(usage=USED),
        elapsed_ms=30_000,
        idle_ms=9000,
        in_tool=False,
        window=None,
        before=Used(USED, 60_000),
    )
    if bound is None:
        assert crossed is None
    else:
        assert crossed is not None
        assert (crossed.outcome, crossed.bound, crossed.reason) == ("budget", bound, reason)


def test_a_budget_of_silence_is_not_used_by_a_tool() -> None:
    """While a tool runs it is at work."""
    limits = Limits(budget=Budget(idle_seconds=1))
    assert exceeded(limits, Progress(), elapsed_ms=0, idle_ms=9000, in_tool=True, window=None) is None


@pytest.mark.parametrize(
    ("budget", "gone"),
    [
        (Budget(), False),
        (Budget(max_tokens=101), False),
        (Budget(max_tokens=100), True),
        (Budget(max_tool_calls=3), True),
        (Budget(max_microusd=250_000), True),
        (Budget(max_seconds=61), False),
        (Budget(max_seconds=60), True),
        (Budget(idle_seconds=1), False),
    ],
)
def test_what_is_used_up_begins_nothing(budget: Budget, gone: bool) -> None:
    """With nothing left no further session is begun."""
    assert (used_up(budget, Used(USED, 60_000)) is not None) == gone


def test_a_task_says_its_own_bounds_else_the_settings_do() -> None:
    """Each bound for itself; 0 in the settings is none; either may ask for a pause."""
    configured = Supervisor(budget_tokens=1000, budget_usd=2.5, budget_pause=True, timeout_seconds=60, idle_seconds=7)
    terms = Terms(budget=Budget(max_tokens=10, max_tool_calls=4), timeout_seconds=30)
    limits = limits_of(terms, configured)
    assert limits.budget == Budget(max_tokens=10, max_tool_calls=4, max_microusd=2_500_000, pause=True)
    assert (limits.seconds, limits.idle_seconds) == (30, 7)
    assert limits_of(Terms(), Supervisor()).budget == Budget()
    assert limits_of(Terms(), configured).seconds == 60
    all_of_them = limits_of(
        Terms(), Supervisor(budget_tool_calls=5, budget_seconds=9, context_pressure_threshold_pct=70)
    )
    assert all_of_them.budget == Budget(max_tool_calls=5, max_seconds=9)
    assert all_of_them.context_pct == 70
