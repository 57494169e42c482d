"""What a coder says while it works, in one vocabulary for all coders."""

from __future__ import annotations

import msgspec


class Said(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, tag_field="kind"):
    """One thing that a coder said; the raw line is kept beside it."""


class Started(Said, frozen=True, kw_only=True, tag="started"):
    """The coder is up, and says which model and conversation it is."""

    coder_session: str | None = None
    model: str | None = None
    version: str | None = None


class Text(Said, frozen=True, kw_only=True, tag="text"):
    """Words to a person."""

    text: str
    subagent: bool = False


class Thinking(Said, frozen=True, kw_only=True, tag="thinking"):
    """Words to itself."""

    text: str


class ToolStarted(Said, frozen=True, kw_only=True, tag="tool_started"):
    """A tool was called; until it ends, silence is work."""

    id: str
    name: str
    input: str = ""  # its arguments in short
    subagent: bool = False


class ToolEnded(Said, frozen=True, kw_only=True, tag="tool_ended"):
    """A tool came back."""

    id: str
    ok: bool
    output: str = ""  # in short


class Used(Said, frozen=True, kw_only=True, tag="used"):
    """What was consumed since the last `used`: differences, never totals."""

    input_tokens: int = 0  # not from a cache
    cached_tokens: int = 0
    output_tokens: int = 0
    cost_microusd: int = 0


class Context(Said, frozen=True, kw_only=True, tag="context"):
    """How full the conversation is after a request."""

    tokens: int
    window: int | None = None  # where the coder says it


class Retrying(Said, frozen=True, kw_only=True, tag="retrying"):
    """The coder met an error and tries again by itself."""

    reason: str
    attempt: int | None = None
    after_ms: int | None = None


class Limited(Said, frozen=True, kw_only=True, tag="limited"):
    """How much of the plan is used; `rejected` when nothing is left until `resets_at`."""

    window: str
    rejected: bool
    used_pct: float | None = None
    resets_at: int | None = None


class Denied(Said, frozen=True, kw_only=True, tag="denied"):
    """The coder was not allowed a tool."""

    tool: str
    reason: str = ""


class Compacted(Said, frozen=True, kw_only=True, tag="compacted"):
    """The coder shortened its conversation."""

    before_tokens: int | None = None
    after_tokens: int | None = None


class Notice(Said, frozen=True, kw_only=True, tag="notice"):
    """Something worth showing that changes nothing."""

    text: str


class TurnEnded(Said, frozen=True, kw_only=True, tag="turn_ended"):
    """The coder says that it is done with what it was asked; there may be more than one of these."""

    ok: bool
    reason: str = ""
    final_text: str | None = None


AnySaid = (
    Started
    | Text
    | Thinking
    | ToolStarted
    | ToolEnded
    | Used
    | Context
    | Retrying
    | Limited
    | Denied
    | Compacted
    | Notice
    | TurnEnded
)
