"""What follows from the end of a session: a receipt, another attempt, or a question to a person."""

from __future__ import annotations

import msgspec

from fleet.model.outcome import Outcome, OutcomeKind
from fleet.model.receipt import Usage, Verdict
from fleet.model.states import Result, Source

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


class Spent(msgspec.Struct, frozen=True, kw_only=True):
    """What a task has used up so far, this session not counted, and what this session cost."""

    charged: int
    sessions: int
    usage: Usage = Usage()
    duration_ms: int = 0


class Finish(msgspec.Struct, frozen=True):
    """The task gets its receipt."""

    verdict: Verdict


class Retry(msgspec.Struct, frozen=True, kw_only=True):
    """The task goes back to the queue."""

    reason: str
    after_seconds: float = 0
    charged: bool
    verdict: Verdict | None = None
    pause_coder_until: int | None = None  # UTC milliseconds; 0: for LIMIT_SECONDS


class Ask(msgspec.Struct, frozen=True):
    """The task waits for a person."""

    kind: str
    text: str


Decision = Finish | Retry | Ask

# Who failed, when no attempt is left.
SOURCES = {K.TRANSIENT: Source.TRANSPORT, K.STALLED: Source.TRANSPORT}
RESULTS = {K.STALLED: Result.TIMEOUT, K.BUDGET: Result.TIMEOUT}
ASKED_OF_A_PERSON = {K.AUTH: "needs_human", K.DENIED: "permission"}
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
    failed = _verdict(RESULTS.get(kind, Result.FAIL), outcome.reason, spent, SOURCES.get(kind, Source.TASK))
    if kind in TRIED_AGAIN and spent.charged + 1 < allowance.max_attempts:
        wait = backoff(spent.charged, allowance, jitter)
        reason = f"attempt {spent.charged + 1} of {allowance.max_attempts}: {outcome.reason}"
        return Retry(reason=reason, after_seconds=wait, charged=True, verdict=failed)
    return Finish(failed)


def after_no_start(reason: str, times: int) -> Decision:
    """The host did not begin the session, `times` in a row. It costs no attempt, but does not go on for ever."""
    if times >= MOST_STARTS:
        return Ask("needs_human", f"{reason}; tried {times} times")
    return Retry(reason=reason, after_seconds=2 ** (times - 1), charged=False)


def backoff(charged: int, allowance: Allowance, jitter: float) -> float:
    """How long to wait before the next attempt: longer each time, never the same for all."""
    raw = allowance.backoff_seconds * allowance.backoff_multiplier**charged
    return min(raw, allowance.max_backoff_seconds) * (0.5 + jitter / 2)


def _verdict(result: Result, reason: str, spent: Spent, source: Source | None = None) -> Verdict:
    return Verdict(result=result, reason=reason, source=source, usage=spent.usage, duration_ms=spent.duration_ms)
