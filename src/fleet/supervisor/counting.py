"""Counting: what a session has used, kept up with each thing that its coder says."""

from __future__ import annotations

from collections.abc import Iterable

from msgspec.structs import replace

from fleet.model import stream as st
from fleet.model.session import Progress


def counted(progress: Progress, said: Iterable[st.AnySaid]) -> Progress:
    """The counters after some more things said."""
    events = 0
    for each in said:
        events += 1
        if not isinstance(each, st.Text | st.Thinking):  # most are words, which change no other counter
            progress = _counted(progress, each)
    usage = replace(progress.usage, events=progress.usage.events + events)
    return replace(progress, usage=usage)


def _counted(progress: Progress, said: st.AnySaid) -> Progress:
    usage = progress.usage
    match said:
        case st.Used():
            usage = replace(
                usage,
                input_tokens=usage.input_tokens + said.input_tokens,
                cached_tokens=usage.cached_tokens + said.cached_tokens,
                output_tokens=usage.output_tokens + said.output_tokens,
                cost_microusd=usage.cost_microusd + said.cost_microusd,
            )
        case st.ToolStarted():
            usage = replace(usage, tool_calls=usage.tool_calls + 1)
            progress = replace(progress, tools_running=progress.tools_running + 1)
        case st.ToolEnded():
            progress = replace(progress, tools_running=max(0, progress.tools_running - 1))
        case st.Context():
            peak = max(progress.peak_context_tokens, said.tokens)
            window = said.window or progress.context_window
            progress = replace(progress, context_tokens=said.tokens, peak_context_tokens=peak, context_window=window)
        case st.Started(coder_session=str(name)):
            progress = replace(progress, coder_session=name)
        case _:
            pass
    return replace(progress, usage=usage)
