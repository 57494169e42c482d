"""The one screen: what is queued, running and done, who failed, and what needs a person."""

from __future__ import annotations

from collections.abc import Collection

import msgspec

from fleet.config.home import Home
from fleet.model.host import is_local
from fleet.model.session import Session
from fleet.model.states import ENDED, TaskState
from fleet.model.task import Task
from fleet.projections.queue import Question, question_of
from fleet.store import feedfile
from fleet.store.feedfile import Feed
from fleet.store.reads import Reads

COUNTED = (
    "queued",
    "running",
    "verifying",
    "blocked",
    "completed",
    "partial",
    "failed",
    "restarted",
    "escalated",
    "interrupted",
    "cancelled",
    "stale",
    "transport_failed",
    "task_failed",
    "verifier_failed",
)
SHOWN = 10
LOOKED_AT = 1000  # of the blocked tasks, so that the cost has a bound


class RunLine(msgspec.Struct, frozen=True, kw_only=True):
    """A run that goes on."""

    id: str
    name: str
    tasks: int
    left: int  # not ended


class Status(msgspec.Struct, frozen=True, kw_only=True):
    """The work, counted. `stale` counts the live sessions that nobody attends, or whose host gives no sign of life."""

    home: str
    counts: dict[str, int]
    total: int
    runs: list[RunLine]  # those that go on, the newest first
    needs_you: list[Question]  # the first of them
    needs_you_count: int
    to_verify: list[Question]  # done, and a person says whether it counts; the newest of them
    gave_up: list[Question]  # failed, and raised to a person; the newest of them
    supervisors: list[str]
    silent: dict[str, int] = {}  # of these, who gives no sign of life, and for how many milliseconds
    queue: Feed | None = None  # how the outside queue answered last, where there is one


def status(reads: Reads, home: Home, run: str | None = None, *, most: int = SHOWN) -> Status:
    """Where everything stands, with so many of what needs a person. Costs the same at any size of the ledger."""
    found = reads.counts(run)
    counts = {name: found.get(name, 0) for name in COUNTED}
    supervisors = [supervisor.id for supervisor in reads.supervisors()]
    silent = reads.silent() if supervisors else {}
    if counts["running"] or counts["verifying"]:
        live = [session for session in reads.sessions(live=True) if run in (None, session.run)]
        attending = reads.attending()
        counts["stale"] = sum(is_stale(reads, session, attending) for session in live)
    blocked = reads.tasks(frozenset({TaskState.BLOCKED}), run=run, limit=LOOKED_AT) if counts["blocked"] else []
    asked = [question for task in blocked if (question := question_of(task))]
    return Status(
        home=str(home.path),
        counts=counts,
        total=sum(counts[state.value] for state in TaskState),
        runs=_runs(reads, run),
        needs_you=asked[:most],
        needs_you_count=len(asked),
        to_verify=_to_verify(reads, run)[:most] if counts["partial"] else [],
        gave_up=_gave_up(reads, run)[:most] if counts["escalated"] and counts["failed"] else [],
        supervisors=supervisors,
        silent=silent,
        queue=feedfile.read(home),
    )


def is_stale(reads: Reads, session: Session, supervisors: Collection[str]) -> bool:
    """Whether nobody attends a session, or its host is silent. One on this machine is heard whenever it is attended."""
    if session.supervisor not in supervisors:
        return True
    return not is_local(session.host) and reads.progress(session.id).stale_since is not None


def _runs(reads: Reads, run: str | None) -> list[RunLine]:
    """The newest of the runs that go on, or the one that is asked about."""
    found = [reads.run(run)] if run else reads.active_runs()
    lines = []
    for each in found[:SHOWN]:
        ended = reads.counts(each.id)
        left = each.tasks - sum(ended.get(state.value, 0) for state in ENDED)
        lines.append(RunLine(id=each.id, name=each.name, tasks=each.tasks, left=left))
    return lines


def _to_verify(reads: Reads, run: str | None) -> list[Question]:
    partial = reads.tasks(frozenset({TaskState.PARTIAL}), run=run, limit=LOOKED_AT, newest_first=True)
    return [needs(task, "verify") for task in partial if task.awaits and task.awaits.by_person]


def _gave_up(reads: Reads, run: str | None) -> list[Question]:
    failed = reads.tasks(frozenset({TaskState.FAILED}), run=run, limit=LOOKED_AT, newest_first=True)
    return [needs(task, "failed") for task in failed if task.escalated]


def needs(task: Task, kind: str) -> Question:
    """A task that needs a person, though it asks nothing."""
    since = task.ended_at or task.updated_at
    return Question(id=task.uid, title=task.title, kind=kind, text=task.reason, asked_at=since, asked_by="")
