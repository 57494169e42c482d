"""What `codex exec --json` prints, line by line.

Its stream has no cost, no size of the context and no sign of compaction. Usage is the sum over the whole thread, also
across `exec resume`. A command that the sandbox refused is not in the stream at all.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import msgspec
from msgspec.structs import replace

from fleet.coders.following import called, followed
from fleet.coders.reading import Line, count, number, reader, table, tables, words
from fleet.coders.shortening import one_line, short, short_json
from fleet.coders.tally import Tally
from fleet.model.stream import (
    AnySaid,
    Limited,
    Notice,
    Retrying,
    Started,
    Text,
    Thinking,
    ToolEnded,
    ToolStarted,
    TurnEnded,
)

TOOLS = frozenset({"command_execution", "file_change", "mcp_tool_call", "web_search", "collab_tool_call"})
RECONNECTING = re.compile(r"Reconnecting\.\.\. (?:(\d+)/\d+ )?(?:waiting for network )?\(?(.*?)\)?$", re.DOTALL)


class State(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Where the parser is."""

    coder_session: str | None = None
    told: Tally = Tally()  # since the thread began, over all its sessions
    noted: int = 0  # bytes of the thread's own file that have been read
    limits: tuple[Limited, ...] = ()  # of the plan, as last told
    open_calls: tuple[str, ...] = ()
    error: str = ""  # the last one that was no retry
    waiting: str = ""  # what it retries, without end when the network is gone
    failed: str | None = None  # what the last turn failed with; empty: it was completed; None: no turn has ended
    final_text: str = ""


class Spoken(Line, frozen=True):
    """The fields of a line that are used."""

    thread_id: Any = None
    item: Any = None
    usage: Any = None
    error: Any = None
    message: Any = None


Step = tuple[State, tuple[AnySaid, ...]]
read = reader(Spoken)


def parse(state: State, line: bytes) -> Step:
    """One line of `--json`."""
    return followed(STEPS, state, read(line))


def _thread_started(state: State, line: Spoken) -> Step:
    thread = words(line.thread_id) or None
    told = state.told if thread == state.coder_session else Tally()  # another thread counts from nothing
    return replace(state, coder_session=thread, told=told), (Started(coder_session=thread),)


def _turn_started(state: State, _line: Spoken) -> Step:
    return replace(state, failed=None, error=""), ()


def _turn_completed(state: State, line: Spoken) -> Step:
    state, used = booked(state, table(line.usage))
    ended = TurnEnded(ok=True, reason="completed", final_text=state.final_text or None)
    return replace(state, failed="", waiting=""), (*used, ended)


def booked(state: State, usage: dict[str, Any]) -> Step:
    """What the thread has used by now, and the difference to what was told before."""
    cached = count(usage.get("cached_input_tokens"))
    total = Tally(max(0, count(usage.get("input_tokens")) - cached), cached, count(usage.get("output_tokens")))
    known = state.told if total.at_least(state.told) == total else Tally()  # it shrank: counted anew
    return replace(state, told=total), total.beyond(known)


def _turn_failed(state: State, line: Spoken) -> Step:
    reason = one_line(words(table(line.error).get("message"))) or state.error or "the turn failed"
    return replace(state, failed=reason), (TurnEnded(ok=False, reason=reason),)


def _error(state: State, line: Spoken) -> Step:
    """A retry, or the words that `turn.failed` will repeat."""
    message = words(line.message)
    if again := RECONNECTING.match(message):
        reason = one_line(again[2])
        said = Retrying(reason=reason, attempt=int(again[1]) if again[1] else None)
        return (state if state.waiting == reason else replace(state, waiting=reason)), (said,)
    return replace(state, error=one_line(message) or "unknown error"), (Notice(text=one_line(message)),)


def _item(state: State, line: Spoken) -> Step:
    item = table(line.item)
    state = replace(state, waiting="") if state.waiting else state
    kind, text = words(item.get("type")), words(item.get("text")) or words(item.get("message"))
    if kind in TOOLS:
        return _tool(state, item, done=line.type == "item.completed")
    if line.type != "item.completed" or not text:
        return state, ()
    if kind == "agent_message":
        return replace(state, final_text=short(text)), (Text(text=short(text)),)
    if kind == "reasoning":
        return state, (Thinking(text=short(text)),)
    return state, ((Notice(text=one_line(text)),) if kind == "error" else ())


def _tool(state: State, item: dict[str, Any], *, done: bool) -> Step:
    call = words(item.get("id"))
    started = ToolStarted(id=call, name=_tool_name(item), input=_tool_input(item))
    ended = ToolEnded(id=call, ok=_went_well(item), output=_tool_output(item)) if done else None
    calls, said = called(state.open_calls, started, ended)
    return (state if calls == state.open_calls else replace(state, open_calls=calls)), said


def _went_well(item: dict[str, Any]) -> bool:
    return item.get("status") not in ("failed", "declined") and not item.get("exit_code") and not item.get("error")


def _tool_name(item: dict[str, Any]) -> str:
    if item.get("type") == "mcp_tool_call":
        return f"{words(item.get('server'))}.{words(item.get('tool'))}"
    return {"command_execution": "shell"}.get(words(item.get("type")), words(item.get("type")))


def _tool_input(item: dict[str, Any]) -> str:
    if changes := tables(item.get("changes")):
        return short(", ".join(f"{words(each.get('kind'))} {words(each.get('path'))}" for each in changes), 1024)
    return short_json(item.get("command") or item.get("query") or item.get("arguments"))


def _tool_output(item: dict[str, Any]) -> str:
    code = number(item.get("exit_code"))
    output = short_json(item.get("aggregated_output") or item.get("error") or item.get("result"), 4096)
    return f"{output}\nexit code {code}".lstrip() if code else output


STEPS: dict[str, Callable[[State, Any], Step]] = {
    "thread.started": _thread_started,
    "turn.started": _turn_started,
    "turn.completed": _turn_completed,
    "turn.failed": _turn_failed,
    "error": _error,
    "item.started": _item,
    "item.updated": _item,
    "item.completed": _item,
}
