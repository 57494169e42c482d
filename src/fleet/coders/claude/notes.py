"""Claude Code's lines about itself: that it started, waits, was denied a tool, compacted, nears its plan's limit."""

from __future__ import annotations

from typing import Any

from msgspec.structs import replace

from fleet.coders.claude.state import State
from fleet.coders.reading import number, table, words
from fleet.coders.shortening import one_line, short
from fleet.model.stream import (
    AnySaid,
    Compacted,
    Denied,
    Limited,
    Notice,
    Retrying,
    Started,
    ToolEnded,
    ToolStarted,
)

Step = tuple[State, tuple[AnySaid, ...]]
MOST_REMEMBERED = 64  # ids of denied calls, and of tasks in the background


def started(state: State, line: Any) -> Step:
    """`init`, which comes at every turn: told once, and again when the model changes."""
    session, model = words(line.session_id) or None, words(line.model) or None
    opened = replace(state, turn_open=True, coder_session=session, model=model)
    if (session, model) == (state.coder_session, state.model):
        return opened, ()
    return opened, (Started(coder_session=session, model=model, version=words(line.claude_code_version) or None),)


def retrying(state: State, line: Any) -> Step:
    """`api_retry`: no status means that no answer came at all."""
    status = number(line.error_status)
    reason = words(line.error) or "unknown"
    return state, (
        Retrying(
            reason=f"{reason} ({status})" if status else reason,
            attempt=number(line.attempt),
            after_ms=number(line.retry_delay_ms),
        ),
    )


def denied(state: State, line: Any) -> Step:
    """`permission_denied`."""
    return note_denial(state, words(line.tool_use_id), words(line.tool_name), words(message_of(line)))


def note_denial(state: State, call: str, tool: str, reason: str) -> Step:
    """One denial, told once; hooks that deny are seen only in the result."""
    if call and call in state.denied:
        return state, ()
    noted = replace(state, denied=(*state.denied[1 - MOST_REMEMBERED :], call), last_denied=tool or "a tool")
    return noted, (Denied(tool=tool, reason=one_line(reason)),)


def message_of(line: Any) -> Any:
    """The text of a system line: `message` is an object only in the lines of the conversation."""
    return line.message if isinstance(line.message, str) else line.content or line.text or ""


def compacted(state: State, line: Any) -> Step:
    """`compact_boundary`."""
    sizes = table(line.compact_metadata)
    return state, (
        Compacted(before_tokens=number(sizes.get("pre_tokens")), after_tokens=number(sizes.get("post_tokens"))),
    )


def task_started(state: State, line: Any) -> Step:
    """A shell or a subagent in the background: the program waits for it, so until it ends silence is work."""
    task = words(line.task_id)
    if line.is_backgrounded is not True or not task or task in state.background:
        return state, ()
    name = f"background {words(line.task_type) or 'task'}"
    noted = replace(state, background=(*state.background[1 - MOST_REMEMBERED :], task))
    return noted, (ToolStarted(id=task, name=name, input=one_line(words(line.description)), subagent=True),)


def task_ended(state: State, line: Any) -> Step:
    """`task_notification`, which also comes for what was never in the background."""
    task = words(line.task_id)
    if task not in state.background:
        return state, ()
    noted = replace(state, background=tuple(each for each in state.background if each != task))
    return noted, (ToolEnded(id=task, ok=line.status == "completed", output=short(words(line.summary))),)


def notice(state: State, line: Any) -> Step:
    """Something for display."""
    text = words(message_of(line))
    return state, (Notice(text=one_line(text)),) if text else ()


def limited(state: State, line: Any) -> Step:
    """`rate_limit_event`, which comes only with a subscription: the window that decides, then the others."""
    info = table(line.rate_limit_info)
    windows = table(info.get("unifiedWindows"))
    deciding = words(info.get("rateLimitType")) or "unknown"
    said = [_window(deciding, {**table(windows.get(deciding)), **info})]
    said += [_window(name, table(each)) for name, each in windows.items() if name != deciding]
    return replace(state, resets_at=said[0].resets_at if said[0].rejected else None), tuple(said)


def _window(name: str, info: dict[str, Any]) -> Limited:
    share, resets = info.get("utilization"), number(info.get("resetsAt"))
    return Limited(
        window=name,
        rejected=info.get("status") == "rejected",
        used_pct=round(share * 100, 1) if isinstance(share, (int, float)) and abs(share) < 1000 else None,
        resets_at=resets * 1000 if resets else None,
    )
