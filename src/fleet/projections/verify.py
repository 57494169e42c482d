"""The check of the ledger: every chain holds, and folding the events gives the rows."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TypeVar

import msgspec

from fleet.errors import LedgerBroken
from fleet.model import event as ev
from fleet.model.fold import fold_session, fold_task
from fleet.model.session import Session, task_of
from fleet.model.states import LIVE
from fleet.model.task import Task
from fleet.store.ledger import Chains
from fleet.store.reads import Reads

T = TypeVar("T")
LOOKS = 20


class Verified(msgspec.Struct, frozen=True, kw_only=True):
    """What was checked, and found in order."""

    events: int
    chains: int
    tasks: int
    heads_matched: int
    heads: dict[str, str]


class Folded:
    """What a ledger stands for, as far as it has been followed."""

    def __init__(self, expected_heads: dict[str, str] | None = None) -> None:
        self.chains = Chains()
        self.tasks: dict[str, Task] = {}
        self.sessions: dict[str, Session] = {}
        self._wanted = dict(expected_heads or {})
        self._heads = len(self._wanted)

    def follow(self, entries: Iterable[ev.Entry]) -> None:
        """Check and fold the next entries, in the order of the ledger."""
        for entry in entries:
            self.chains.follow([entry])
            event = entry.event
            if self._wanted.get(event.subject) == entry.hash.hex():
                del self._wanted[event.subject]
            if "/" not in event.subject:
                self.tasks[event.subject] = fold_task(self.tasks.get(event.subject), event)
                self._follow_session(event)

    @property
    def live(self) -> dict[str, Session]:
        """The sessions that are open: they stand in the rows of their tasks."""
        return {name: session for name, session in self.sessions.items() if session.state in LIVE}

    def verified(self) -> Verified:
        """The result, once all has been followed; raises when a head that was given is not there."""
        for subject, head in self._wanted.items():
            raise LedgerBroken(f"the chain of {subject} does not contain the head {head[:12]}... that was kept")
        return Verified(
            events=self.chains.count,
            chains=len(self.chains.heads),
            tasks=len(self.tasks),
            heads_matched=self._heads,
            heads={subject: head.hex() for subject, head in sorted(self.chains.heads.items())},
        )

    def _follow_session(self, event: ev.Event) -> None:
        name = event.session.id if isinstance(event, ev.TaskClaimed) else getattr(event, "session", None)
        if name is not None:
            folded = fold_session(self.sessions.get(name), event)
            if folded is None:
                raise LedgerBroken(f"session {name} has {ev.kind_of(event)} before its claim")
            self.sessions[name] = folded


def everything(reads: Reads) -> Iterator[ev.Entry]:
    """The whole ledger, in order."""
    position = ""
    while (batch := reads.feed(position)).entries:
        position = batch.position
        yield from batch.entries


def verify(reads: Reads, heads: dict[str, str] | None = None) -> Verified:
    """Check the ledger of a store against itself, its rows, and heads that somebody kept.

    Others may write meanwhile: what differs is looked at again by itself before it is called broken.
    """
    folded = Folded(heads)
    folded.follow(everything(reads))
    uids = _differing(folded.tasks, {task.uid: task for task in reads.tasks()})
    stored = {session.id: session for session in reads.sessions(live=True)}
    uids |= {task_of(name) for name in _differing(folded.live, stored)}
    for uid in sorted(uids):
        _look_again(reads, uid)
    for seq in reads.astray():
        raise LedgerBroken(f"event {seq} cannot be found from the end of its chain: a row was changed")
    return folded.verified()


def _differing(folded: dict[str, T], stored: dict[str, T]) -> set[str]:
    return {name for name in folded.keys() | stored.keys() if folded.get(name) != stored.get(name)}


def _look_again(reads: Reads, uid: str) -> None:
    """Compare one task and its open session with its own events, until nobody writes in between."""
    for attempts_left in reversed(range(LOOKS)):
        before = reads.last(1, subject=uid)
        own = Folded()
        own.follow(reads.chain(uid))
        stored = reads.tasks_by_uid([uid])
        sessions = {session.id: session for session in reads.sessions(task=uid, live=True)}
        if attempts_left and reads.last(1, subject=uid) != before:
            continue
        _compare("task", own.tasks, stored)
        _compare("session", own.live, sessions)
        return


def verify_entries(entries: Iterable[ev.Entry], heads: dict[str, str] | None = None) -> Verified:
    """Check an exported ledger against itself, and heads that somebody kept."""
    folded = Folded(heads)
    folded.follow(entries)
    return folded.verified()


def _compare(what: str, folded: dict[str, T], stored: dict[str, T]) -> None:
    for name in folded.keys() | stored.keys():
        if folded.get(name) != stored.get(name):
            known, said = stored.get(name), folded.get(name)
            detail = (
                "is not stored"
                if known is None
                else "is not in the ledger"
                if said is None
                else _difference(said, known)
            )
            raise LedgerBroken(f"{what} {name} {detail}")


def _difference(said: object, known: object) -> str:
    names = [n for n in getattr(said, "__struct_fields__", ()) if getattr(said, n) != getattr(known, n)]
    return f"is stored otherwise than its events say: {', '.join(names)}"
