"""Looks at a fleet that is served elsewhere: each question is a request to its API."""

from __future__ import annotations

import io
import time
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any, BinaryIO, cast

import msgspec

from fleet.errors import NotFound, UsageError
from fleet.front.client import READ_SECONDS, SILENCE_SECONDS, Client
from fleet.front.remote_log import PIECE, RemoteBytes
from fleet.front.stream import Line, Stream, entry_of
from fleet.front.views import ConfigView, LogView, RunDetail, RunLive, SupervisorLog, TaskDiff, TaskFile, Used
from fleet.projections.availability import Availability
from fleet.projections.board import Board
from fleet.projections.hosts import HostView
from fleet.projections.inspect import Inspection
from fleet.projections.logs import LogTail
from fleet.projections.machines import Machines
from fleet.projections.queue import Question, ReadyLine, TaskDetail, TaskLine, Wanted
from fleet.projections.receipts import Checked, Kept, ReceiptView
from fleet.projections.runs import RunList
from fleet.projections.status import Status
from fleet.projections.supervision import Supervision
from fleet.projections.why import Why

if TYPE_CHECKING:
    from fleet.control.landed import Tree
    from fleet.model.event import Entry
    from fleet.model.states import TaskState
    from fleet.projections.cost import Cost
    from fleet.projections.feed import Begin
    from fleet.projections.happened import Only
    from fleet.projections.pools import PoolWorkerView

POLL_SECONDS = 0.5  # between two looks: a server elsewhere rings no bell here
MOST = 1000  # that the API gives of a list at once
MOST_RESULTS = 100_000  # and of the tasks of a run


class RemoteLooks:
    """By what stands in the API alone; what it answers is what it would be here."""

    def __init__(self, client: Client) -> None:
        self._client = client

    def close(self) -> None:
        """Let go of the connection."""
        self._client.close()

    @property
    def url(self) -> str:
        """Where it is served."""
        return self._client.url

    def counts(self) -> dict[str, int]:
        """How many tasks are in which state."""
        return self.status().counts

    def supervisors(self) -> list[str]:
        """Who supervises that home now."""
        return self.status().supervisors

    def supervision(self) -> Supervision:
        """Who supervises that home, where, and with how many sessions."""
        return self._client.get(Supervision, "supervisors")

    def listen(self) -> Pause:
        """Nothing rings here; it is looked again after a while. Who stays hears soon of a server that is frozen."""
        return Pause(self._client)

    def follow(self, begin: Begin, only: Only) -> Stream:
        """What happens, from somewhere on."""
        if begin.newest is not None:
            _bounded(begin.newest)
        return Stream(self._client, begin, only)

    def config(self) -> ConfigView:
        """The settings in force, for an admin."""
        return self._client.get(ConfigView, "config")

    def board(self) -> Board:
        """What somebody who steers looks at."""
        return self._client.get(Board, "board")

    def status(self, run: str | None = None) -> Status:
        """Where everything stands, or the tasks of one run."""
        return self._client.get(Status, "status", run=run)

    def ready(self, limit: int) -> list[ReadyLine]:
        """What could start now."""
        return self._client.get(list[ReadyLine], "ready", limit=_bounded(limit))

    def tasks(self, states: frozenset[TaskState] | None, limit: int, wanted: Wanted | None = None) -> list[TaskLine]:
        """Tasks in some states (None: in any) that are wanted."""
        wanted = wanted or Wanted()
        return self._client.get(
            list[TaskLine],
            "tasks",
            limit=_bounded(limit),
            status=sorted(states) if states else None,
            run=wanted.run,
            tag=sorted(wanted.tags) or None,
            label=_pairs(wanted.labels),
            meta=_pairs(wanted.metadata),
            after=wanted.after,
            newest=wanted.newest_first or None,
        )

    def task(self, word: str) -> TaskDetail:
        """One task in full."""
        return self._client.get(TaskDetail, "tasks", word)

    def issue(self, word: str) -> dict[str, Any]:
        """A task as `bd show` has it, with the task in full."""
        return self._client.get(dict[str, Any], "tasks", word, "issue")

    def inspect(self, word: str) -> Inspection:
        """A worker at its task; a task or a session is taken too."""
        return self._client.get(Inspection, "workers", word)

    def logs(self, word: str, most: int) -> LogTail:
        """The newest records of what the agent of a task or a session said."""
        return self._client.get(LogTail, "tasks", word, "logs", lines=most)

    def log_view(self, word: str) -> LogView:
        """Where the log of a task, or of one of its sessions, is."""
        return self._client.get(LogView, "tasks", word, "log")

    def open_log(self, view: LogView) -> BinaryIO:
        """The bytes of a log. FileNotFoundError while there are none."""
        size = self.log_view(view.task).size
        if size is None:
            raise FileNotFoundError(view.file)
        return cast("BinaryIO", io.BufferedReader(RemoteBytes(self._client, view.task, size), PIECE))

    def file(self, word: str, what: str, most: int | None = None) -> TaskFile:
        """What the agent of a task wrote of it (plan, knowledge, qa), or its program complained about (stderr)."""
        return self._client.get(TaskFile, "tasks", word, "files", what, limit=most)

    def diff(self, word: str) -> TaskDiff:
        """What a task changed in its own worktree."""
        return self._client.get(TaskDiff, "tasks", word, "diff")

    def worktrees(self, host: str) -> list[Tree]:
        """The worktrees of tasks, on the machine of that home or on another host."""
        from fleet.control.landed import Tree  # here, as it brings with it all that a look at a machine needs

        return self._client.get(list[Tree], "worktrees", host=host or None)

    def history(self, word: str) -> list[Entry]:
        """All events of a task, in order."""
        return self._entries("tasks", word, "events")

    def everything(self) -> Iterator[Entry]:
        """The whole ledger, in order, piece by piece."""
        after = None
        while (piece := self._client.get(_Piece, "events", "replay", after=after, limit=MOST)).events:
            after = piece.next
            yield from (self._client.made(line, entry_of) for line in piece.events)

    def newest(self, limit: int, task: str | None = None) -> list[Entry]:
        """The newest events, or those of a task; oldest of them first."""
        return self._entries("events", "newest", limit=_bounded(limit), task=task)

    def used(self, task: str, session: str | None) -> Used | None:
        """What the last session of a task has used, or the one that is named; None: there is none."""
        return self._client.get(Used | None, "tasks", task, "used", session=session)  # type: ignore[arg-type]

    def supervisor_log(self, lines: int | None) -> SupervisorLog:
        """The supervisor's own log, whole or its last lines."""
        return self._client.get(SupervisorLog, "log", lines=lines)

    def artifacts(self, word: str) -> list[Kept]:
        """What a task left, by reference."""
        return self._client.get(list[Kept], "tasks", word, "artifacts")

    def content(self, word: str, kept: Kept) -> bytes:
        """The bytes of an artifact."""
        if kept.kept_at is None:
            raise NotFound(f"the content of {kept.path} is gone: {kept.sha256} is not in the home")
        return self._client.bytes_of("tasks", word, "artifacts", kept.sha256)

    def check(self, words: Sequence[str]) -> list[Checked]:
        """Whether receipts still hold: those of these ids, or all."""
        return self._client.get(list[Checked], "receipts", "check", id=list(words) or None)

    def receipts(self, task: str | None = None, run: str | None = None) -> list[ReceiptView]:
        """The verdicts on a task, on the tasks of a run, or all; oldest first."""
        return self._client.get(list[ReceiptView], "receipts", task=task, run=run)

    def questions(self) -> list[Question]:
        """What agents ask of a person."""
        return self._client.get(list[Question], "questions")

    def why(self, word: str) -> Why:
        """Why a task is where it is, and what may be done."""
        return self._client.get(Why, "tasks", word, "why")

    def runs(self, limit: int) -> RunList:
        """The newest runs, also those that have ended."""
        return self._client.get(RunList, "runs", limit=_bounded(limit))

    def run(self, word: str, limit: int | None = None) -> RunDetail:
        """A run, and what came of its tasks, or of the first of them."""
        return self._client.get(RunDetail, "runs", word, limit=MOST_RESULTS if limit is None else limit)

    def live(self, word: str) -> RunLive:
        """A run, and what is in progress in it."""
        return self._client.get(RunLive, "runs", word, "live")

    def hosts(self) -> list[HostView]:
        """The machines that sessions run on."""
        return self._client.get(list[HostView], "hosts")

    def machines(self) -> Machines:
        """The declared machines, by their last probes."""
        return self._client.get(Machines, "machines")

    def availability(self, since: int) -> dict[str, Availability]:
        """How the declared machines have answered since then, by name."""
        return self._client.get(dict[str, Availability], "machines", "availability", since=since)

    def cost(self, since: int, by: str, days: tuple[str, ...] = ()) -> Cost:
        """What was spent since a moment; days begin here."""
        from fleet.projections.cost import Cost  # here, for the same reason

        return self._client.get(Cost, "cost", since=since, by=by, day=list(days) or None)

    def pool_workers(self, pool: str | None, worker: str | None = None) -> list[PoolWorkerView]:
        """What the workers of a pool do, or of all; or one of them."""
        from fleet.projections.pools import PoolWorkerView  # here, for the same reason

        return self._client.get(list[PoolWorkerView], "pools", "workers", pool=pool, worker=worker)

    def _entries(self, *path: str, **query: Any) -> list[Entry]:
        lines = self._client.get(list[Line], *path, **query)
        return [self._client.made(line, entry_of) for line in lines]


class _Piece(msgspec.Struct, frozen=True):
    """A piece of the ledger, and the position to ask for the following one with."""

    events: list[Line]
    next: str


class Pause:
    """A wait for something that cannot be heard: a while. What is asked meanwhile is answered soon, or not at all."""

    def __init__(self, client: Client) -> None:
        self._client = client
        client.expect(SILENCE_SECONDS)

    def wait(self, timeout: float) -> bool:
        """Always after a while, or at its end."""
        time.sleep(min(timeout, POLL_SECONDS))
        return False

    def close(self) -> None:
        """What is asked from here on may take its time."""
        self._client.expect(READ_SECONDS)


def _bounded(limit: int) -> int:
    if limit > MOST + 1:  # a list asks for one more than it shows
        raise UsageError(f"a fleet that is served elsewhere gives at most {MOST} at once")
    return min(limit, MOST)


def _pairs(pairs: dict[str, str]) -> list[str] | None:
    return [f"{name}={value}" for name, value in pairs.items()] or None
