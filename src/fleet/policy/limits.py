"""Limits: when a session that runs must end, and why; and when a task has nothing left to run on."""

from __future__ import annotations

from collections.abc import Iterable

import msgspec
from msgspec.structs import replace

from fleet.config.settings import Supervisor
from fleet.model.receipt import NO_USAGE, Usage
from fleet.model.session import Progress, Session
from fleet.model.terms import Budget, Terms

MICRO = MEGA = 1_000_000
OUTPUT = "output_mb"  # the bound on what one session may print
TIMED = frozenset({"timeout", "seconds", "idle_seconds"})  # the bounds that make a receipt say timeout


class Limits(msgspec.Struct, frozen=True, kw_only=True):
    """The bounds of a session; 0 is none. The budget is that of its task, over all its attempts."""

    seconds: int = 0
    idle_seconds: int = 0
    context_pct: int = 90
    output_mb: int = 0
    log_mb: int = 0
    budget: Budget = Budget()

    @property
    def output_bytes(self) -> int:
        """What it may print, to stdout and to stderr each."""
        return self.output_mb * MEGA

    @property
    def log_bytes(self) -> int:
        """What it may add to the log of its task."""
        return self.log_mb * MEGA


class Used(msgspec.Struct, frozen=True):
    """What a task has consumed: things counted, the time that its sessions ran, and how many there were."""

    usage: Usage = NO_USAGE
    running_ms: int = 0
    attempts: int = 0


NOTHING = Used()


class Exceeded(msgspec.Struct, frozen=True):
    """A bound that was crossed: the outcome it makes, the sentence, and its name where it is of a budget."""

    outcome: str
    reason: str
    bound: str = ""


def limits_of(terms: Terms, configured: Supervisor) -> Limits:
    """What a task says itself, else what the settings say."""
    own = terms.budget
    budget = replace(
        own,
        max_tokens=_first(own.max_tokens, configured.budget_tokens),
        max_tool_calls=_first(own.max_tool_calls, configured.budget_tool_calls),
        max_seconds=_first(own.max_seconds, configured.budget_seconds),
        max_microusd=_first(own.max_microusd, round(configured.budget_usd * MICRO)),
        pause=own.pause or configured.budget_pause,
    )
    return Limits(
        seconds=configured.timeout_seconds if terms.timeout_seconds is None else terms.timeout_seconds,
        idle_seconds=configured.idle_seconds,
        context_pct=configured.context_pressure_threshold_pct,
        output_mb=configured.max_output_mb if terms.max_output_mb is None else terms.max_output_mb,
        log_mb=configured.max_log_mb,
        budget=budget,
    )


def verifier_limits(timeout_seconds: int, configured: Supervisor) -> Limits:
    """A verifier has its own time, and nothing of the budget of the work that it judges."""
    return Limits(
        seconds=timeout_seconds,
        context_pct=configured.context_pressure_threshold_pct,
        output_mb=configured.max_output_mb,
        log_mb=configured.max_log_mb,
    )


def used_by(sessions: Iterable[Session]) -> Used:
    """What sessions of a task consumed together. A verifier is not the task's own doing."""
    total = NOTHING
    for one in sessions:
        if one.kind == "work":
            ran = one.running_ms(one.ended_at) if one.ended_at else 0
            total = Used(total.usage.plus(one.usage), total.running_ms + ran, total.attempts + 1)
    return total


def exceeded(
    limits: Limits,
    progress: Progress,
    *,
    elapsed_ms: int,
    idle_ms: int,
    in_tool: bool,
    window: int | None,
    printed: int = 0,
    before: Used = NOTHING,
) -> Exceeded | None:
    """The first bound that is crossed. Silence while a tool runs is work, not idleness."""
    budget = limits.budget
    over = overdrawn(budget, before.usage.plus(progress.usage))
    if over is not None:
        return over
    if (said := overflown(limits, max(printed, progress.cursor))) is not None:
        return said
    if limits.seconds and elapsed_ms > limits.seconds * 1000:
        return Exceeded("budget", f"it ran longer than {limits.seconds} s", "timeout")
    if budget.max_seconds and before.running_ms + elapsed_ms > budget.max_seconds * 1000:
        return _over("seconds", (before.running_ms + elapsed_ms) // 1000, budget.max_seconds)
    silent = 0 if in_tool else idle_ms
    if budget.idle_seconds and silent > budget.idle_seconds * 1000:
        reason = f"it said nothing for {silent // 1000} s, and its budget allows {budget.idle_seconds} s of silence"
        return Exceeded("budget", reason, "idle_seconds")
    if limits.idle_seconds and silent > limits.idle_seconds * 1000:
        return Exceeded("stalled", f"it said nothing for {silent // 1000} s")
    if window and progress.context_tokens * 100 >= window * limits.context_pct:
        share = progress.context_tokens * 100 // window
        return Exceeded("context", f"its context is {share} % full, past the limit of {limits.context_pct} %")
    return None


def overflown(limits: Limits, printed: int) -> Exceeded | None:
    """Whether it printed more than a session may. Its host ends it for that too, also while nobody looks."""
    return too_much_printed(limits) if limits.output_mb and printed > limits.output_bytes else None


def too_much_printed(limits: Limits) -> Exceeded:
    """That it did."""
    return Exceeded("budget", f"it printed more than {limits.output_mb:,} MB (max_output_mb)", OUTPUT)


def overdrawn(budget: Budget, usage: Usage) -> Exceeded | None:
    """Whether more was counted than the budget allows; time is not counted here."""
    for bound, used, most in _counted(budget, usage):
        if most is not None and used > most:
            return _over(bound, used, most)
    return None


def used_up(budget: Budget, used: Used) -> Exceeded | None:
    """Whether nothing is left to begin another session on."""
    seconds = ("seconds", used.running_ms // 1000, budget.max_seconds)
    for bound, spent, most in (*_counted(budget, used.usage), seconds):
        if most is not None and spent >= most:
            return Exceeded("budget", f"its budget of {_amount(bound, most)} is used up", bound)
    return None


def _counted(budget: Budget, usage: Usage) -> tuple[tuple[str, int, int | None], ...]:
    return (
        ("tokens", usage.tokens, budget.max_tokens),
        ("tool_calls", usage.tool_calls, budget.max_tool_calls),
        ("usd", usage.cost_microusd, budget.max_microusd),
    )


def _over(bound: str, used: int, most: int) -> Exceeded:
    reason = f"it used {_amount(bound, used)}, more than its budget of {_amount(bound, most)}"
    return Exceeded("budget", reason, bound)


def _amount(bound: str, n: int) -> str:
    """An amount in words for people."""
    if bound == "usd":
        return f"${n / MICRO:.4f}".rstrip("0").rstrip(".")
    if bound == "seconds":
        return f"{n:,} s"
    name = bound.replace("_", " ")
    return f"{n:,} {name.removesuffix('s') if n == 1 else name}"


def _first(own: int | None, configured: int) -> int | None:
    return own if own is not None else (configured or None)
