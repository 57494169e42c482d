"""The board: everything that somebody who steers a fleet looks at, in one view: what needs them comes first."""

from __future__ import annotations

import msgspec

from fleet.config.home import Home
from fleet.config.settings import Settings
from fleet.model.receipt import Usage
from fleet.model.session import Session
from fleet.model.states import IN_PROGRESS, TaskState
from fleet.model.task import ASKED, Task
from fleet.projections.hosts import HostView, hosts
from fleet.projections.queue import Question, TaskLine, line
from fleet.projections.status import is_stale, needs, status
from fleet.store.reads import Reads

MOST = 200  # rows of a kind
LATELY_MS = 24 * 3600 * 1000


class Running(TaskLine, frozen=True, kw_only=True):
    """A task that a session works on."""

    session: str
    worker: str
    host: str
    tokens: int
    cost_microusd: int
    stale: bool  # nobody attends it, or its host gives no sign of life


class Waiting(msgspec.Struct, frozen=True, kw_only=True):
    """A queued task, and what it waits for; nothing: for a slot."""

    id: str
    title: str
    priority: int
    coder: str
    needs: int  # tasks that must be completed first and are not
    not_before: int | None


class Board(msgspec.Struct, frozen=True, kw_only=True):
    """Needs you, running, queued, hosts. Lists are bounded; `counts` are not."""

    home: str
    at: int
    counts: dict[str, int]
    needs_you: list[Question]
    running: list[Running]
    queued: list[Waiting]
    hosts: list[HostView]
    supervisors: list[str]
    silent: dict[str, int] = {}  # of these, who gives no sign of life, and for how many milliseconds


def board(reads: Reads, settings: Settings, home: Home, *, machine: str, now: int) -> Board:
    """Where everything stands. Its cost grows with what is in progress, not with the ledger."""
    found = status(reads, home, most=MOST)
    running = _running(reads, settings, reads.attending(), now)
    blocked = sorted(found.needs_you, key=lambda each: each.kind not in ASKED)  # in each part the oldest first
    stale = [_stale(reads, each) for each in running if each.stale]
    raised = {each.id for each in found.gave_up}
    return Board(
        home=found.home,
        at=now,
        counts=found.counts,
        needs_you=[*blocked, *found.gave_up, *_failed(reads, raised, now), *found.to_verify, *stale],
        running=running,
        queued=[_waiting(reads, settings, task) for task in reads.tasks(frozenset({TaskState.QUEUED}), limit=MOST)],
        hosts=hosts(reads, settings, machine=machine),
        supervisors=found.supervisors,
        silent=found.silent,
    )


def _failed(reads: Reads, raised: set[str], now: int) -> list[Question]:
    """What has failed of late and was not raised to a person: nobody would hear of it otherwise."""
    failed = reads.tasks(frozenset({TaskState.FAILED}), limit=MOST, newest_first=True)
    return [needs(task, "failed") for task in failed if task.uid not in raised and now - task.updated_at < LATELY_MS]


def _running(reads: Reads, settings: Settings, attending: list[str], now: int) -> list[Running]:
    """The longest first."""
    tasks = [task for task in reads.tasks(IN_PROGRESS, limit=MOST) if task.session]
    found = []
    for task in tasks:
        session = reads.session(str(task.session))
        stale = is_stale(reads, session, attending)
        shown = line(reads, settings, task, now, attending)
        found.append(_run(shown, session, reads.progress(session.id).usage, stale=stale))
    return sorted(found, key=lambda each: each.started_at or 0)


def _run(shown: TaskLine, session: Session, usage: Usage, *, stale: bool) -> Running:
    return Running(
        **msgspec.structs.asdict(shown),
        session=session.id,
        worker=session.worker,
        host=session.host,
        tokens=usage.input_tokens + usage.output_tokens,
        cost_microusd=usage.cost_microusd,
        stale=stale,
    )


def _stale(reads: Reads, each: Running) -> Question:
    since = reads.progress(each.session).last_output_at or each.started_at or 0
    text = "no supervisor attends it, or its host does not answer"
    return Question(id=each.id, title=each.title, kind="stale", text=text, asked_at=since, asked_by="")


def _waiting(reads: Reads, settings: Settings, task: Task) -> Waiting:
    return Waiting(
        id=task.uid,
        title=task.title,
        priority=task.priority,
        coder=task.coder or settings.supervisor.coder,
        needs=len(reads.unmet(task.uid)) if task.needs else 0,
        not_before=task.not_before,
    )
