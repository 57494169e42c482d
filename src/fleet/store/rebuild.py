"""Rebuilding: the rows of a new database from events, as far as these hold together."""

from __future__ import annotations

from collections.abc import Iterable

from fleet.errors import LedgerBroken
from fleet.model import event as ev
from fleet.model.fold import fold_session, fold_task
from fleet.model.session import Session
from fleet.model.states import TaskState
from fleet.model.task import Task
from fleet.store import fold_rows, ledger, rows
from fleet.store.engine import Tx


class Rebuilt:
    """The events that hold together, and what they fold to."""

    def __init__(self) -> None:
        self.events = 0
        self.dropped = 0
        self._chains = ledger.Chains()
        self._broken: set[str] = set()
        self._tasks: dict[str, Task] = {}
        self._sessions: dict[str, Session] = {}  # the newest of each task

    def _holds(self, entry: ev.Entry) -> bool:
        """Whether the entry follows those before it; if so, it is one of them."""
        event = entry.event
        if event.subject in self._broken:
            return False
        try:
            self._chains.follow([entry])
        except LedgerBroken:
            if self._chains.heads.get(event.subject) == entry.hash:
                self._broken.add(event.subject)  # it is in its place, but names an end that is not there
            return False
        if ledger.is_task(event.subject):
            self._tasks[event.subject] = fold_task(self._tasks.get(event.subject), event)
            folded = fold_session(self._sessions.get(event.subject), event)
            if folded is not None:
                self._sessions[event.subject] = folded
        return True

    def into(self, tx: Tx, readable: Iterable[list[ev.Entry]]) -> None:
        """Write the events, of each the version that holds, then the rows."""
        for versions in readable:
            entry = next(filter(self._holds, versions), None)
            if entry is None:
                self.dropped += 1
                continue
            self._write(tx, entry)
            self.events += 1
        self._write_rows(tx)

    def _write(self, tx: Tx, entry: ev.Entry) -> None:
        event = entry.event
        tx.run(
            "INSERT INTO events (seq, subject, prev, kind, at, hash, body) VALUES (?, ?, ?, ?, ?, ?, ?)",
            entry.seq,
            event.subject,
            tx.heads.get(event.subject, ledger.NOTHING)[0] or None,
            ev.kind_of(event),
            event.at,
            entry.hash,
            entry.body.decode(),
        )
        tx.heads[event.subject] = (entry.seq, entry.hash)
        if not ledger.is_task(event.subject):
            ledger.save_head(tx, event.subject)
            fold_rows.around(tx, entry.seq, event)
            return
        fold_rows.beside(tx, entry.seq, event)

    def _write_rows(self, tx: Tx) -> None:
        for task in self._tasks.values():
            needed = [self._tasks.get(uid) for uid in task.needs]
            waiting = sum(need is None or need.state is not TaskState.COMPLETED for need in needed)
            rows.insert_task(tx, task, waiting, self._sessions.get(task.uid))
            links = [(task.uid, link.other, link.kind) for link in task.links]
            tx.many("INSERT INTO links (task, other, kind) VALUES (?, ?, ?)", links)
