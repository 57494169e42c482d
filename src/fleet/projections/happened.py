"""What happened, for somebody who looks on: events in their places, the task that each is about, which are wanted."""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from fleet.model.event import AlertSending, AnyEvent, Entry, TaskEdited, TaskSubmitted, kind_of
from fleet.model.ids import run_subject
from fleet.model.task import Task
from fleet.store.reads import Reads

MOST_KNOWN = 10_000  # tasks that are kept at hand


class About(msgspec.Struct, frozen=True, kw_only=True):
    """The task that an event is about."""

    id: str  # as its spec names it
    title: str
    run: str | None


class Happened(msgspec.Struct, frozen=True, kw_only=True):
    """An event, the position in the feed after it, and the task that it is about, if it is about one."""

    entry: Entry
    position: str
    about: About | None


class Only(msgspec.Struct, frozen=True, kw_only=True):
    """Which events are wanted: of these kinds (none: of any), of a run and its tasks, of one task, since a moment."""

    kinds: tuple[str, ...] = ()
    run: str | None = None
    task: str | None = None
    since: int = 0

    def has(self, one: Happened) -> bool:
        """Whether an event is one of them. What was sent about a task is among what happens to it."""
        event = one.entry.event
        if event.at < self.since or (self.kinds and kind_of(event) not in self.kinds):
            return False
        subject = subject_of(event)
        if self.task is not None and subject != self.task:
            return False
        if self.run is None or subject == run_subject(self.run):
            return True
        return one.about is not None and one.about.run == self.run


EVERYTHING = Only()


class Piece(msgspec.Struct, frozen=True, kw_only=True):
    """A piece of the feed: what is wanted of it, and the position to ask for the next one with."""

    happened: list[Happened]
    position: str


class Names:
    """The tasks that events are about. What the feed itself tells of them is not asked for."""

    def __init__(self) -> None:
        self._known: dict[str, About | None] = {}

    def piece(self, reads: Reads, after: str, *, only: Only = EVERYTHING, limit: int = 1000) -> Piece:
        """What is wanted of the next events."""
        batch = reads.feed(after, limit=limit, kinds=only.kinds)
        placed = self.placed(reads, zip(batch.entries, batch.positions, strict=True))
        wanted = placed if only is EVERYTHING else [one for one in placed if only.has(one)]
        return Piece(happened=wanted, position=batch.position)

    def placed(self, reads: Reads, found: Iterable[tuple[Entry, str]]) -> list[Happened]:
        """Events with the tasks that they are about."""
        entries = list(found)
        if len(self._known) >= MOST_KNOWN:
            self._known.clear()
        self._learn(reads, [entry.event for entry, _ in entries])
        return [
            Happened(entry=entry, position=position, about=self._known.get(subject_of(entry.event)))
            for entry, position in entries
        ]

    def _learn(self, reads: Reads, events: list[AnyEvent]) -> None:
        for event in events:
            if isinstance(event, TaskSubmitted) and event.subject not in self._known:
                self._known[event.subject] = _about(event.task)
            elif isinstance(event, TaskEdited):
                self._known.pop(event.subject, None)
        subjects = {subject for event in events if "/" not in (subject := subject_of(event))}
        missing = subjects - self._known.keys()
        if missing:
            tasks = reads.tasks_by_uid(missing)
            self._known |= {uid: _about(tasks[uid]) if uid in tasks else None for uid in missing}


def _about(task: Task) -> About:
    return About(id=task.task_id, title=task.title, run=task.run)


def subject_of(event: AnyEvent) -> str:
    """What an event is about: of an alert that is sent, what it tells of."""
    return event.delivery.about if isinstance(event, AlertSending) else event.subject
