"""codex's own file of a thread, as of 0.166: it tells the size of the context and the plan's limits, unlike the stream.
Of a codex on a terminal it tells all that is told.

It lies at `$CODEX_HOME/sessions/YEAR/MONTH/DAY/rollout-TIME-THREAD.jsonl`, and goes on when a thread is resumed.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

from msgspec.structs import replace

from fleet.coders.codex.stream import State, Step, booked
from fleet.coders.following import called
from fleet.coders.reading import Line, number, reader, table, tables, words
from fleet.coders.shortening import one_line, short
from fleet.model.stream import AnySaid, Compacted, Context, Limited, Notice, Text, ToolEnded, ToolStarted, TurnEnded

# Prints the path of the thread $1; CODEX_HOME may be set for the supervisor and not for the agent.
FIND = (
    'for home in "${CODEX_HOME:-}" "$HOME/.codex"; do '
    'for file in "$home"/sessions/*/*/*/rollout-*-"$1".jsonl; do '
    'if [ -f "$file" ]; then printf %s "$file"; exit; fi; done; done'
)
FULL = 100  # per cent
SAME_RESET_MS = 60_000  # two guesses of one reset differ by less
CODE = re.compile(r"^(?:Process exited with|Exit) code:? (\d+)$", re.MULTILINE)
NOT_ASKED = (
    "<environment_context>",
    "<user_instructions>",
    "# AGENTS.md",
    "<hook_prompt",
    "<skill>",
)  # in a user's name


class Spoken(Line, frozen=True):
    """The fields of a line that are used."""

    payload: Any = None


read = reader(Spoken)


def parse(line: bytes) -> tuple[AnySaid, ...]:
    """What a line tells; most tell what the stream tells too."""
    if b'"token_count"' not in line and b'"compacted"' not in line:
        return ()
    spoken = read(line)
    if spoken is None:
        return ()
    if spoken.type == "compacted":
        return (Compacted(),)
    told = table(spoken.payload)
    if spoken.type != "event_msg" or told.get("type") != "token_count":
        return ()
    return (*_context(table(told.get("info"))), *_limits(table(told.get("rate_limits"))))


def _context(info: dict[str, Any]) -> tuple[AnySaid, ...]:
    used = number(table(info.get("last_token_usage")).get("total_tokens"))
    return (Context(tokens=used, window=number(info.get("model_context_window"))),) if used else ()


def _limits(limits: dict[str, Any]) -> tuple[AnySaid, ...]:
    windows = ((name, table(limits.get(name))) for name in ("primary", "secondary"))
    return tuple(_limited(name, window) for name, window in windows if window)


def _limited(name: str, window: dict[str, Any]) -> Limited:
    used, resets, minutes = (
        window.get("used_percent"),
        number(window.get("resets_at")),
        number(window.get("window_minutes")),
    )
    share = round(used, 1) if isinstance(used, (int, float)) and abs(used) < 100_000 else None
    return Limited(
        window=f"{minutes // 60} hours" if minutes and minutes >= 60 else name,
        rejected=share is not None and share >= FULL,
        used_pct=share,
        resets_at=resets * 1000 if resets else None,
    )


def measured(state: State, line: bytes) -> Step:
    """What a line tells beside the stream; limits that were told before are not told again."""
    said = parse(line)
    limits = tuple(each for each in said if isinstance(each, Limited)) or state.limits
    news = tuple(each for each in said if not (isinstance(each, Limited) and _is_known(each, state.limits)))
    return replace(state, limits=limits), news


def _is_known(limit: Limited, told: tuple[Limited, ...]) -> bool:
    """Whether it was told before: codex repeats the plan's limits with every reply, and guesses the reset anew."""
    return any(
        replace(limit, resets_at=known.resets_at) == known
        and abs((limit.resets_at or 0) - (known.resets_at or 0)) <= SAME_RESET_MS
        for known in told
    )


def follow(state: State, line: bytes) -> Step:
    """All that a line tells, where there is no stream."""
    spoken = read(line)
    state, said = measured(state, line)
    told = table(spoken.payload) if spoken is not None else {}
    step = STEPS.get((spoken.type, words(told.get("type")))) if spoken is not None else None
    if step is None:
        return state, said
    state, more = step(state, told)
    return state, (*more, *said)


def asked(record: bytes) -> list[str]:
    """The prompts of its user; what codex itself puts in the user's name is not among them."""
    found = []
    for line in record.split(b"\n"):
        spoken = read(line) if b'"user"' in line else None
        told = table(spoken.payload) if spoken is not None and spoken.type == "response_item" else {}
        if told.get("type") == "message" and told.get("role") == "user":
            text = _text(told)
            found += [text] if text and not text.startswith(NOT_ASKED) else []
    return found


def _text(told: dict[str, Any]) -> str:
    return "".join(words(each.get("text")) for each in tables(told.get("content")))


def _used(state: State, told: dict[str, Any]) -> Step:
    return booked(state, table(table(told.get("info")).get("total_token_usage")))


def _message(state: State, told: dict[str, Any]) -> Step:
    text = short(_text(told))
    if told.get("role") != "assistant" or not text:
        return state, ()
    return replace(state, final_text=text), (Text(text=text),)


def _called(state: State, told: dict[str, Any]) -> Step:
    name = words(told.get("name"))
    given = words(told.get("arguments")) or words(told.get("input"))
    started = ToolStarted(
        id=words(told.get("call_id")), name="shell" if name == "exec_command" else name, input=short(given, 1024)
    )
    calls, said = called(state.open_calls, started, None)
    return replace(state, open_calls=calls), said


def _answered(state: State, told: dict[str, Any]) -> Step:
    call, output = words(told.get("call_id")), words(told.get("output"))
    if call not in state.open_calls:
        return state, ()
    code = CODE.search(output)
    ended = ToolEnded(id=call, ok=code is None or code[1] == "0", output=short(output, 4096))
    return replace(state, open_calls=tuple(each for each in state.open_calls if each != call)), (ended,)


def _complete(state: State, told: dict[str, Any]) -> Step:
    error = table(told.get("error"))
    if error:
        reason = one_line(words(error.get("message"))) or "the turn failed"
        return replace(state, failed=reason), (TurnEnded(ok=False, reason=reason),)
    text = words(told.get("last_agent_message")) or state.final_text
    return replace(state, failed=""), (TurnEnded(ok=True, reason="completed", final_text=short(text) or None),)


def _aborted(state: State, _told: dict[str, Any]) -> Step:
    """A person may go on with it."""
    return state, (Notice(text="its turn was interrupted"),)


STEPS: dict[tuple[str, str], Callable[[State, dict[str, Any]], Step]] = {
    ("event_msg", "token_count"): _used,
    ("event_msg", "task_complete"): _complete,
    ("event_msg", "turn_aborted"): _aborted,
    ("response_item", "message"): _message,
    ("response_item", "function_call"): _called,
    ("response_item", "custom_tool_call"): _called,
    ("response_item", "function_call_output"): _answered,
    ("response_item", "custom_tool_call_output"): _answered,
}
