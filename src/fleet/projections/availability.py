"""How machines have answered over time: how often they were up, how fast, and when that changed."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from fleet.model import event as ev
from fleet.model.host import Stretch
from fleet.model.ids import host_subject
from fleet.store.reads import Reads

COLUMNS = 48  # pieces that a history is cut into
CHANGES = 10


class Availability(msgspec.Struct, frozen=True, kw_only=True):
    """What the probes of some time come to. What is None is not known: nobody asked, or nothing answered."""

    since: int
    probes: int
    up: int
    down: int
    unknown: int
    uptime_pct: float | None  # of the probes that learned anything
    ms_mean: int | None
    ms_most: int | None


class Change(msgspec.Struct, frozen=True, kw_only=True):
    """The machine became up, down or unknown."""

    at: int
    state: str
    evidence: str


class History(msgspec.Struct, frozen=True, kw_only=True):
    """One machine over time."""

    name: str
    state: str  # as it is now
    state_since: int | None
    evidence: str
    answered_at: int | None
    total: Availability
    pieces: tuple[Availability, ...]  # of one length, oldest first
    changes: tuple[Change, ...]  # newest first


def history(reads: Reads, name: str, *, since: int, now: int) -> History:
    """A machine since then. One that was never probed has an empty history, which says nothing of it."""
    known = next((host for host in reads.hosts() if host.name == name), None)
    found = reads.probes(name, since=since)
    return History(
        name=name,
        state=known.state if known else "unknown",
        state_since=known.since if known else None,
        evidence=known.evidence if known else "it was never probed",
        answered_at=known.answered_at if known else None,
        total=availability(found, since),
        pieces=tuple(_pieces(found, since, now)),
        changes=tuple(_changes(reads, name, since)),
    )


def availability(found: Sequence[Stretch], since: int) -> Availability:
    """What probes come to, counted together. Silence is not evidence: what is unknown makes it neither up nor down."""
    up, down, unknown = (sum(getattr(each, name) for each in found) for name in ("up", "down", "unknown"))
    return Availability(
        since=since,
        probes=up + down + unknown,
        up=up,
        down=down,
        unknown=unknown,
        uptime_pct=round(100 * up / (up + down), 2) if up + down else None,
        ms_mean=round(sum(each.ms_total for each in found) / up) if up else None,
        ms_most=max(each.ms_most for each in found) if up else None,
    )


def _pieces(found: Sequence[Stretch], since: int, now: int) -> list[Availability]:
    length = max(1, -(-(now - since) // COLUMNS))
    cut: list[list[Stretch]] = [[] for _ in range(COLUMNS)]
    for each in found:
        cut[min(max(0, each.at - since) // length, COLUMNS - 1)].append(each)
    return [availability(piece, since + place * length) for place, piece in enumerate(cut)]


def _changes(reads: Reads, name: str, since: int) -> list[Change]:
    """When its state changed. A person's word that it drains changes none."""
    told: list[Change] = []
    for entry in reads.chain(host_subject(name)):
        event = entry.event
        if isinstance(event, ev.HostChanged) and (not told or told[-1].state != event.host.state):
            told.append(Change(at=event.at, state=event.host.state, evidence=event.host.evidence))
    return [change for change in told[::-1] if change.at >= since][:CHANGES]
