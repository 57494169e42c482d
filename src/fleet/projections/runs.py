"""Views of a run: how it stands, what runs in it now, and what came of each of its tasks."""

from __future__ import annotations

import msgspec

from fleet.model.receipt import Receipt
from fleet.model.states import IN_PROGRESS, Result, RunState, Source, TaskState
from fleet.model.task import Task
from fleet.policy.limits import used_by
from fleet.projections.status import COUNTED
from fleet.store.asks import LIMIT
from fleet.store.reads import Reads

PASSED, FAILED, NOT_FINISHED = 0, 1, 3  # exit codes


class RunView(msgspec.Struct, frozen=True, kw_only=True):
    """A run as it stands. `over` says that nothing of it goes on by itself: it ended, or waits for a person."""

    id: str
    name: str
    state: RunState
    labels: dict[str, str]
    max_workers: int | None
    created_at: int
    ended_at: int | None
    tasks: int
    counts: dict[str, int]
    over: bool

    @property
    def left(self) -> int:
        """How many of its tasks have not ended."""
        return self.tasks - sum(self.counts[name] for name in ("completed", "failed", "cancelled"))

    @property
    def exit_code(self) -> int:
        """Whether all passed, something failed, or something is not finished."""
        if self.counts["failed"] or self.counts["cancelled"]:
            return FAILED
        return NOT_FINISHED if self.left else PASSED


class RunList(msgspec.Struct, frozen=True, kw_only=True):
    """Runs, the newest first, and the counts of all tasks."""

    counts: dict[str, int]
    runs: list[RunView]


class Live(msgspec.Struct, frozen=True, kw_only=True):
    """A task of a run that is in progress."""

    id: str  # as its spec names it
    task: str
    state: TaskState
    worker: str
    coder: str
    model: str | None
    elapsed_ms: int
    idle_ms: int
    tokens: int
    cost_microusd: int


class TaskResult(msgspec.Struct, frozen=True, kw_only=True):
    """What came of a task. Tokens, cost and duration are those of all its attempts."""

    id: str  # as its spec names it
    task: str
    title: str
    state: TaskState
    result: Result | None
    source: Source | None
    reason: str
    scorer: str | None  # None: nothing checked it
    duration_ms: int
    tokens: int
    cost_microusd: int
    attempts: int  # sessions that worked at it; those that verified it are none


def run_view(reads: Reads, run_id: str) -> RunView:
    """How a run stands. Costs the same however many tasks it has."""
    run = reads.run(run_id)
    found = reads.counts(run_id)
    return RunView(
        id=run.id,
        name=run.name,
        state=run.state,
        labels=run.labels,
        max_workers=run.max_workers,
        created_at=run.created_at,
        ended_at=run.ended_at,
        tasks=run.tasks,
        counts={name: found.get(name, 0) for name in COUNTED},
        over=run.state is not RunState.ACTIVE or not reads.moving(run_id),
    )


def newest(reads: Reads, limit: int) -> RunList:
    """The newest runs, also those that have ended."""
    counts = reads.counts()
    found = [run_view(reads, run.id) for run in reads.runs(limit=limit)]
    return RunList(counts={name: counts.get(name, 0) for name in COUNTED}, runs=found)


def live(reads: Reads, run_id: str, now: int) -> list[Live]:
    """What is in progress in a run, the longest first."""
    found = []
    for task in reads.tasks(IN_PROGRESS, run=run_id):
        if task.session is None:
            continue
        session, progress = reads.session(task.session), reads.progress(task.session)
        began = session.started_at or session.claimed_at
        usage = progress.usage
        found.append(
            Live(
                id=task.task_id,
                task=task.uid,
                state=task.state,
                worker=session.worker,
                coder=session.coder,
                model=session.model,
                elapsed_ms=max(0, now - began),
                idle_ms=max(0, now - (progress.last_output_at or began)),
                tokens=usage.input_tokens + usage.output_tokens,
                cost_microusd=usage.cost_microusd,
            )
        )
    return sorted(found, key=lambda each: -each.elapsed_ms)


def results(reads: Reads, run_id: str, *, limit: int | None = None) -> list[TaskResult]:
    """What came of every task of a run, or of the first of them, in the order of its spec."""
    of_task: dict[str, list[Receipt]] = {}
    for receipt in reads.receipts(run=run_id):
        of_task.setdefault(receipt.task, []).append(receipt)
    return [_result(reads, task, of_task.get(task.uid, [])) for task in reads.tasks(run=run_id, limit=limit or LIMIT)]


def _result(reads: Reads, task: Task, receipts: list[Receipt]) -> TaskResult:
    used = used_by(reads.sessions(task=task.uid))  # of every attempt, also of those that left no receipt
    last = receipts[-1] if receipts else None
    return TaskResult(
        id=task.task_id,
        task=task.uid,
        title=task.title,
        state=task.state,
        result=task.result,
        source=task.source,
        reason=task.reason,
        scorer=last.scorer if last else None,
        duration_ms=used.running_ms,
        tokens=used.usage.tokens,
        cost_microusd=used.usage.cost_microusd,
        attempts=used.attempts,
    )
