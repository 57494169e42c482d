"""A host: a machine that sessions run on."""

from __future__ import annotations

import msgspec


class Host(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, forbid_unknown_fields=True):
    """A machine: what is known of it, since when, and by what evidence."""

    name: str
    kind: str
    state: str = "unknown"  # up, down, unknown
    since: int
    evidence: str = ""
    latency_ms: int | None = None
    probed_at: int | None = None
    draining: bool = False
