"""Claude Code's result line: the end of a turn, with the vendor's sums. There may be several; the last one counts."""

from __future__ import annotations

from typing import Any

from msgspec import field
from msgspec.structs import replace

from fleet.coders.claude.notes import note_denial
from fleet.coders.claude.state import Ended, State
from fleet.coders.reading import Line, count, micro, number, reader, table, tables, words
from fleet.coders.shortening import one_line, short
from fleet.coders.tally import Tally
from fleet.model.stream import AnySaid, TurnEnded

ABORTED = frozenset({"aborted_tools", "aborted_streaming"})


class Result(Line, frozen=True):
    """The fields of a result that are used."""

    subtype: Any = None
    is_error: Any = None
    result: Any = None
    errors: Any = None
    terminal_reason: Any = None
    stop_reason: Any = None
    api_error_status: Any = None
    api_error: Any = None
    model_usage: Any = field(default=None, name="modelUsage")
    model_usage_since_last_result: Any = None
    total_cost_usd: Any = None
    permission_denials: Any = None


read = reader(Result)


def ended(state: State, line: bytes) -> tuple[State, tuple[AnySaid, ...]]:
    """The denials not told before, what was used, and the end of the turn."""
    result = read(line) or Result()
    said: list[AnySaid] = []
    for denial in tables(result.permission_denials):
        call, tool = words(denial.get("tool_use_id")), words(denial.get("tool_name"))
        state, told = note_denial(state, call, tool, "")
        said += told
    total = _total(state, result)
    said += total.beyond(state.told)
    end = _end(state, result)
    said.append(
        TurnEnded(
            ok=not end.failed and end.terminal_reason not in ABORTED,
            reason=end.terminal_reason or end.subtype,
            final_text=short(words(result.result)) or None,
        )
    )
    told_now = total.at_least(state.told)
    window = number(table(table(result.model_usage).get(state.model or "")).get("contextWindow")) or state.window
    return (
        replace(state, told=told_now, told_at_result=told_now, window=window, ended=end, turn_open=False, error=""),
        tuple(said),
    )


def _total(state: State, result: Result) -> Tally:
    """What the conversation has used.

    The vendor gives its sum over all sessions and what came since the last result. The sum also holds what a killed
    session used and never reported; the other is right where the sum began anew. The larger of both misses nothing.
    """
    since, total = result.model_usage_since_last_result, result.model_usage
    counted = state.told_at_result.plus(_sum(since)) if isinstance(since, dict) else state.told_at_result
    if isinstance(total, dict):
        said = _sum(total)
        counted = counted.at_least(replace(said, cost_microusd=max(said.cost_microusd, micro(result.total_cost_usd))))
    return counted


def _sum(models: Any) -> Tally:
    usages = [table(usage) for usage in table(models).values()]
    return Tally(
        sum(count(each.get("inputTokens")) + count(each.get("cacheCreationInputTokens")) for each in usages),
        sum(count(each.get("cacheReadInputTokens")) for each in usages),
        sum(count(each.get("outputTokens")) for each in usages),
        micro(sum(each["costUSD"] for each in usages if isinstance(each.get("costUSD"), (int, float)))),
    )


def _end(state: State, result: Result) -> Ended:
    subtype = words(result.subtype)
    errors = result.errors if isinstance(result.errors, list) else []
    return Ended(
        failed=bool(result.is_error) or subtype != "success",
        subtype=subtype,
        terminal_reason=words(result.terminal_reason),
        stop_reason=words(result.stop_reason),
        status=number(result.api_error_status),
        api_error=words(result.api_error),
        error=state.error,
        text=one_line(words(result.result) or "; ".join(map(words, errors))),
    )
