"""A supervisor, as the store knows it: who holds which sessions."""

from __future__ import annotations

import msgspec


class Supervisor(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, forbid_unknown_fields=True):
    """A process that runs tasks. Its sessions are its own until its lease ends."""

    id: str
    machine: str
    pid: int
    joined_at: int
    left_at: int | None = None
