"""What follows from the end of a session: each outcome, with attempts left and without."""

from __future__ import annotations

import pytest

from fleet.config.settings import Supervisor
from fleet.model.outcome import Outcome, OutcomeKind
from fleet.model.receipt import Usage
from fleet.model.states import Result, Source
from fleet.model.terms import Budget, RetryPolicy, Terms
from fleet.policy.ending import (
    MOST_STARTS,
    Allowance,
    Ask,
    Decision,
    Finish,
    Postpone,
    Retry,
    Spent,
    after_no_start,
    allowance_of,
    backoff,
    decide,
)

K = OutcomeKind


def decided(kind: OutcomeKind, *, charged: int = 0, sessions: int = 1, closed: str | None = None) -> Decision:
    """The decision on an outcome, with three attempts allowed."""
    spent = Spent(charged=charged, sessions=sessions, usage=Usage(output_tokens=7), duration_ms=1200)
    outcome = Outcome(kind=kind, reason="it said so", resets_at=99 if kind is K.PLAN_LIMIT else None)
    return decide(outcome, spent, Allowance(max_attempts=3, max_fresh_sessions=4), closed=closed, jitter=1.0)


@pytest.mark.parametrize(("closed", "reason"), [(None, "it said so"), ("all green", "all green")])
def test_a_session_that_went_well_passes(closed: str | None, reason: str) -> None:
    """The receipt has the agent's own words where it closed its task, and what was used."""
    decision = decided(K.OK, closed=closed)
    assert isinstance(decision, Finish)
    verdict = decision.verdict
    assert (verdict.result, verdict.source, verdict.reason) == (Result.PASS, None, reason)
    assert (verdict.usage.output_tokens, verdict.duration_ms) == (7, 1200)


@pytest.mark.parametrize("kind", [K.TRANSIENT, K.CRASHED, K.STALLED, K.INTERRUPTED])
def test_what_a_retry_can_cure_is_tried_again_and_charged(kind: OutcomeKind) -> None:
    """While attempts are left the task goes back, charged, with a receipt for this one."""
    decision = decided(kind, charged=1)
    assert isinstance(decision, Retry)
    assert (decision.charged, decision.after_seconds) == (True, 10.0)
    assert decision.reason == "attempt 2 of 3: it said so"
    assert decision.verdict is not None
    assert decision.verdict.result in (Result.FAIL, Result.TIMEOUT)


@pytest.mark.parametrize(
    ("kind", "result", "source"),
    [
        (K.TRANSIENT, Result.FAIL, Source.TRANSPORT),
        (K.CRASHED, Result.FAIL, Source.TASK),
        (K.STALLED, Result.TIMEOUT, Source.TRANSPORT),
        (K.INTERRUPTED, Result.FAIL, Source.TASK),
        (K.REFUSAL, Result.FAIL, Source.TASK),
        (K.BUDGET, Result.FAIL, Source.TASK),
    ],
)
def test_the_last_attempt_is_final(kind: OutcomeKind, result: Result, source: Source) -> None:
    """With no attempt left the task has failed, and the receipt says who did."""
    decision = decided(kind, charged=2)
    assert isinstance(decision, Finish)
    assert (decision.verdict.result, decision.verdict.source) == (result, source)
    assert decision.charged


@pytest.mark.parametrize("kind", [K.REFUSAL, K.BUDGET])
def test_what_a_retry_cannot_cure_is_final_at_once(kind: OutcomeKind) -> None:
    """A refusal and a used-up budget are not tried again."""
    assert isinstance(decided(kind), Finish)


@pytest.mark.parametrize(
    ("kind", "asks"), [(K.AUTH, "needs_human"), (K.MISSING, "needs_human"), (K.DENIED, "permission")]
)
def test_what_only_a_person_can_mend_is_asked_of_one(kind: OutcomeKind, asks: str) -> None:
    """The task waits, and says what can be done."""
    decision = decided(kind)
    assert isinstance(decision, Ask)
    assert decision.kind == asks
    assert decision.text.startswith("it said so; ")


def test_a_plan_limit_costs_nothing_and_pauses_the_coder() -> None:
    """The task goes back until the limit resets."""
    decision = decided(K.PLAN_LIMIT, charged=2)
    assert isinstance(decision, Retry)
    assert (decision.charged, decision.verdict, decision.pause_coder_until) == (False, None, 99)


@pytest.mark.parametrize(("sessions", "goes_on"), [(1, True), (3, True), (4, False), (9, False)])
def test_a_full_context_goes_on_afresh_so_often(sessions: int, goes_on: bool) -> None:
    """A fresh session is free, but there is an end to it."""
    decision = decided(K.CONTEXT, sessions=sessions)
    assert isinstance(decision, Retry) == goes_on
    assert not isinstance(decision, Retry) or not decision.charged


@pytest.mark.parametrize(
    ("charged", "jitter", "seconds"),
    [(0, 1.0, 5), (0, 0.0, 2.5), (1, 1.0, 10), (5, 1.0, 160), (9, 1.0, 300), (9, 0.0, 150)],
)
def test_waits_grow_up_to_a_bound(charged: int, jitter: float, seconds: float) -> None:
    """Each wait is twice the one before, at most max_backoff_seconds, and between half and all of that."""
    assert backoff(charged, Allowance(), jitter) == seconds


def test_a_host_that_does_not_start_it_is_asked_again_but_not_for_ever() -> None:
    """A launch that never happened costs nothing; after some in a row a person is asked."""
    first = after_no_start("no such directory", 1)
    assert first == Retry(reason="no such directory", after_seconds=1, charged=False)
    last = after_no_start("no such directory", MOST_STARTS)
    assert last == Ask("needs_human", f"no such directory; tried {MOST_STARTS} times")


def told(decision: Decision) -> list[str]:
    """The alerts of a decision."""
    assert not isinstance(decision, Postpone)
    return [alert.kind.value for alert in decision.alerts]


@pytest.mark.parametrize(
    ("kind", "charged", "alerts"),
    [
        (K.OK, 0, []),
        (K.CRASHED, 0, []),
        (K.STALLED, 0, ["stale"]),
        (K.CRASHED, 2, ["restart_exhausted", "needs_human"]),
        (K.STALLED, 2, ["stale", "restart_exhausted", "needs_human"]),
        (K.REFUSAL, 2, []),
        (K.BUDGET, 0, ["budget_exceeded"]),
        (K.PLAN_LIMIT, 0, []),
    ],
)
def test_who_is_told(kind: OutcomeKind, charged: int, alerts: list[str]) -> None:
    """The last attempt spent, silence and budgets are told; what goes on by itself is not."""
    assert told(decided(kind, charged=charged)) == alerts


@pytest.mark.parametrize("kind", [K.TRANSIENT, K.CRASHED, K.STALLED, K.INTERRUPTED])
def test_what_must_not_run_twice_is_not_tried_again(kind: OutcomeKind) -> None:
    """It has failed at once, with attempts left; a person is told why."""
    allowance = Allowance(max_attempts=3, retry_safe=False)
    outcome = Outcome(kind=kind, reason="it said so")
    decision = decide(outcome, Spent(charged=0, sessions=1), allowance, closed=None, jitter=0)
    assert isinstance(decision, Finish)
    assert decision.charged
    assert decision.verdict.reason == "it said so; it is not tried again, since it is not safe to run twice"
    assert told(decision)[-1] == "needs_human"
    assert "restart_exhausted" not in told(decision)


@pytest.mark.parametrize(
    ("bound", "result"),
    [
        ("seconds", Result.TIMEOUT),
        ("timeout", Result.TIMEOUT),
        ("idle_seconds", Result.TIMEOUT),
        ("tokens", Result.FAIL),
        ("tool_calls", Result.FAIL),
        ("usd", Result.FAIL),
        ("", Result.FAIL),
    ],
)
def test_a_budget_fails_by_time_or_by_amount(bound: str, result: Result) -> None:
    """Time that is over makes a timeout, everything else a failure; with `pause` a person decides instead."""
    outcome = Outcome(kind=K.BUDGET, reason="too much", bound=bound)
    spent = Spent(charged=0, sessions=1)
    decision = decide(outcome, spent, Allowance(), closed=None, jitter=0)
    assert isinstance(decision, Finish)
    assert (decision.verdict.result, decision.charged) == (result, True)
    paused = decide(outcome, spent, Allowance(pause_over_budget=True), closed=None, jitter=0)
    assert isinstance(paused, Ask)
    assert (paused.kind, told(paused)) == ("budget", ["budget_exceeded"])
    assert paused.text.startswith("too much; raise the budget")


def test_a_task_says_its_own_retries_else_the_settings_do() -> None:
    """A policy of its own is taken whole."""
    own = RetryPolicy(max_attempts=2, initial_backoff_seconds=10, max_backoff_seconds=60, backoff_multiplier=3)
    configured = Supervisor(max_attempts=7, backoff_seconds=1)
    terms = Terms(retry=own, retry_safe=False, budget=Budget(pause=True))
    assert allowance_of(terms, configured) == Allowance(
        max_attempts=2,
        backoff_seconds=10,
        max_backoff_seconds=60,
        backoff_multiplier=3,
        retry_safe=False,
        pause_over_budget=True,
    )
    assert allowance_of(Terms(), configured) == Allowance(max_attempts=7, backoff_seconds=1)
