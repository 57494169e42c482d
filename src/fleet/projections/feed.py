"""Places in the feed: where a reader begins who names a moment, the last event that it has seen, or how many."""

from __future__ import annotations

import msgspec

from fleet.errors import NotFound
from fleet.model.event import Entry
from fleet.projections.happened import EVERYTHING, Names, Only
from fleet.store.reads import BEGINNING, Reads, order_of

SKEW_MS = 60_000  # by so much the times of neighbours may be out of order, where several machines write
LOOKED_AT = 50  # events for each one that is to be found among the newest


class Begin(msgspec.Struct, frozen=True, kw_only=True):
    """Where a reader begins: after a position, after the event of a sequence, at a moment, or with the newest that are
    wanted. Where nothing is said: now."""

    position: str | None = None
    seq: int | None = None
    since: int | None = None
    newest: int | None = None


def begin(reads: Reads, where: Begin, only: Only = EVERYTHING) -> str:
    """The position to read on from."""
    if where.position is not None:
        return where.position
    if where.seq is not None:
        return after_seq(reads, where.seq)
    if where.since is not None:
        return since(reads, where.since)
    return before_newest(reads, where.newest, only) if where.newest else reads.end()


def before_newest(reads: Reads, most: int, only: Only) -> str:
    """The position before the newest events that are wanted; where none is found, the end."""
    end = reads.end()  # first: what comes after it is not passed over
    looked_at = most if only == EVERYTHING else most * LOOKED_AT
    found = Names().placed(reads, ((entry, "") for entry in reads.last(looked_at, subject=only.task)))
    wanted = [one.entry.seq for one in found if only.has(one)][-most:]
    places = [place[1] for seq in wanted if (place := reads.place(seq)) is not None]
    first = min(places, key=order_of, default=None)
    return end if first is None else _before(first)


def _before(position: str) -> str:
    """The position before an event, given the one after it."""
    *transaction, seq = order_of(position)
    return ".".join(str(part) for part in (*transaction, seq - 1))


def after_seq(reads: Reads, seq: int) -> str:
    """The position after an event that somebody has seen; 0: the beginning."""
    if seq == 0:
        return BEGINNING
    place = reads.place(seq)
    if place is None:
        newest = reads.last(1)
        known = f"the newest is {newest[0].seq}" if newest else "there is none yet"
        raise NotFound(f"there is no event {seq}: {known}", hint="without --after the newest events are shown")
    return place[1]


def since(reads: Reads, at: int) -> str:
    """A position before everything that has happened since a moment. Few looks, however long the ledger is."""
    at -= SKEW_MS
    newest = reads.last(1)
    early, late = 0, newest[0].seq if newest else 0  # the position that is sought is after one of these
    while early < late:
        middle = (early + late) // 2
        found = _first_after(reads, middle)
        if found is None or found.event.at >= at:
            late = middle
        else:
            early = found.seq
    return _at_or_before(reads, early)


def _first_after(reads: Reads, seq: int) -> Entry | None:
    entries = reads.feed(_at_or_before(reads, seq), limit=1).entries
    return entries[0] if entries else None


def _at_or_before(reads: Reads, seq: int) -> str:
    """The position after an event, or after the nearest before it: a number may have been given away and not used."""
    while seq > 0:
        place = reads.place(seq)
        if place is not None:
            return place[1]
        seq -= 1
    return BEGINNING
