"""Reads: every question that can be put to the store, written once over an `Engine` (SQLite or PostgreSQL)."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from typing import TYPE_CHECKING

import msgspec

from fleet.errors import UsageError
from fleet.model.host import Host
from fleet.model.ids import resolve
from fleet.model.intent import Intent
from fleet.model.receipt import Receipt
from fleet.model.run import Run
from fleet.model.session import Progress, Session
from fleet.model.states import TaskState
from fleet.model.supervisor import Supervisor
from fleet.model.task import Comment, Task
from fleet.store import asks, rows
from fleet.store.engine import Bell, Engine, Tx

if TYPE_CHECKING:
    from fleet.model.delivery import Delivery
    from fleet.model.event import Entry
    from fleet.model.host import Stretch

BEGINNING = ""  # the position before the first event
SILENT_MS = 30_000  # three signs of life did not come: a supervisor that lives does nothing


class Batch(msgspec.Struct, frozen=True):
    """A piece of the feed, and the position to ask for the next one with."""

    entries: list[Entry]
    position: str
    positions: list[str] = []  # after each entry


class Reads:
    """Questions. Asking creates nothing and takes no write lock."""

    def __init__(self, engine: Engine, *, prefix: str = "fleet") -> None:
        self._engine = engine
        self.prefix = prefix

    def close(self) -> None:
        """Let go of the database."""
        self._engine.close()

    def now(self) -> int:
        """The time by which the store records: of this machine, or of the database that several machines share."""
        return self._engine.now()

    def listen(self) -> Bell:
        """Be told of commits."""
        return self._engine.listen()

    def find(self, word: str) -> Task:
        """The task that an id stands for: its own, any unique beginning or end of it, or that of its session, of the
        worker that has it, or of the spec (RUN/ID where several runs have it)."""

        def ask(tx: Tx) -> Task:
            found = asks.matching(tx, word, self.prefix)
            return rows.task(tx, found[0] if len(found) == 1 else resolve(word, found))

        return self._engine.read(ask)

    def task(self, uid: str) -> Task:
        """A task by its whole id."""
        return self._engine.read(lambda tx: rows.task(tx, uid))

    def tasks_by_uid(self, uids: Iterable[str]) -> dict[str, Task]:
        """Those of the tasks that exist."""
        names = list(uids)
        found = self._engine.read(lambda tx: [rows.task_or_none(tx, uid) for uid in names])
        return {task.uid: task for task in found if task is not None}

    def ready(self, *, limit: int = asks.LIMIT, run: str | None = None) -> list[Task]:
        """What could start now, the most urgent and oldest first."""
        return self._engine.read(lambda tx: asks.ready(tx, limit, tx.now, run))

    def moving(self, run: str) -> bool:
        """Whether something of a run is in progress, or will be without a person."""
        return self._engine.read(lambda tx: asks.moving(tx, run))

    def waiting(self, *, limit: int = asks.LIMIT) -> list[Task]:
        """Queued tasks that wait for others."""
        return self._engine.read(lambda tx: asks.waiting(tx, limit))

    def tasks(
        self,
        states: Collection[TaskState] | None = None,
        *,
        run: str | None = None,
        limit: int = asks.LIMIT,
        newest_first: bool = False,
        after: str | None = None,
    ) -> list[Task]:
        """Tasks in some states (None: in any); those that follow a task by age, where one is given."""
        return self._engine.read(
            lambda tx: asks.tasks(tx, states, run=run, limit=limit, newest_first=newest_first, after=after)
        )

    def counts(self, run: str | None = None) -> dict[str, int]:
        """How many tasks there are in each state and of each kind of failure."""
        return self._engine.read(lambda tx: tx.counts(run or "*"))

    def unmet(self, uid: str) -> list[tuple[str, str]]:
        """The needs of a task that are not completed, with their states."""
        return self._engine.read(lambda tx: asks.unmet(tx, uid))

    def dependents(self, uid: str) -> list[tuple[str, str]]:
        """The tasks with a relation to this one, and its kind."""
        return self._engine.read(lambda tx: asks.dependents(tx, uid))

    def comments(self, uid: str) -> list[Comment]:
        """Remarks on a task, oldest first."""
        sql = "SELECT doc FROM comments WHERE task = ? ORDER BY seq"
        return self._engine.read(lambda tx: asks.decode_all(tx.rows(sql, uid), Comment))

    def receipts(self, *, task: str | None = None, run: str | None = None, limit: int = asks.LIMIT) -> list[Receipt]:
        """Receipts of a task, of a run, or of all, oldest first."""
        from fleet.store import ledger

        return self._engine.read(lambda tx: ledger.receipts(tx, task=task, run=run))[:limit]

    def session(self, session: str) -> Session:
        """One session."""
        return self._engine.read(lambda tx: rows.session(tx, session))

    def progress(self, session: str) -> Progress:
        """How far the reading of a session has come."""
        return self._engine.read(lambda tx: rows.progress(tx, session))

    def sessions(self, *, task: str | None = None, live: bool = False, supervisor: str | None = None) -> list[Session]:
        """Sessions, oldest first."""
        return self._engine.read(lambda tx: asks.sessions(tx, task=task, live=live, supervisor=supervisor))

    def ended(self, after: int, *, limit: int) -> list[tuple[int, Session]]:
        """So many sessions whose end stands behind an event, in order, each with the sequence of its end."""
        from fleet.store import ended  # not at the top: only sums over time need it

        return self._engine.read(lambda tx: ended.after(tx, after, limit))

    def last_of_worker(self, worker: str) -> Session | None:
        """The newest session in a worker's name, or in that of one of its slots."""
        from fleet.store import ledger

        return self._engine.read(lambda tx: ledger.last_of_worker(tx, worker))

    def orphans(self) -> list[Session]:
        """Live sessions whose supervisor has left."""
        return self._engine.read(asks.orphans)

    def lapsed(self) -> list[Supervisor]:
        """Supervisors whose lease has ended, and of whom nobody has said yet that they are gone."""

        def ask(tx: Tx) -> list[Supervisor]:
            found = tx.rows("SELECT doc FROM supervisors WHERE left_at IS NULL ORDER BY id")
            return [known for known in asks.decode_all(found, Supervisor) if tx.lapsed(known.id)]

        return self._engine.read(ask)

    def supervisors(self, *, present: bool = True) -> list[Supervisor]:
        """Supervisors whose lease holds; or all that ever joined."""
        return self._engine.read(lambda tx: asks.supervisors(tx, present=present))

    def silent(self) -> dict[str, int]:
        """Of the supervisors whose lease holds, those that give no sign of life: for how many milliseconds."""

        def ask(tx: Tx) -> dict[str, int]:
            return {each.id: tx.silent_ms(each.id) or 0 for each in asks.supervisors(tx, present=True)}

        return {name: ms for name, ms in self._engine.read(ask).items() if ms >= SILENT_MS}

    def attending(self) -> list[str]:
        """The supervisors whose lease holds and that give signs of life."""
        silent = self.silent()
        return [each.id for each in self.supervisors() if each.id not in silent]

    def run(self, run: str) -> Run:
        """One run."""
        return self._engine.read(lambda tx: rows.run(tx, run, lock=False))

    def find_run(self, word: str) -> Run:
        """The run that an id, or any unique beginning of one, stands for."""

        def ask(tx: Tx) -> Run:
            sql = "SELECT id FROM runs WHERE id >= ? AND id < ? ORDER BY id LIMIT ?"
            found = [row[0] for row in tx.rows(sql, word, word + "~", asks.ENOUGH)] if word else []
            exact = tx.rows("SELECT id FROM runs WHERE id = ?", word)
            return rows.run(tx, word if exact else resolve(word, found, "run"), lock=False)

        return self._engine.read(ask)

    def runs(self, *, limit: int = asks.LIMIT) -> list[Run]:
        """Runs, newest first."""
        sql = "SELECT doc FROM runs ORDER BY seq DESC LIMIT ?"
        return self._engine.read(lambda tx: asks.decode_all(tx.rows(sql, limit), Run))

    def active_runs(self) -> list[Run]:
        """The runs that go on, however old, newest first."""
        return self._engine.read(lambda tx: asks.decode_all(tx.rows(asks.ACTIVE_RUNS), Run))

    def intents(self, *, target: str | None = None) -> list[Intent]:
        """What was asked about a task; or, of all tasks, what is still to be done."""
        if target is not None:
            return self._engine.read(lambda tx: asks.intents_of(tx, target))
        sql = "SELECT doc FROM intents WHERE pending = 1 ORDER BY seq"
        return self._engine.read(lambda tx: asks.decode_all(tx.rows(sql), Intent))

    def hosts(self) -> list[Host]:
        """What is known of each machine."""
        return self._engine.read(lambda tx: asks.decode_all(tx.rows("SELECT doc FROM hosts ORDER BY name"), Host))

    def probes(self, host: str, *, since: int) -> list[Stretch]:
        """How a machine answered its probes since then, oldest first."""
        from fleet.store import probes  # not at the top: only histories need it

        return self._engine.read(lambda tx: probes.of_host(tx, host, since))

    def probe_totals(self, *, since: int) -> dict[str, Stretch]:
        """How each machine answered its probes since then, by name; `at` is that time."""
        from fleet.store import probes  # not at the top: only histories need it

        return self._engine.read(lambda tx: probes.totals(tx, since))

    def deliveries(self, *, about: str, limit: int = asks.LIMIT) -> list[Delivery]:
        """What was told of a subject, newest first."""
        return self._deliveries("WHERE about = ? ORDER BY seq DESC LIMIT ?", about, limit)

    def alerts(self, *, limit: int = asks.LIMIT) -> list[Delivery]:
        """All that was told or is on its way, the newest first."""
        return self._deliveries("ORDER BY seq DESC LIMIT ?", limit)

    def undelivered(self, *, limit: int = asks.LIMIT) -> list[Delivery]:
        """Alerts that are still to be sent, oldest first."""
        return self._deliveries("WHERE state = 'pending' ORDER BY seq LIMIT ?", limit)

    def incidents(self) -> list[Delivery]:
        """What was triggered, or is about to be, where it can be resolved, and was not resolved since."""
        found = self._deliveries("WHERE state <> 'closed' ORDER BY seq")
        return [each for each in found if each.resolvable and each.action == "trigger"]

    def _deliveries(self, which: str, *values: str | int) -> list[Delivery]:
        from fleet.model.delivery import Delivery  # not at the top: only alerts need it

        sql = f"SELECT doc FROM deliveries {which}"
        return self._engine.read(lambda tx: asks.decode_all(tx.rows(sql, *values), Delivery))

    def cursor(self, name: str) -> str:
        """How far a reader of the feed has come."""
        found = self._engine.read(lambda tx: tx.rows("SELECT position FROM cursors WHERE name = ?", name))
        return str(found[0][0]) if found else BEGINNING

    def feed(self, after: str = BEGINNING, *, limit: int = 1000, kinds: Collection[str] = ()) -> Batch:
        """The events after a position. A reader that goes on from the position it is given misses none.

        With `kinds`, of the next `limit` events only those of these kinds.
        """

        from fleet.store import ledger  # not at the top: most commands read no event, and start faster without them

        def ask(tx: Tx) -> Batch:
            try:
                found, position = tx.feed(after, limit)
            except UnicodeError:  # of a damaged event, not of the position
                raise
            except ValueError as exc:
                raise UsageError(f"`{after}` is no position in the feed of this ledger") from exc
            marks = [f'"kind":"{kind}"' for kind in kinds]  # events are stored as canonical JSON
            wanted = [row for row in found if not marks or any(mark in row[2] for mark in marks)]
            return Batch([ledger.entry(row[:3]) for row in wanted], position, [row[3] for row in wanted])

        return self._engine.read(ask)

    def end(self) -> str:
        """The position after all that the feed would give now. Costs the same at any size of the ledger."""
        return self._engine.read(lambda tx: tx.end())

    def place(self, seq: int) -> tuple[bytes, str] | None:
        """The hash of an event and the position in the feed after it; None where there is no such event."""
        return self._engine.read(lambda tx: tx.place(seq))

    def newest(self, subject: str) -> int:
        """The sequence of a subject's newest event; 0 where it has none."""
        from fleet.store import ledger

        return self._engine.read(lambda tx: ledger.head(tx, subject)[0])

    def is_told(self, subject: str, position: str) -> bool:
        """Whether a reader of the feed at this position was given all events of a subject; rows may be ahead of it."""
        newest = self.last(1, subject=subject)
        place = self.place(newest[-1].seq) if newest else None
        return place is None or order_of(place[1]) <= order_of(position)

    def last(self, limit: int, *, subject: str | None = None) -> list[Entry]:
        """The newest events, oldest of them first."""
        from fleet.store import ledger

        return self._engine.read(lambda tx: ledger.last(tx, limit, subject))

    def astray(self) -> list[int]:
        """Events that are not in the chain of their subject, as the rows have it: there are none."""
        from fleet.store import ledger

        return self._engine.read(ledger.astray)

    def chain(self, subject: str) -> list[Entry]:
        """All events of a subject, in order."""
        from fleet.store import ledger

        return self._engine.read(lambda tx: ledger.of_subject(tx, subject))


def order_of(position: str) -> tuple[int, ...]:
    """A position, as something that can be compared."""
    return tuple(int(part) for part in position.split(".")) if position else ()
