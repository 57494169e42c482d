"""A wish: that a session shall end, why, and what then becomes of its task."""

from __future__ import annotations

import msgspec

ASKED_BEFORE = "asked before a restart of the supervisor"


class Wish(msgspec.Struct, frozen=True):
    """That a session shall end, why, and what then becomes of its task."""

    verb: str  # stop, interrupt, restart, shutdown, limit
    reason: str
    outcome: str = "interrupted"
    by: str = ""
    intent: str | None = None
