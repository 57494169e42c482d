"""Claude Code's stream-json: one object per line, in an open set of types and with the keys in any order."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from msgspec.structs import replace

from fleet.coders.claude import notes, result
from fleet.coders.claude.state import State
from fleet.coders.reading import Line, count, reader, table, tables, words
from fleet.coders.shortening import short, short_json
from fleet.coders.tally import Tally
from fleet.model.stream import AnySaid, Context, Notice, Text, Thinking, ToolEnded, ToolStarted

Step = tuple[State, tuple[AnySaid, ...]]
SYNTHETIC = "<synthetic>"  # the model of lines that the program wrote itself, mostly to say that the API failed
REMEMBERED = 8  # replies; those of subagents come between the lines of one


class Spoken(Line, frozen=True):
    """Every field that some type of line uses; the result has its own shape."""

    subtype: Any = None
    message: Any = None
    parent_tool_use_id: Any = None
    error: Any = None
    is_api_error_message: Any = None
    session_id: Any = None
    model: Any = None
    claude_code_version: Any = None
    attempt: Any = None
    retry_delay_ms: Any = None
    error_status: Any = None
    tool_name: Any = None
    tool_use_id: Any = None
    compact_metadata: Any = None
    task_id: Any = None
    task_type: Any = None
    description: Any = None
    is_backgrounded: Any = None
    status: Any = None
    summary: Any = None
    content: Any = None
    text: Any = None
    rate_limit_info: Any = None


read = reader(Spoken)


def parse(state: State, line: bytes) -> Step:
    """The state and what was said, after one more line."""
    spoken = read(line)
    if spoken is None:
        return state, ()
    if spoken.type == "result":
        return result.ended(state, line)
    step = STEPS.get(spoken.type)
    return step(state, spoken) if step else (state, ())


def _assistant(state: State, line: Spoken) -> Step:
    message = table(line.message)
    subagent = line.parent_tool_use_id is not None
    if message.get("model") == SYNTHETIC:
        return _written_by_the_program(state, line, message)
    said = [each for block in tables(message.get("content")) if (each := _block(block, subagent))]
    reply = words(message.get("id"))
    if reply in state.replies:
        return (state if state.turn_open else replace(state, turn_open=True)), tuple(said)
    usage = table(message.get("usage"))
    fresh = count(usage.get("input_tokens")) + count(usage.get("cache_creation_input_tokens"))
    cached = count(usage.get("cache_read_input_tokens"))
    told = state.told.plus(Tally(fresh, cached))  # its output tokens are a placeholder: the result has them
    said += told.beyond(state.told)
    if not subagent and fresh + cached:
        said.append(Context(tokens=fresh + cached, window=state.window))
    replies = (*state.replies[1 - REMEMBERED :], reply) if reply else state.replies
    return replace(state, told=told, replies=replies, turn_open=True, error=""), tuple(said)


def _block(block: dict[str, Any], subagent: bool) -> AnySaid | None:
    kind = block.get("type")
    if kind == "text":
        text = words(block.get("text"))
        return Text(text=short(text), subagent=subagent) if text else None
    if kind == "thinking":
        text = words(block.get("thinking"))
        return Thinking(text=short(text)) if text else None
    if kind in ("tool_use", "server_tool_use"):
        return ToolStarted(
            id=words(block.get("id")),
            name=words(block.get("name")),
            input=short_json(block.get("input")),
            subagent=subagent,
        )
    return None


def _written_by_the_program(state: State, line: Spoken, message: dict[str, Any]) -> Step:
    text = "".join(words(block.get("text")) for block in tables(message.get("content")))
    if not line.is_api_error_message and not line.error:
        return replace(state, turn_open=True), (Text(text=short(text)),) if text else ()
    return replace(state, turn_open=True, error=words(line.error) or "unknown"), (Notice(text=short(text)),)


def _user(state: State, line: Spoken) -> Step:
    """Results of tools; what a person or the program said to the model is not repeated."""
    ended = tuple(
        ToolEnded(
            id=words(block.get("tool_use_id")),
            ok=not block.get("is_error"),
            output=short(_content(block.get("content"))),
        )
        for block in tables(table(line.message).get("content"))
        if block.get("type") == "tool_result"
    )
    right = sum(each.ok for each in ended)
    return (replace(state, tools_ok=state.tools_ok + right) if right else state), ended


def _content(content: Any) -> str:
    if isinstance(content, str):
        return content
    return "\n".join(words(part.get("text")) for part in tables(content))


def _system(state: State, line: Spoken) -> Step:
    step = SYSTEM.get(line.subtype) if isinstance(line.subtype, str) else None
    return step(state, line) if step else (state, ())


SYSTEM: dict[str, Callable[[State, Any], Step]] = {
    "init": notes.started,
    "api_retry": notes.retrying,
    "permission_denied": notes.denied,
    "compact_boundary": notes.compacted,
    "task_started": notes.task_started,
    "task_notification": notes.task_ended,
    "informational": notes.notice,
    "notification": notes.notice,
}
STEPS: dict[str, Callable[[State, Spoken], Step]] = {
    "assistant": _assistant,
    "user": _user,
    "system": _system,
    "rate_limit_event": notes.limited,
}
