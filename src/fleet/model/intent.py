"""An intent: what a person asked for. Control records it; a supervisor carries it out."""

from __future__ import annotations

import msgspec


class Intent(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, forbid_unknown_fields=True):
    """What a person asked for and a supervisor has yet to do."""

    id: str
    verb: str  # stop, interrupt, restart, sweep
    target: str  # a task's uid
    by: str
    at: int
    args: dict[str, str] = {}
    outcome: str | None = None  # None: pending; else done or refused
    detail: str = ""
    settled_at: int | None = None
