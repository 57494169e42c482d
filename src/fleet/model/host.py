"""A host: a machine that sessions run on; and what its probes have found, over time."""

from __future__ import annotations

import msgspec

LOCAL = "local@"  # how the name of a machine begins that is reached only by who runs on it


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
    status: str = ""  # its provider's own word at the last look, where it has a provider
    answered_at: int | None = None  # its last good probe
    coder: bool | None = None  # whether the coder's program was found there, by its last answer
    warnings: tuple[str, ...] = ()  # what a person should see to, by its last answer
    failures: int = 0  # probes in a row that found it not up
    alerted: bool = False  # people were told that it is down, and not yet that it is up again


def is_local(name: str) -> bool:
    """Whether a host is the machine of some supervisor itself, which no other reaches."""
    return name.startswith(LOCAL)


class Stretch(msgspec.Struct, frozen=True, kw_only=True):
    """The probes of one machine in a few minutes, counted."""

    at: int  # when it begins, UTC milliseconds
    up: int
    down: int
    unknown: int  # nothing was learned of the machine
    ms_total: int  # of those that found it up
    ms_most: int
