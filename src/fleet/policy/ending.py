"""What follows from the end of a session: a receipt, another attempt, or a question to a person."""

from __future__ import annotations

import msgspec
from msgspec.structs import replace

from fleet.config.settings import Supervisor
from fleet.model.alert import Alert, AlertKind
from fleet.model.outcome import Outcome, OutcomeKind
from fleet.model.receipt import NO_USAGE, Awaits, Usage, Verdict
from fleet.model.states import Result, Source
from fleet.model.terms import Terms
from fleet.policy.limits import TIMED

K = OutcomeKind
LIMIT_SECONDS = 300  # how long a coder is paused whose limit does not say when it resets
MOST_STARTS = 5  # refused by the host, one after the other


class Allowance(msgspec.Struct, frozen=True, kw_only=True):
    """How often and how soon a task is tried again."""

    max_attempts: int = 3
    backoff_seconds: float = 5
    max_backoff_seconds: float = 300
    backoff_multiplier: float = 2
    max_fresh_sessions: int = 10  # after a context that was full
    retry_safe: bool = True  # it may be run twice
    pause_over_budget: bool = False  # a person decides what becomes of it


class Spent(msgspec.Struct, frozen=True, kw_only=True):
    """What a task has used up so far, this session not counted, and what this session cost."""

    charged: int
    sessions: int
    usage: Usage = NO_USAGE
    duration_ms: int = 0


class Finish(msgspec.Struct, frozen=True):
    """The task gets its receipt."""

    verdict: Verdict
    charged: bool = False
    alerts: tuple[Alert, ...] = ()


class Retry(msgspec.Struct, frozen=True, kw_only=True):
    """The task goes back to the queue."""

    reason: str
    after_seconds: float = 0
    charged: bool
    verdict: Verdict | None = None
    pause_coder_until: int | None = None  # UTC milliseconds; 0: for LIMIT_SECONDS
    restart: bool = False  # a person asked for it
    alerts: tuple[Alert, ...] = ()


class Ask(msgspec.Struct, frozen=True):
    """The task waits for a person."""

    kind: str
    text: str
    alerts: tuple[Alert, ...] = ()


class Postpone(msgspec.Struct, frozen=True, kw_only=True):
    """The verifier of a task is run later: this session of it came to no verdict."""

    reason: str
    awaits: Awaits
    after_seconds: float = 0
    pause_coder_until: int | None = None  # as of a retry


Decision = Finish | Retry | Ask | Postpone

# Who failed, when no attempt is left.
SOURCES = {K.TRANSIENT: Source.TRANSPORT, K.STALLED: Source.TRANSPORT}
ASKED_OF_A_PERSON = {K.AUTH: "needs_human", K.MISSING: "needs_human", K.DENIED: "permission"}
TRIED_AGAIN = frozenset({K.TRANSIENT, K.CRASHED, K.STALLED, K.INTERRUPTED})  # interrupted: by somebody else


def decide(outcome: Outcome, spent: Spent, allowance: Allowance, *, closed: str | None, jitter: float) -> Decision:
    """The decision. `closed` is what the agent said when it closed its task; `jitter` is a number from 0 to 1."""
    kind = outcome.kind
    if kind is K.OK:
        return Finish(_verdict(Result.PASS, closed or outcome.reason, spent))
    if kind in ASKED_OF_A_PERSON:
        return Ask(ASKED_OF_A_PERSON[kind], f"{outcome.reason}; {outcome.remedy}")
    if kind is K.PLAN_LIMIT:
        until = outcome.resets_at or 0
        return Retry(reason=outcome.reason, after_seconds=0, charged=False, pause_coder_until=until)
    if kind is K.CONTEXT and spent.sessions < allowance.max_fresh_sessions:
        return Retry(reason=f"a fresh session goes on: {outcome.reason}", after_seconds=0, charged=False)
    if kind is K.BUDGET:
        return over_budget(outcome, spent, allowance)
    failed = _failed(outcome, spent)
    if kind not in TRIED_AGAIN:
        return Finish(failed, charged=True)
    return _again(outcome, failed, spent, allowance, jitter)


def after_check(verdict: Verdict, spent: Spent, allowance: Allowance, jitter: float, *, verified: bool) -> Decision:
    """The work was done, and a scorer says no: another attempt, where one is left. What broke is the scorer's own.

    `verified`: a verifier's session said so.
    """
    told = Alert(AlertKind.VERIFIER_FAILED, verdict.reason)
    if verdict.source is Source.VERIFIER:
        return Finish(verdict, charged=True, alerts=(told,))
    decision = _again(Outcome(kind=K.OK, reason=verdict.reason), verdict, spent, allowance, jitter)
    if verified and isinstance(decision, Finish):
        return replace(decision, alerts=(told, *decision.alerts))
    return decision


def over_budget(outcome: Outcome, spent: Spent, allowance: Allowance) -> Decision:
    """More was used than was allowed: the task has failed, or a person decides."""
    told = (Alert(AlertKind.BUDGET_EXCEEDED, outcome.reason),)
    if allowance.pause_over_budget:
        return Ask("budget", f"{outcome.reason}; {outcome.remedy}", told)
    return Finish(_failed(outcome, spent), charged=True, alerts=told)


def _again(outcome: Outcome, failed: Verdict, spent: Spent, allowance: Allowance, jitter: float) -> Decision:
    """Another attempt, where one is left and the task may be run twice; else a person hears of it."""
    told = (Alert(AlertKind.STALE, outcome.reason),) if outcome.kind is K.STALLED else ()
    number, most = spent.charged + 1, allowance.max_attempts
    if not allowance.retry_safe:
        reason = f"{outcome.reason}; it is not tried again, since it is not safe to run twice"
        needed = Alert(AlertKind.NEEDS_HUMAN, reason)
        return Finish(replace(failed, reason=reason), charged=True, alerts=(*told, needed))
    if number < most:
        wait = backoff(spent.charged, allowance, jitter)
        reason = f"attempt {number} of {most}: {outcome.reason}"
        return Retry(reason=reason, after_seconds=wait, charged=True, verdict=failed, alerts=told)
    reason = f"attempt {number} of {most} was the last: {outcome.reason}"
    kinds = (AlertKind.RESTART_EXHAUSTED, AlertKind.NEEDS_HUMAN)
    return Finish(failed, charged=True, alerts=(*told, *(Alert(kind, reason) for kind in kinds)))


def allowance_of(terms: Terms, configured: Supervisor) -> Allowance:
    """What a task says itself, else what the settings say."""
    own = terms.retry
    pause = terms.budget.pause or configured.budget_pause
    if own is not None:
        return Allowance(
            max_attempts=own.max_attempts,
            backoff_seconds=own.initial_backoff_seconds,
            max_backoff_seconds=own.max_backoff_seconds,
            backoff_multiplier=own.backoff_multiplier,
            retry_safe=terms.retry_safe,
            pause_over_budget=pause,
        )
    return Allowance(
        max_attempts=configured.max_attempts,
        backoff_seconds=configured.backoff_seconds,
        max_backoff_seconds=configured.max_backoff_seconds,
        backoff_multiplier=configured.backoff_multiplier,
        retry_safe=terms.retry_safe,
        pause_over_budget=pause,
    )


def after_no_start(reason: str, times: int) -> Decision:
    """The session was not begun, `times` in a row, for no fault of its task: no attempt, but not for ever either."""
    if times >= MOST_STARTS:
        return Ask("needs_human", f"{reason}; tried {times} times")
    return Retry(reason=reason, after_seconds=2 ** (times - 1), charged=False)


def after_fault(reason: str, spent: Spent) -> Finish:
    """What is plugged in for its coder failed: that is no doing of the task, and it would fail so again."""
    verdict = _verdict(Result.FAIL, reason, spent, Source.TRANSPORT)
    return Finish(verdict, alerts=(Alert(AlertKind.NEEDS_HUMAN, reason),))


def backoff(charged: int, allowance: Allowance, jitter: float) -> float:
    """How long to wait before the next attempt: longer each time, never the same for all."""
    raw = allowance.backoff_seconds * allowance.backoff_multiplier**charged
    return min(raw, allowance.max_backoff_seconds) * (0.5 + jitter / 2)


def _failed(outcome: Outcome, spent: Spent) -> Verdict:
    timed_out = outcome.kind is K.STALLED or outcome.bound in TIMED
    source = SOURCES.get(outcome.kind, Source.TASK)
    return _verdict(Result.TIMEOUT if timed_out else Result.FAIL, outcome.reason, spent, source)


def _verdict(result: Result, reason: str, spent: Spent, source: Source | None = None) -> Verdict:
    return Verdict(result=result, reason=reason, source=source, usage=spent.usage, duration_ms=spent.duration_ms)
