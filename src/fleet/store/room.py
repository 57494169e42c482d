"""Room in a run: how many of its tasks may run at once, and which of its workers takes the next."""

from __future__ import annotations

from msgspec.structs import replace

from fleet.model.run import Run
from fleet.model.session import Lane, Slot, changed_in_place
from fleet.model.states import IN_PROGRESS
from fleet.store import asks, rows
from fleet.store.engine import Tx

Where = tuple[str | None, str]  # a host, and a directory on it


class Room:
    """One run within one claim. Its row is held, so that two claimers cannot both take the last place."""

    def __init__(self, tx: Tx, run: Run) -> None:
        self._run = run
        live = asks.tasks(tx, IN_PROGRESS, run=run.id, limit=asks.LIMIT, newest_first=False)
        self._busy = {rows.session(tx, task.session).worker for task in live if task.session}
        self._count = len(live)

    def take(self, lane: Lane, slot: Slot) -> str | None:
        """The name of the place that a task of this lane gets in a slot; None: there is none now."""
        most = self._run.max_workers
        if most is not None and self._count >= most:
            return None
        name = next((name for name in self._names(lane, slot) if name not in self._busy), None)
        if name is not None:
            self._busy.add(name)
            self._count += 1
        return name

    def _names(self, lane: Lane, slot: Slot) -> list[str]:
        """The places that could take a task of this lane, in order. The slot of a declared worker has its name."""
        if not slot.here:
            return [slot.worker]
        if slot.declared:
            return [slot.worker] if not self._run.workers or slot.runs == frozenset({self._run.id}) else []
        if not self._run.workers:
            return [f"{self._run.id}-local-{n}" for n in range(1, self._count + 2)]
        wanted = set(lane.capabilities)
        able = [worker for worker in self._run.workers if worker.is_here and wanted.issubset(worker.capabilities)]
        return [f"{worker.name}#{n}" for worker in able for n in range(1, worker.max_tasks + 1)]


class Rooms:
    """The runs, the directories and the declared workers that one claim meets.

    A run that asks for nothing takes any slot, at one look.
    """

    def __init__(self, tx: Tx) -> None:
        self._tx = tx
        self._known: dict[str, Room | None] = {}
        self._occupied: set[Where] | None = None  # directories that somebody changes in place
        self._in_use: set[tuple[str, str]] | None = None  # host and name of the slots that live sessions have

    def not_in_use(self, slots: list[Slot]) -> list[Slot]:
        """The slots but those of declared workers that another supervisor has filled since they were looked at.

        Nobody else fills one until our transaction is over.
        """
        if not any(slot.declared for slot in slots):
            return slots
        if self._in_use is None:
            self._tx.exclusively("workers")
            self._in_use = {(one.host, one.worker) for one in asks.sessions(self._tx, live=True)}
        return [slot for slot in slots if not slot.declared or (slot.host, slot.worker) not in self._in_use]

    def place(self, lane: Lane, slot: Slot) -> Slot | None:
        """The slot, under the name that the run gives it; None: there is no room for a task of this lane."""
        if slot.shares or lane.directory is None:
            return self._in_run(lane, slot)
        where = (lane.host or slot.host, lane.directory)
        placed = self._in_run(lane, slot) if where not in self._directories() else None
        if placed is not None:
            self._directories().add(where)
        return placed

    def _directories(self) -> set[Where]:
        """Those in which an agent is at work. Nobody else looks until our transaction is over."""
        if self._occupied is None:
            self._tx.exclusively("directories")
            live = asks.tasks(self._tx, IN_PROGRESS, run=None, limit=asks.LIMIT, newest_first=False)
            at = {session.task: session.host for session in asks.sessions(self._tx, live=True)}
            self._occupied = {
                (at.get(task.uid, task.host), directory) for task in live if (directory := changed_in_place(task))
            }
        return self._occupied

    def _in_run(self, lane: Lane, slot: Slot) -> Slot | None:
        if lane.run is None:
            return slot
        if lane.run not in self._known:
            run = rows.run(self._tx, lane.run, lock=False)
            bounded = run.max_workers is not None or run.workers
            self._known[lane.run] = Room(self._tx, rows.run(self._tx, lane.run)) if bounded else None
        room = self._known[lane.run]
        if room is None:
            return slot
        name = room.take(lane, slot)
        return replace(slot, worker=name) if name is not None else None
