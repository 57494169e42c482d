"""Writing and reading events: the append that links a chain, and the check that nothing was tampered with."""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from fleet.errors import LedgerBroken, NotFound
from fleet.model import event as ev
from fleet.model.fold import fold_session, receipt_of
from fleet.model.receipt import Receipt
from fleet.model.session import Session, task_of
from fleet.store.engine import Row, Tx

_END_OF_TASK = "tasks WHERE uid = ?"
_END = "heads WHERE subject = ?"
_SESSION_KINDS = (ev.TaskClaimed, ev.SessionStarted, ev.SessionStopping, ev.SessionAdopted, ev.SessionEnded)
_RECEIPT_KINDS = (ev.TaskSettled, ev.TaskRequeued)
NOTHING = (0, ev.GENESIS)  # the head of a chain that has no event yet


def is_task(subject: str) -> bool:
    """Whether a subject is a task. Where its chain ends is in its row; the ends of all other chains are kept apart."""
    return "/" not in subject


def head(tx: Tx, subject: str) -> tuple[int, bytes]:
    """Sequence and hash of a subject's newest event. Who is to write the next one holds the subject's row."""
    known = tx.heads.get(subject)
    if known is not None:
        return known
    rows = tx.rows(f"SELECT head, hash FROM {_END_OF_TASK if is_task(subject) else _END}", subject)
    return (rows[0][0], bytes(rows[0][1])) if rows else NOTHING


def save_head(tx: Tx, subject: str) -> None:
    """Keep where the chain of a run, a host or a supervisor ends."""
    tx.run(
        "INSERT INTO heads (subject, head, hash) VALUES (?, ?, ?)"
        " ON CONFLICT (subject) DO UPDATE SET head = excluded.head, hash = excluded.hash",
        subject,
        *tx.heads[subject],
    )


def append(tx: Tx, *events: ev.Event) -> int:
    """Write events of one subject, in order; returns the sequence of the last. The caller writes a task's row."""
    subject = events[0].subject
    seq, digest = head(tx, subject)
    for event in events:
        body = ev.encode(event)
        digest = ev.link(digest, body)
        seq = tx.event(subject, seq or None, ev.kind_of(event), event.at, digest, body.decode())
    tx.heads[subject] = (seq, digest)
    if not is_task(subject):
        save_head(tx, subject)
    return seq


def begin(tx: Tx, event: ev.Event) -> int:
    """Write the first event of a subject that nobody else can know of yet."""
    tx.heads[event.subject] = NOTHING
    return append(tx, event)


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
    sql = f"{_chain_of(subject)} AND e.seq > ? ORDER BY e.seq LIMIT ?"
    return [entry(row) for row in tx.rows(sql, subject, after, limit)]


def last(tx: Tx, limit: int, subject: str | None = None) -> list[ev.Entry]:
    """The newest events, oldest of them first."""
    if subject is None:
        rows = tx.rows("SELECT seq, hash, body FROM events ORDER BY seq DESC LIMIT ?", limit)
    else:
        rows = tx.rows(f"{_chain_of(subject)} ORDER BY e.seq DESC LIMIT ?", subject, limit)
    return [entry(row) for row in reversed(rows)]


def _back_from(end: str) -> str:
    """The events of all chains that end there. No index is kept for it: each event names the one before it."""
    return (
        "WITH RECURSIVE chain (seq, prev) AS (SELECT e.seq, e.prev"
        f" FROM (SELECT head, hash FROM {end}) ends CROSS JOIN events e WHERE e.seq = ends.head AND e.hash = ends.hash"
        " UNION ALL SELECT e.seq, e.prev FROM chain CROSS JOIN events e WHERE e.seq = chain.prev AND e.seq < chain.seq)"
        " SELECT e.seq, e.hash, e.body FROM chain CROSS JOIN events e WHERE e.seq = chain.seq"
    )


def astray(tx: Tx) -> list[int]:
    """The first few events that cannot be found from where the chain of their subject ends; none, if all is right."""
    known = _back_from("tasks UNION ALL SELECT head, hash FROM heads")
    sql = f"SELECT seq FROM events EXCEPT SELECT seq FROM ({known}) found ORDER BY seq LIMIT 5"
    return [row[0] for row in tx.rows(sql)]


def _chain_of(subject: str) -> str:
    return _back_from(_END_OF_TASK if is_task(subject) else _END)


def _told(tx: Tx, kinds: tuple[type[ev.Event], ...], *, task: str | None, run: str | None) -> list[ev.AnyEvent]:
    """The events of some kinds, of a task, of a run, or of all, in order."""
    names = [ev.kind_of(kind) for kind in kinds]
    among = f"e.kind IN ({', '.join('?' * len(names))}) ORDER BY e.seq"
    if task is not None:
        rows = tx.rows(f"{_back_from(_END_OF_TASK)} AND {among}", task, *names)
    elif run is not None:
        rows = tx.rows(f"{_back_from('tasks WHERE run = ?')} AND {among}", run, *names)
    else:
        rows = tx.rows(f"SELECT e.seq, e.hash, e.body FROM events e WHERE {among}", *names)
    return [entry(row).event for row in rows]


def sessions(tx: Tx, task: str | None = None) -> list[Session]:
    """The sessions of a task, or all that ever were, oldest first, as the events tell them."""
    known: dict[str, Session] = {}
    for event in _told(tx, _SESSION_KINDS, task=task, run=None):
        name = event.session.id if isinstance(event, ev.TaskClaimed) else str(getattr(event, "session", None))
        folded = fold_session(known.get(name), event)
        if folded is not None:
            known[name] = folded
    return list(known.values())


def session(tx: Tx, name: str) -> Session:
    """One session, as the events tell it."""
    for found in sessions(tx, task_of(name)):
        if found.id == name:
            return found
    raise NotFound(f"no session `{name}`")


def last_of_worker(tx: Tx, worker: str) -> Session | None:
    """The newest session in a worker's name, or in that of one of its slots. The claims are gone through backwards."""
    word = worker.replace("\\", "\\\\").replace("%", "\\%").replace("_", "\\_")
    found = tx.rows(
        "SELECT seq, hash, body FROM events WHERE kind = ? AND (body LIKE ? ESCAPE '\\' OR body LIKE ? ESCAPE '\\')"
        " ORDER BY seq DESC LIMIT 1",
        ev.kind_of(ev.TaskClaimed),
        f'%"worker":"{word}"%',
        f'%"worker":"{word}#%',
    )
    claim = entry(found[0]).event if found else None
    return session(tx, claim.session.id) if isinstance(claim, ev.TaskClaimed) else None


def receipts(tx: Tx, *, task: str | None, run: str | None) -> list[Receipt]:
    """The receipts of a task, of a run, or of all, oldest first."""
    brought = (receipt_of(event) for event in _told(tx, _RECEIPT_KINDS, task=task, run=run))
    return [receipt for receipt in brought if receipt is not None]


def receipt(tx: Tx, task: str, name: str) -> Receipt:
    """A receipt of a task."""
    for found in receipts(tx, task=task, run=None):
        if found.id == name:
            return found
    raise NotFound(f"no receipt `{name}`")


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
