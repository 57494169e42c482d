"""Following a program that speaks in lines of JSON: what codex, gemini, opencode and agy share.

Each has a table of steps, from the type of a line to what it changes and says, and writes only those down.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, TypeVar

from fleet.coders.coder import Work
from fleet.coders.reading import Line
from fleet.model.launch import Launch
from fleet.model.stream import AnySaid, ToolEnded, ToolStarted

S = TypeVar("S")
Steps = Mapping[str, Callable[[S, Any], tuple[S, tuple[AnySaid, ...]]]]
MOST_OPEN = 64  # calls that are remembered


def followed(steps: Steps[S], state: S, line: Line | None) -> tuple[S, tuple[AnySaid, ...]]:
    """One more line, by the step of its type; one without a step changes nothing."""
    step = steps.get(line.type) if line is not None else None
    return step(state, line) if step else (state, ())


def called(
    open_calls: tuple[str, ...], started: ToolStarted, ended: ToolEnded | None
) -> tuple[tuple[str, ...], tuple[AnySaid, ...]]:
    """A call of a tool, which may be told only when it is over: its start is told once, and never after its end."""
    said: tuple[AnySaid, ...] = ()
    if started.id not in open_calls:
        said = (started,)
        open_calls = (*open_calls[1 - MOST_OPEN :], started.id)
    if ended is None:
        return open_calls, said
    return tuple(each for each in open_calls if each != started.id), (*said, ended)


def launched(
    work: Work,
    argv: list[str],
    *,
    on_stdin: bool,
    env: Mapping[str, str] | None = None,
    secrets: tuple[str, ...] = (),
    prompt: str | None = None,
    conversation: str | None = None,
) -> Launch:
    """The launch of these words. `prompt` is what stdin gives, where that is not the prompt itself."""
    return Launch(
        argv=tuple(argv),
        cwd=work.cwd,
        env=dict(env or {}),
        secrets=secrets,
        prompt=work.prompt if prompt is None else prompt,
        prompt_on_stdin=on_stdin,
        coder_session=work.resume or conversation,
    )
