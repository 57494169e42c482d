"""A launch: the program that a session is, ready to be started on any host."""

from __future__ import annotations

import msgspec


class Launch(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What to run. It holds no secret: those are named here and handed over on another way."""

    argv: tuple[str, ...]
    cwd: str
    env: dict[str, str] = {}  # beside the small safe base environment
    secrets: tuple[str, ...] = ()  # names of variables that only this process gets
    prompt: str = ""
    prompt_on_stdin: bool = False  # else stdin is closed
    terminal: tuple[str, ...] = ()  # what runs the words after it on a terminal there; (): the agent has none
    coder_session: str | None = None  # the coder's own name for the conversation, chosen by us where it can be
