"""Judging an end that is no result: our own stop, an HTTP status, a vendor's words, an exit code. Shared by all."""

from __future__ import annotations

import re
import signal

from fleet.coders.coder import Exit
from fleet.coders.shortening import last_line, one_line
from fleet.model.outcome import Outcome, OutcomeKind

STOPS = {
    OutcomeKind.INTERRUPTED: "Fleet ended it because it was asked to",
    OutcomeKind.BUDGET: "Fleet ended it because its budget was used up",
    OutcomeKind.STALLED: "Fleet ended it because nothing was heard of it for too long",
    OutcomeKind.CONTEXT: "Fleet ended it because its context was nearly full",
    OutcomeKind.PLAN_LIMIT: "Fleet ended it because the plan's limit was reached",
}
POLITE = frozenset({signal.SIGHUP, signal.SIGINT, signal.SIGTERM})

PLAN = re.compile(
    r"usage limit|(?:hit|reached) your [\w-]* ?limit|quota exceeded|insufficient_quota|exceeded your current quota"
    r"|credit balance|billing_error|out of credits|quota (?:is |was )?exhausted",
    re.IGNORECASE,
)
CONTEXT = re.compile(  # full, cut short, or gone: a fresh session goes on from the plan
    r"prompt is too long|context[ _](?:window|length)|context_length_exceeded|ContextOverflow|max_output_tokens"
    r"|input token count .{0,40}exceeds|maximum (?:number of tokens|context)"
    r"|no (?:conversation|rollout|session|thread) (?:was )?found|(?:session|thread|conversation) not found"
    r"|error resuming session",
    re.IGNORECASE,
)
AUTH = re.compile(
    r"not (?:logged|signed) in|please (?:run /login|log ?in|sign in)|(?:invalid|incorrect|missing) api key"
    r"|api key not valid"
    r"|unauthori[sz]ed|unauthenticated|authentication|missing environment variable|no api key|set an auth method"
    r"|credentials",
    re.IGNORECASE,
)
REFUSAL = re.compile(r"content filter|safeguards flagged|refused to (?:respond|answer)|usage polic", re.IGNORECASE)
MODEL = re.compile(
    r"model.{0,60}(?:not found|not supported|does not exist|may not exist)|(?:unknown|invalid|bad) model", re.IGNORECASE
)
TRANSIENT = re.compile(
    r"rate.?limit|too many requests|overloaded|at capacity|high demand|temporar|unavailable|timed? ?out"
    r"|stream (?:disconnected|closed)|connection|network|ECONN|ETIMEDOUT|ENOTFOUND|RESOURCE_EXHAUSTED"
    r"|resource has been exhausted",
    re.IGNORECASE,
)
STATUS = re.compile(r"(?:status(?: code)?|\"code\"|API Error|HTTP)\W{0,3}(\d{3})\b", re.IGNORECASE)


def by_stop(exit: Exit, stderr: str, resets_at: int | None = None, *, waiting: str = "") -> Outcome | None:
    """The outcome when Fleet itself ended the session: then nothing else counts. `waiting`: for what it said it was."""
    if exit.stopped_for is None:
        return None
    try:
        kind = OutcomeKind(exit.stopped_for)
    except ValueError:
        return Outcome(kind=OutcomeKind.INTERRUPTED, reason=f"Fleet ended it: {one_line(exit.stopped_for)}")
    reason = STOPS.get(kind, f"Fleet ended it: {kind}")
    hint = (waiting or last_line(stderr)) if kind is OutcomeKind.STALLED else ""
    return Outcome(
        kind=kind,
        reason=f"{reason}; the last it said: {hint}" if hint else reason,
        resets_at=resets_at if kind is OutcomeKind.PLAN_LIMIT else None,
    )


def by_status(status: int) -> OutcomeKind | None:
    """What an HTTP status means; None when it says too little (400)."""
    if status in (401, 403, 407):
        return OutcomeKind.AUTH
    if status == 402:
        return OutcomeKind.PLAN_LIMIT
    if status == 404:
        return OutcomeKind.REFUSAL  # a model that is not there: the task has to name another
    if status == 413:
        return OutcomeKind.CONTEXT
    if status in (408, 409, 425, 429) or 500 <= status < 600:
        return OutcomeKind.TRANSIENT
    return None


def by_words(text: str, status: int | None = None) -> OutcomeKind | None:
    """What a vendor's error text means. A plan's limit and a full context hide behind 400 and 429: words first."""
    if PLAN.search(text):
        return OutcomeKind.PLAN_LIMIT
    if CONTEXT.search(text):
        return OutcomeKind.CONTEXT
    if status is None:
        found = STATUS.search(text)
        status = int(found[1]) if found else None
    if status is not None and (kind := by_status(status)):
        return kind
    for pattern, kind in (
        (REFUSAL, OutcomeKind.REFUSAL),
        (MODEL, OutcomeKind.REFUSAL),
        (AUTH, OutcomeKind.AUTH),
        (TRANSIENT, OutcomeKind.TRANSIENT),
    ):
        if pattern.search(text):
            return kind
    return None


def by_finish(said: str, *, denied: str = "", worked: bool = True) -> Outcome:
    """The outcome of a turn that ended well, by its own account.

    Denied only when no tool call succeeded: then the work cannot have been done, whatever the last words say.
    """
    if denied and not worked:
        return Outcome(kind=OutcomeKind.DENIED, reason=f"it was not allowed to use {one_line(denied)}")
    return Outcome(kind=OutcomeKind.OK, reason=one_line(said) or "it ended its turn")


def by_error(text: str, status: int | None = None, resets_at: int | None = None) -> Outcome:
    """The outcome of a turn that failed with these words."""
    kind = by_words(text, status) or OutcomeKind.CRASHED
    reason = one_line(text) or (f"the service answered with status {status}" if status else "it failed")
    return Outcome(kind=kind, reason=reason, resets_at=resets_at if kind is OutcomeKind.PLAN_LIMIT else None)


def by_exit(exit: Exit, stderr: str) -> Outcome:
    """The outcome of a session that left no result, by its exit code and then by its stderr. Never ok."""
    number = exit.signal or (exit.code - 128 if exit.code is not None and 129 <= exit.code <= 143 else None)
    if number is not None:
        kind = OutcomeKind.INTERRUPTED if number in POLITE else OutcomeKind.CRASHED
        return Outcome(kind=kind, reason=f"it was ended by {_signal(number)}, not by Fleet")
    if exit.code is None:
        return Outcome(kind=OutcomeKind.CRASHED, reason="it is gone, and nobody saw how it ended")
    said = last_line(stderr)
    if exit.code == 0:
        return Outcome(kind=OutcomeKind.CRASHED, reason="it ended without a result, though its exit code is 0")
    if not said:
        return Outcome(kind=OutcomeKind.CRASHED, reason=f"it ended without a result, exit code {exit.code}")
    return Outcome(kind=by_words(stderr) or OutcomeKind.CRASHED, reason=f"exit code {exit.code}: {said}")


def _signal(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"
