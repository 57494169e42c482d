"""The verbs of alerts on their way: announced before they are sent, taken over from the dead, ended with an outcome."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec
from msgspec.structs import replace

from fleet.errors import NotFound
from fleet.model import event as ev
from fleet.model.delivery import Came, Delivery
from fleet.model.ids import CHECK, channel_subject
from fleet.store import around, ledger, rows
from fleet.store.engine import Tx

SENT: Came = "sent"
CHECK_MS = 120_000  # a check that announced an alert so long ago is over


def announce(tx: Tx, new: Sequence[Delivery], reader: str | None, position: str) -> list[Delivery]:
    """Record what is about to be sent, and how far the feed was read for it. Returns what was not announced before.

    One that comes with an outcome (a duplicate, a dry run) is recorded with it, and nobody is to send it.
    """
    made = []
    for delivery in sorted(new, key=lambda each: each.channel):  # everybody takes the chains in one order
        tx.exclusively(channel_subject(delivery.channel))
        if tx.rows("SELECT 1 FROM deliveries WHERE id = ?", delivery.id):
            continue
        _sending(tx, replace(delivery, outcome=None, detail=""))
        made.append(delivery)
        if delivery.outcome is not None:
            delivered(tx, delivery.id, delivery.outcome, attempts=0, detail=delivery.detail, by=delivery.by)
    if reader is not None:
        around.advance(tx, reader, position)
    return made


def take_over(tx: Tx, by: str) -> list[Delivery]:
    """The deliveries of supervisors that have left become the caller's; those of a check, when it must have ended."""
    sql = (
        "SELECT d.doc, s.id FROM deliveries d LEFT JOIN supervisors s ON s.id = d.sender"
        " WHERE d.state = 'pending' AND (s.left_at IS NOT NULL OR SUBSTR(d.sender, 1, ?) = ?) ORDER BY d.seq"
    )
    waiting = [(msgspec.json.decode(doc, type=Delivery), left) for doc, left in tx.rows(sql, len(CHECK), CHECK)]
    found = [each for each, left in waiting if left or tx.now - each.raised_at > CHECK_MS]
    taken = []
    for delivery in sorted(found, key=lambda each: each.channel):
        tx.exclusively(channel_subject(delivery.channel))
        now = _known(tx, delivery.id)
        if now.outcome is None and now.by == delivery.by:  # else another was first
            taken.append(replace(now, by=by, repeat=True))
            _sending(tx, taken[-1])
    return taken


def delivered(tx: Tx, name: str, outcome: Came, *, attempts: int, detail: str, by: str) -> Delivery:
    """What came of it. The first word stands."""
    known = _known(tx, name)
    subject = channel_subject(known.channel)
    tx.exclusively(subject)
    known = _known(tx, name)
    if known.outcome is not None:
        return known
    event = ev.AlertSent(
        subject=subject, at=tx.now, by=by, delivery=name, outcome=outcome, attempts=attempts, detail=detail
    )
    ledger.append(tx, event)
    return end(tx, event)


def save(tx: Tx, seq: int, delivery: Delivery) -> None:
    """The row of a delivery that is announced, for the first time or again."""
    tx.run(
        "INSERT INTO deliveries (id, seq, state, sender, about, doc) VALUES (?, ?, 'pending', ?, ?, ?)"
        " ON CONFLICT (id) DO UPDATE SET sender = excluded.sender, doc = excluded.doc",
        delivery.id,
        seq,
        delivery.by,
        delivery.about,
        rows.encode(delivery),
    )


def end(tx: Tx, event: ev.AlertSent) -> Delivery:
    """The row of a delivery that is over; a resolve that arrived closes what was open under its key."""
    known = _known(tx, event.delivery)
    after = replace(
        known, outcome=event.outcome, attempts=event.attempts, detail=event.detail, ended_at=event.at, by=event.by
    )
    is_open = after.outcome == SENT and after.resolvable and after.action == "trigger"
    _set(tx, after, "open" if is_open else "closed")
    if after.outcome == SENT and after.action == "resolve":
        sql = "SELECT doc FROM deliveries WHERE about = ? AND state = 'open' ORDER BY seq"
        for row in tx.rows(sql, after.about):
            other = msgspec.json.decode(row[0], type=Delivery)
            if (other.channel, other.key) == (after.channel, after.key):
                _set(tx, other, "closed")
    return after


def _sending(tx: Tx, delivery: Delivery) -> None:
    event = ev.AlertSending(subject=channel_subject(delivery.channel), at=tx.now, by=delivery.by, delivery=delivery)
    save(tx, ledger.append(tx, event), delivery)


def _known(tx: Tx, name: str) -> Delivery:
    found = tx.rows("SELECT doc FROM deliveries WHERE id = ?", name)
    if not found:
        raise NotFound(f"no delivery `{name}`")
    return msgspec.json.decode(found[0][0], type=Delivery)


def _set(tx: Tx, delivery: Delivery, state: str) -> None:
    tx.run("UPDATE deliveries SET state = ?, doc = ? WHERE id = ?", state, rows.encode(delivery), delivery.id)
