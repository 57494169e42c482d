"""Places in the feed: where a reader begins who names a moment, or the last event that it has seen."""

from __future__ import annotations

from fleet.errors import NotFound
from fleet.model.event import Entry
from fleet.store.reads import BEGINNING, Reads

SKEW_MS = 60_000  # by so much the times of neighbours may be out of order, where several machines write


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
