"""What became of a session of Claude Code.

The order: our own stop, the last result line, the exit code, stderr. Guarded against:
exit code 0 after an interrupt (the result says `aborted_tools`); `success` with `is_error` (the normal shape of a
failure of the API); success where every tool call was denied; a turn that began after the last result and never ended.
"""

from __future__ import annotations

import re

from fleet.coders import clocks
from fleet.coders.claude.result import ABORTED
from fleet.coders.claude.state import Ended, State
from fleet.coders.coder import Exit
from fleet.coders.judging import by_exit, by_finish, by_status, by_stop, by_words
from fleet.model.outcome import Outcome, OutcomeKind

ENDS = {
    "prompt_too_long": OutcomeKind.CONTEXT,
    "blocking_limit": OutcomeKind.CONTEXT,
    "rapid_refill_breaker": OutcomeKind.CONTEXT,
    "max_turns": OutcomeKind.BUDGET,
    "budget_exhausted": OutcomeKind.BUDGET,
    "error_max_turns": OutcomeKind.BUDGET,
    "error_max_budget_usd": OutcomeKind.BUDGET,
    **dict.fromkeys(ABORTED, OutcomeKind.INTERRUPTED),
}
ERRORS = {
    "usage_limit_reached": OutcomeKind.PLAN_LIMIT,
    "billing_error": OutcomeKind.PLAN_LIMIT,
    "connection_failed": OutcomeKind.TRANSIENT,
    "authentication_failed": OutcomeKind.AUTH,
    "oauth_org_not_allowed": OutcomeKind.AUTH,
    "account_on_hold": OutcomeKind.AUTH,
    "verification_required": OutcomeKind.AUTH,
    "cloud_credential_error": OutcomeKind.AUTH,
    "model_not_found": OutcomeKind.REFUSAL,
    "max_output_tokens": OutcomeKind.CONTEXT,
    "overloaded": OutcomeKind.TRANSIENT,
    "server_error": OutcomeKind.TRANSIENT,
}
EPOCH = re.compile(r"\|(\d{10})\b")  # older versions: `usage limit reached|1794735747`


def outcome(state: State, exit: Exit, stderr: str) -> Outcome:
    """The outcome of the session."""
    if stopped := by_stop(exit, stderr, state.resets_at):
        return stopped
    if state.ended is None or state.turn_open:
        return by_exit(exit, stderr)
    end = state.ended
    if not end.failed and end.terminal_reason not in ABORTED:
        return by_finish(end.text, denied=state.last_denied, worked=state.tools_ok > 0)
    kind = _kind(end)
    return Outcome(
        kind=kind,
        reason=_reason(end, kind),
        resets_at=_resets_at(state, end, exit) if kind is OutcomeKind.PLAN_LIMIT else None,
    )


def _kind(end: Ended) -> OutcomeKind:
    """From the most to the least telling field."""
    if end.stop_reason == "refusal":
        return OutcomeKind.REFUSAL
    for table, word in ((ENDS, end.terminal_reason), (ENDS, end.subtype), (ERRORS, end.api_error)):
        if word in table:
            return table[word]
    if by_words(end.text, status=0) is OutcomeKind.PLAN_LIMIT:  # with an API key a used-up plan looks like a rate limit
        return OutcomeKind.PLAN_LIMIT
    if end.error in ERRORS:
        return ERRORS[end.error]
    status = by_status(end.status) if end.status else None
    return status or by_words(end.text) or OutcomeKind.CRASHED


def _reason(end: Ended, kind: OutcomeKind) -> str:
    if kind is OutcomeKind.INTERRUPTED:
        return "its turn was interrupted, not by Fleet"
    return end.text or f"it failed: {end.terminal_reason or end.subtype}"


def _resets_at(state: State, end: Ended, exit: Exit) -> int | None:
    """By the window that rejected it, by a number in its words, or by a time of day in them."""
    if state.resets_at:
        return state.resets_at
    found = EPOCH.search(end.text)
    return int(found[1]) * 1000 if found else clocks.resets_at(end.text, exit.at, exit.utc_offset_seconds)
