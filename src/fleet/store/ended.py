"""Sessions that have ended, as the events tell them: who ran, where, how long, and what it used.

An end is found with its claim by the link that each event has to the one before it; no index is kept for it. Who wants
those since a moment looks up the place of that moment first, so that the cost grows with what has happened since.
"""

from __future__ import annotations

from fleet.model.fold import fold_session
from fleet.model.session import Session
from fleet.store import ledger
from fleet.store.engine import Row, Tx

# With the event before the end, and the one before that: its start and its claim, of most sessions.
_ENDED = (
    "SELECT f.seq, f.hash, f.body, b.seq, b.hash, b.body, e.seq, e.hash, e.body FROM events e"
    " JOIN events b ON b.seq = e.prev JOIN events f ON f.seq = b.prev"
    " WHERE e.kind = 'session.ended' AND e.seq > ? ORDER BY e.seq LIMIT ?"
)


def after(tx: Tx, seq: int, limit: int) -> list[tuple[int, Session]]:
    """So many of the sessions whose end stands behind an event, in order, with the sequence of their end."""
    return [(row[6], _session(tx, row)) for row in tx.rows(_ENDED, seq, limit)]


def _session(tx: Tx, row: Row) -> Session:
    session = None
    for part in (row[:3], row[3:6], row[6:]):
        event = ledger.entry(part).event
        session = fold_session(session, event)
    if session is not None and session.ended_at is not None:
        return session
    return ledger.session(tx, str(getattr(event, "session", "")))  # stopped, taken over, or its task was remarked on
