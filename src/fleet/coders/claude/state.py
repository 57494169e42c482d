"""What is remembered between two lines of Claude Code."""

from __future__ import annotations

import msgspec

from fleet.coders.tally import Tally


class Ended(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A result line, in what decides: `subtype` says success even when the API failed."""

    failed: bool
    subtype: str = ""
    terminal_reason: str = ""
    stop_reason: str = ""
    status: int | None = None  # of HTTP
    api_error: str = ""
    error: str = ""  # the class of the API's failure, from the line before
    text: str = ""


class State(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Where the parser is."""

    coder_session: str | None = None
    model: str | None = None
    window: int | None = None  # of that model, once a result has told it
    told: Tally = Tally()  # since the conversation began, over all its sessions
    told_at_result: Tally = Tally()
    replies: tuple[str, ...] = ()  # ids of the last messages: one reply comes as several lines with the same usage
    background: tuple[str, ...] = ()  # tasks in the background that have not ended
    denied: tuple[str, ...] = ()  # ids of tool calls that were not allowed
    last_denied: str = ""  # the name of the last of those tools
    tools_ok: int = 0
    error: str = ""  # the class of a failure of the API that no result line has followed yet
    resets_at: int | None = None  # of a plan limit that has been reached
    turn_open: bool = False  # something came after the last result
    ended: Ended | None = None
