"""A permission that a task asks for, and what its coder makes of it."""

from __future__ import annotations

from enum import StrEnum

import msgspec


class Hold(StrEnum):
    """What a coder makes of a permission that is asked for."""

    ENFORCED = "enforced"
    NOT_APPLICABLE = "not_applicable"  # it has no tools of its own: recorded, and nothing more
    REFUSED = "refused"  # it cannot be held to it, so it is not started


class Permission(msgspec.Struct, frozen=True):
    """One field that asks for something, and what becomes of it."""

    field: str  # tools, tool_profile
    hold: Hold
    why: str
