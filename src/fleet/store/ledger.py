"""Writing and reading events: the append that links a chain, and the check that nothing was tampered with."""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from fleet.errors import LedgerBroken
from fleet.model import event as ev
from fleet.store.engine import Row, Tx


def head(tx: Tx, subject: str) -> bytes:
    """The hash that the next event of a subject must follow. The caller holds the subject's row."""
    rows = tx.rows("SELECT hash FROM events WHERE subject = ? ORDER BY seq DESC LIMIT 1", subject)
    return bytes(rows[0][0]) if rows else ev.GENESIS


def newest(tx: Tx, subject: str) -> int:
    """The sequence of a subject's last event."""
    return int(tx.rows("SELECT max(seq) FROM events WHERE subject = ?", subject)[0][0] or 0)


def append(tx: Tx, *events: ev.Event) -> int:
    """Write events of one subject, in order; returns the sequence of the last."""
    return _append(tx, head(tx, events[0].subject), events)


def begin(tx: Tx, event: ev.Event) -> int:
    """Write the first event of a subject that nobody else can know of yet."""
    return _append(tx, ev.GENESIS, (event,))


def _append(tx: Tx, previous: bytes, events: Iterable[ev.Event]) -> int:
    seq = 0
    for event in events:
        body = ev.encode(event)
        previous = ev.link(previous, body)
        seq = tx.insert(
            "INSERT INTO events (subject, kind, at, hash, body) VALUES (?, ?, ?, ?, ?)",
            event.subject,
            ev.kind_of(event),
            event.at,
            previous,
            body.decode(),
        )
    return seq


def entry(row: Row) -> ev.Entry:
    """An entry from (seq, hash, body)."""
    seq, digest, body = row
    try:
        raw, known = body.encode(), bytes(digest)
        event = ev.decode(raw)
    except (msgspec.DecodeError, AttributeError, TypeError) as exc:  # broken JSON, or values of another type
        raise LedgerBroken(
            f"event {seq} cannot be read: {exc}",
            hint="`fleet init --force` keeps the damaged database and rebuilds it from fleet.jsonl",
        ) from exc
    return ev.Entry(seq=seq, hash=known, body=raw, event=event)


def of_subject(tx: Tx, subject: str, after: int = 0, limit: int = 1 << 31) -> list[ev.Entry]:
    """The chain of a subject, in order."""
    rows = tx.rows(
        "SELECT seq, hash, body FROM events WHERE subject = ? AND seq > ? ORDER BY seq LIMIT ?", subject, after, limit
    )
    return [entry(row) for row in rows]


def last(tx: Tx, limit: int, subject: str | None = None) -> list[ev.Entry]:
    """The newest events, oldest of them first."""
    if subject is None:
        rows = tx.rows("SELECT seq, hash, body FROM events ORDER BY seq DESC LIMIT ?", limit)
    else:
        rows = tx.rows("SELECT seq, hash, body FROM events WHERE subject = ? ORDER BY seq DESC LIMIT ?", subject, limit)
    return [entry(row) for row in reversed(rows)]


class Chains:
    """Follows any number of chains at once and says where one breaks."""

    def __init__(self) -> None:
        self.heads: dict[str, bytes] = {}
        self.count = 0

    def follow(self, entries: Iterable[ev.Entry]) -> None:
        """Check the next entries, in the order of the ledger."""
        for found in entries:
            subject = found.event.subject
            expected = ev.link(self.heads.get(subject, ev.GENESIS), found.body)
            if found.hash != expected:
                raise LedgerBroken(
                    f"event {found.seq} of {subject} does not follow the one before it: "
                    "it, or one before it, was changed, removed or moved"
                )
            self.heads[subject] = expected
            self.count += 1
            self._check_run_heads(found.event)

    def _check_run_heads(self, event: ev.AnyEvent) -> None:
        """The end of a run names the heads of its tasks: a task cut short since is seen."""
        if isinstance(event, ev.RunEnded):
            for uid, expected in event.heads.items():
                if self.heads.get(uid, ev.GENESIS).hex() != expected:
                    raise LedgerBroken(f"the chain of {uid} is not the one that the end of {event.subject} names")
