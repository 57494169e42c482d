"""Looks at a fleet whose home is here: questions go to the projections."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, BinaryIO

from fleet.config.clock import utc_ms
from fleet.errors import FleetError, NotFound

if TYPE_CHECKING:
    from fleet.config.home import Home
    from fleet.config.settings import Settings
    from fleet.control.landed import Tree
    from fleet.control.landing import Landing
    from fleet.front.following import LocalFollowing
    from fleet.front.views import ConfigView, LogView, RunDetail, RunLive, SupervisorLog, TaskDiff, TaskFile, Used
    from fleet.hosts.pool_worker import PoolWorker
    from fleet.model.event import Entry
    from fleet.model.states import TaskState
    from fleet.model.task import Task
    from fleet.policy.allocation import Member
    from fleet.projections.availability import Availability
    from fleet.projections.board import Board
    from fleet.projections.cost import Cost
    from fleet.projections.feed import Begin
    from fleet.projections.happened import Only
    from fleet.projections.hosts import HostView
    from fleet.projections.inspect import Inspection
    from fleet.projections.logs import LogTail
    from fleet.projections.machines import Machines
    from fleet.projections.pools import PoolWorkerView
    from fleet.projections.queue import Question, ReadyLine, TaskDetail, TaskLine, Wanted
    from fleet.projections.receipts import Checked, Kept, ReceiptView
    from fleet.projections.runs import RunList
    from fleet.projections.status import Status
    from fleet.projections.supervision import Supervision
    from fleet.projections.why import Why
    from fleet.store.engine import Bell
    from fleet.store.reads import Reads


class LocalLooks:
    """What it needs is made when it is first asked for: a look opens nothing for writing."""

    def __init__(
        self,
        home: Home,
        *,
        settings: Callable[[], Settings],
        reads: Callable[[], Reads],
        landing: Callable[[], Landing],
        pool_worker: Callable[[Settings, Member], PoolWorker],
    ) -> None:
        self._home = home
        self._settings = settings
        self._reads = reads
        self._landing = landing
        self._pool_worker = pool_worker

    def counts(self) -> dict[str, int]:
        """How many tasks are in which state."""
        return self._reads().counts()

    def supervisors(self) -> list[str]:
        """Who supervises this home now."""
        return [one.id for one in self._reads().supervisors()]

    def supervision(self) -> Supervision:
        """Who supervises this home, where, and with how many sessions."""
        from fleet.config.home import require
        from fleet.projections.supervision import supervision
        from fleet.supervisor.guard import holders

        here = {one.name: one.pid for one in holders(require(self._home).path)}
        return supervision(self._reads(), here)

    def listen(self) -> Bell:
        """Wakes when something was committed."""
        return self._reads().listen()

    def follow(self, begin: Begin, only: Only) -> LocalFollowing:
        """What happens, from somewhere on."""
        from fleet.front.following import LocalFollowing
        from fleet.projections import feed

        reads = self._reads()
        bell = reads.listen()  # before looking, so that nothing falls between
        try:
            return LocalFollowing(reads, feed.begin(reads, begin, only), only, bell=bell)
        except FleetError:
            bell.close()
            raise

    def config(self) -> ConfigView:
        """The settings in force."""
        import msgspec

        from fleet.config.fields import fields
        from fleet.config.stated import settings_file, stated_keys
        from fleet.front.views import ConfigView

        stated, file = stated_keys(self._home), settings_file(self._home)
        return ConfigView(
            home=str(self._home.path),
            file=str(file) if file else None,
            settings=msgspec.to_builtins(self._settings()),
            defaults=[field.key for field in fields() if field.key not in stated],
        )

    def board(self) -> Board:
        """What somebody who steers looks at."""
        from fleet.hosts.machine import local_host
        from fleet.projections.board import board

        return board(self._reads(), self._settings(), self._home, machine=local_host(), now=utc_ms())

    def status(self, run: str | None = None) -> Status:
        """Where everything stands, or the tasks of one run."""
        from fleet.projections.status import status

        reads = self._reads()
        return status(reads, self._home, reads.find_run(run).id if run else None)

    def ready(self, limit: int) -> list[ReadyLine]:
        """What could start now."""
        from fleet.projections.queue import ready

        return ready(self._reads(), limit)

    def tasks(self, states: frozenset[TaskState] | None, limit: int, wanted: Wanted | None = None) -> list[TaskLine]:
        """Tasks in some states (None: in any) that are wanted."""
        from fleet.projections.queue import lines

        reads = self._reads()
        if wanted is not None:
            from msgspec.structs import replace

            run = reads.find_run(wanted.run).id if wanted.run is not None else None
            wanted = replace(wanted, run=run, after=reads.find(wanted.after).uid if wanted.after else wanted.after)
        return lines(reads, self._settings(), states=states, limit=limit, now=utc_ms(), wanted=wanted)

    def task(self, word: str) -> TaskDetail:
        """One task in full."""
        reads = self._reads()
        return self._detail(reads, reads.find(word))

    def issue(self, word: str) -> dict[str, Any]:
        """A task as `bd show` has it, with the task in full."""
        from fleet.projections.beads import show_envelope
        from fleet.projections.whole import whole

        reads = self._reads()
        task = reads.find(word)
        made = show_envelope(task, reads)
        made["data"][0]["fleet"] = whole(self._detail(reads, task))
        return made

    def inspect(self, word: str) -> Inspection:
        """A worker at its task; a task or a session is taken too."""
        from fleet.projections.inspect import inspect

        return inspect(self._reads(), word)

    def logs(self, word: str, most: int) -> LogTail:
        """The newest records of what the agent of a task or a session said."""
        from fleet.projections.logs import log_tail

        return log_tail(self._reads(), self._home, word, most)

    def log_view(self, word: str) -> LogView:
        """Where the log of a task, or of one of its sessions, is."""
        from fleet.front.logs import log_view

        return log_view(self._home, self.uid_of, word)

    def open_log(self, view: LogView) -> BinaryIO:
        """The bytes of a log. FileNotFoundError while there are none."""
        return (self._home.task_dir(view.task) / "log.jsonl").open("rb")

    def file(self, word: str, what: str, most: int | None = None) -> TaskFile:
        """What the agent of a task wrote of it (plan, knowledge, qa), or its program complained about (stderr)."""
        from fleet.front.logs import task_file

        return task_file(self._home, self.log_view(word).task, what, most)

    def diff(self, word: str) -> TaskDiff:
        """What a task changed in its own worktree, on whatever machine that is. What is no text is shown as escapes."""
        from fleet.front.views import TaskDiff

        said = self._landing().diff(word).encode("utf-8", "surrogateescape")
        return TaskDiff(task=self._reads().find(word).uid, diff=said.decode("utf-8", "backslashreplace"))

    def worktrees(self, host: str) -> list[Tree]:
        """The worktrees of tasks, on this machine or on another host."""
        return self._landing().standing(host)

    def history(self, word: str) -> list[Entry]:
        """All events of a task, in order."""
        reads = self._reads()
        return reads.chain(reads.find(word).uid)

    def everything(self) -> Iterator[Entry]:
        """The whole ledger, in order."""
        from fleet.projections.verify import everything

        return everything(self._reads())

    def newest(self, limit: int, task: str | None = None) -> list[Entry]:
        """The newest events, or those of a task; oldest of them first."""
        reads = self._reads()
        return reads.last(limit, subject=reads.find(task).uid if task else None)

    def used(self, task: str, session: str | None) -> Used | None:
        """What the last session of a task has used, or the one that is named; None: there is none."""
        from fleet.front.views import Used

        reads = self._reads()
        found = [each for each in reads.sessions(task=task) if session in (None, each.id)]
        if not found:
            return None
        progress = reads.progress(found[-1].id)
        peak = progress.peak_context_tokens
        return Used(session=found[-1].id, usage=progress.usage, peak_context_tokens=peak)

    def supervisor_log(self, lines: int | None) -> SupervisorLog:
        """The supervisor's own log, whole or its last lines."""
        from fleet.front.logs import supervisor_log

        return supervisor_log(self._home, lines)

    def uid_of(self, word: str) -> str:
        """The task that a word stands for, whoever keeps the queue."""
        settings = self._settings()
        if settings.queue.source != "beads":
            return self._reads().find(word).uid
        for candidate in (word, f"{settings.queue.prefix}-{word}"):
            if self._home.task_dir(candidate).is_dir():
                return candidate
        raise NotFound(f"no task `{word}` has files in {self._home.tasks}", hint="`fleet bd list` shows the ids")

    def artifacts(self, word: str) -> list[Kept]:
        """What a task left, by reference."""
        from fleet.projections.receipts import artifacts

        reads = self._reads()
        return artifacts(reads, reads.find(word), self._home.artifacts)

    def content(self, word: str, kept: Kept) -> bytes:  # noqa: ARG002  # elsewhere it is asked for by its task
        """The bytes of an artifact."""
        from pathlib import Path

        if kept.kept_at is None:
            raise NotFound(f"the content of {kept.path} is gone: {kept.sha256} is not in the home")
        return Path(kept.kept_at).read_bytes()

    def check(self, words: Sequence[str]) -> list[Checked]:
        """Whether receipts still hold: those of these ids, or all."""
        from fleet.projections.receipts import check, find_receipts

        reads = self._reads()
        return check(reads, find_receipts(reads, words), self._home.artifacts)

    def hosts(self) -> list[HostView]:
        """The machines that sessions run on."""
        from fleet.hosts.machine import local_host
        from fleet.projections.hosts import hosts

        return hosts(self._reads(), self._settings(), machine=local_host())

    def machines(self) -> Machines:
        """The declared machines, by their last probes."""
        from fleet.projections.machines import recalled

        return recalled(self._settings().hosts, self._reads())

    def availability(self, since: int) -> dict[str, Availability]:
        """How the declared machines have answered since then, by name."""
        from fleet.projections.availability import availability

        totals = self._reads().probe_totals(since=since)
        names = [host.name for host in self._settings().hosts]
        return {name: availability([totals[name]] if name in totals else [], since) for name in names}

    def cost(self, since: int, by: str, days: tuple[str, ...] = ()) -> Cost:
        """What was spent since a moment."""
        from fleet.projections.cost import Spending

        return Spending(since, by, days).cost(self._reads(), utc_ms())

    def pool_workers(self, pool: str | None, worker: str | None = None) -> list[PoolWorkerView]:
        """What the workers of a pool do, or of all; or one of them. Their machines are asked, and none is woken."""
        import asyncio

        from fleet.policy.allocation import member_named
        from fleet.projections.pools import look, wanted

        settings = self._settings()
        asked = [member_named(settings, worker)] if worker else wanted(settings, pool)
        live, seconds = self._reads().sessions(live=True), float(settings.timeouts.health_probe)
        return asyncio.run(
            look(asked, lambda member: self._pool_worker(settings, member), live, settings, seconds=seconds)
        )

    def receipts(self, task: str | None = None, run: str | None = None) -> list[ReceiptView]:
        """The verdicts on a task, on the tasks of a run, or all; oldest first."""
        from fleet.projections.receipts import receipts

        reads = self._reads()
        found = reads.find(task) if task else None
        run_id = reads.find_run(run).id if run else None
        made = receipts(reads, task=found, run=run_id)
        return [one for one in made if one.run == run_id] if found and run_id else made

    def questions(self) -> list[Question]:
        """What agents ask of a person."""
        from fleet.projections.queue import questions

        return questions(self._reads())

    def why(self, word: str) -> Why:
        """Why a task is where it is, and what may be done."""
        from fleet.projections.why import why

        reads = self._reads()
        task, dot, number = word.rpartition(".")  # of a session that is long over, too
        if dot and number.partition("_")[0].isdecimal() and not reads.tasks_by_uid([word]):
            word = task
        return why(reads, self._settings(), reads.find(word), now=utc_ms())

    def runs(self, limit: int) -> RunList:
        """The newest runs, also those that have ended."""
        from fleet.projections.runs import newest

        return newest(self._reads(), limit)

    def run(self, word: str, limit: int | None = None) -> RunDetail:
        """A run, and what came of its tasks, or of the first of them; 0: the run alone, which costs little."""
        from fleet.front.views import RunDetail
        from fleet.projections.runs import results, run_view

        reads = self._reads()
        view = run_view(reads, reads.find_run(word).id)
        found = [] if limit == 0 else results(reads, view.id, limit=limit)
        return RunDetail(run=view, tasks=found, exit_code=view.exit_code)

    def live(self, word: str) -> RunLive:
        """A run, and what is in progress in it."""
        from fleet.front.views import RunLive
        from fleet.projections.runs import live, run_view

        reads = self._reads()
        run_id = reads.find_run(word).id
        return RunLive(run=run_view(reads, run_id), live=live(reads, run_id, utc_ms()))

    def _detail(self, reads: Reads, task: Task) -> TaskDetail:
        from fleet.projections import queue
        from fleet.store import taskfile

        try:
            edited: dict[str, str | None] | FleetError = taskfile.edits(self._home, task)
        except FleetError as exc:
            edited = exc
        return queue.detail(reads, self._settings(), task, now=utc_ms(), edited=edited)
