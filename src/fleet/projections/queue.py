"""Views of the queue: a line per task, one task in full, what waits for a person."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from fleet.config.settings import Settings
from fleet.errors import FleetError
from fleet.model.receipt import Usage
from fleet.model.session import Progress, Session
from fleet.model.states import IN_PROGRESS, Result, TaskState
from fleet.model.task import KEPT, Task, effective
from fleet.model.terms import Terms
from fleet.store import asks
from fleet.store.reads import Reads

if TYPE_CHECKING:
    from collections.abc import Collection

    from fleet.policy.limits import Used


class ReadyLine(msgspec.Struct, frozen=True, kw_only=True):
    """A task that could start now."""

    id: str
    title: str
    cwd: str | None
    priority: int


class TaskLine(msgspec.Struct, frozen=True, kw_only=True):
    """A task in a table. `*_inherited` says that the value comes from the settings."""

    id: str
    title: str
    state: TaskState
    priority: int
    coder: str
    coder_inherited: bool
    model: str | None
    model_inherited: bool
    cwd: str | None
    reason: str
    started_at: int | None = None
    elapsed_ms: int | None = None
    idle_ms: int | None = None
    peak_context_tokens: int | None = None
    context_window: int | None = None  # of the model; None: not known
    events: int | None = None
    attended: bool | None = None  # by a supervisor that is there; None: no session is at it


class Wanted(msgspec.Struct, frozen=True, kw_only=True):
    """Which tasks are asked for: of a run, with all of these labels, tags and metadata; by age after one of them."""

    run: str | None = None
    labels: dict[str, str] = {}
    tags: frozenset[str] = frozenset()
    metadata: dict[str, str] = {}
    after: str | None = None  # a task, or "" for the beginning
    newest_first: bool = False

    def has(self, task: Task) -> bool:
        """Whether a task is one of them."""
        kept = task.terms.metadata
        return (
            self.labels.items() <= task.labels.items()
            and self.tags.issubset(task.terms.tags)
            and all(name in kept and _plain(kept[name]) == value for name, value in self.metadata.items())
        )


def _plain(value: object) -> str:
    """A value of metadata as a person writes it on a command line."""
    return value if isinstance(value, str) else msgspec.json.encode(value).decode()


class Need(msgspec.Struct, frozen=True):
    """A task that must be completed first, and where it stands."""

    id: str
    state: str


class TaskDetail(TaskLine, frozen=True, kw_only=True):
    """One task in full."""

    description: str
    run: str | None
    host: str | None
    labels: dict[str, str]
    capabilities: tuple[str, ...]
    needs: tuple[Need, ...]
    needed_by: tuple[str, ...]
    created_at: int
    created_by: str
    updated_at: int
    not_before: int | None
    attempts: int  # sessions that worked at it; those that verified it are none
    charged: int  # attempts that count
    max_attempts: int
    restarts: int
    escalated: bool  # raised to a person, and not dealt with yet
    terms: Terms
    usage: Usage  # of all its sessions together
    running_ms: int
    question: str | None
    question_kind: str | None
    receipt: str | None
    verified: bool | None  # whether something checked the pass; None: it has not passed
    edited: dict[str, str | None]  # changed by hand in task.json; taken at the next claim
    edited_error: str | None
    session: str | None = None  # that is at it now
    awaits: str | None = None  # the kind of verdict that it has yet to get
    skipped_for: str | None = None  # the task for whose sake it was skipped


class Question(msgspec.Struct, frozen=True, kw_only=True):
    """What a task waits for a person to say."""

    id: str
    title: str
    kind: str
    text: str
    asked_at: int
    asked_by: str


def ready(reads: Reads, limit: int) -> list[ReadyLine]:
    """What could start now, the most urgent and oldest first."""
    return [
        ReadyLine(id=task.uid, title=task.title, cwd=task.cwd, priority=task.priority)
        for task in reads.ready(limit=limit)
    ]


def lines(
    reads: Reads,
    settings: Settings,
    *,
    states: frozenset[TaskState] | None,
    limit: int,
    now: int,
    wanted: Wanted | None = None,
) -> list[TaskLine]:
    """Tasks in some states (None: in any) that are wanted, with how their sessions fare."""
    if wanted is None:
        found = reads.tasks(states, limit=limit)
    else:
        most = asks.LIMIT if wanted.labels or wanted.tags or wanted.metadata else limit
        every = reads.tasks(states, run=wanted.run, limit=most, newest_first=wanted.newest_first, after=wanted.after)
        found = [task for task in every if wanted.has(task)][:limit]
    attending = reads.attending() if found else []
    return [line(reads, settings, task, now, attending) for task in found]


def line(reads: Reads, settings: Settings, task: Task, now: int, attending: Collection[str]) -> TaskLine:
    """A task, with how its session fares if it has one. `attending` are the supervisors that see to theirs."""
    return TaskLine(**_line(reads, settings, task, now, attending))  # type: ignore[arg-type]


def detail(
    reads: Reads, settings: Settings, task: Task, *, now: int, edited: dict[str, str | None] | FleetError
) -> TaskDetail:
    """One task in full. `edited` is what stands in its task.json that Fleet did not write there."""
    from fleet.policy.ending import allowance_of  # not at the top: the fast commands show no task in full

    used = _used(reads, task, now)
    unmet = dict(reads.unmet(task.uid))
    fields = _line(reads, settings, task, now, reads.attending())
    return TaskDetail(
        **fields,  # type: ignore[arg-type]  # the fields of TaskLine, by name
        description=task.description,
        run=task.run,
        host=task.host,
        labels=task.labels,
        capabilities=task.capabilities,
        needs=tuple(Need(uid, unmet.get(uid, TaskState.COMPLETED.value)) for uid in task.needs),
        needed_by=tuple(uid for uid, kind in reads.dependents(task.uid) if kind == "blocks"),
        created_at=task.created_at,
        created_by=task.created_by,
        updated_at=task.updated_at,
        not_before=task.not_before,
        attempts=used.attempts,
        charged=task.charged,
        max_attempts=allowance_of(task.terms, settings.supervisor).max_attempts,
        restarts=task.restarts,
        escalated=task.escalated,
        terms=task.terms,
        usage=used.usage,
        running_ms=used.running_ms,
        question=task.block.text if task.block else None,
        question_kind=task.block.kind if task.block else None,
        receipt=task.receipt,
        verified=_verified(reads, task),
        edited={} if isinstance(edited, FleetError) else edited,
        edited_error=str(edited) if isinstance(edited, FleetError) else None,
        session=task.session,
        awaits=task.awaits.kind if task.awaits else None,
        skipped_for=task.skipped_for,
    )


def _used(reads: Reads, task: Task, now: int) -> Used:
    """What its sessions used, the one that runs now with what it has used so far."""
    from fleet.policy.limits import Used, used_by

    found = used_by(reads.sessions(task=task.uid))
    if task.session is None:
        return found
    session = reads.session(task.session)
    if session.kind != "work":
        return found
    live = reads.progress(session.id).usage
    return Used(found.usage.plus(live), found.running_ms + session.running_ms(now), found.attempts)


def _verified(reads: Reads, task: Task) -> bool | None:
    """Whether a scorer or a person checked the pass of a task, or its coder's word alone stands for it."""
    if task.result is not Result.PASS:
        return None
    return any(found.id == task.receipt and found.scorer for found in reads.receipts(task=task.uid))


def questions(reads: Reads) -> list[Question]:
    """Every task that waits for a person to say something; not those that a person holds or works on."""
    blocked = reads.tasks(frozenset({TaskState.BLOCKED}))
    return [question for task in blocked if (question := question_of(task))]


def question_of(task: Task) -> Question | None:
    """What a task waits for a person to say, if it does."""
    if task.block is None or task.block.kind in KEPT:
        return None
    return Question(
        id=task.uid,
        title=task.title,
        kind=task.block.kind,
        text=task.block.text,
        asked_at=task.block.at,
        asked_by=task.block.by,
    )


def _line(reads: Reads, settings: Settings, task: Task, now: int, present: Collection[str]) -> dict[str, object]:
    supervisor = settings.supervisor
    chosen = effective(task.coder, task.model, default_coder=supervisor.coder, default_model=supervisor.inherited_model)
    fields: dict[str, object] = {
        "id": task.uid,
        "title": task.title,
        "state": task.state,
        "priority": task.priority,
        "coder": chosen.coder,
        "coder_inherited": chosen.coder_inherited,
        "model": chosen.model,
        "model_inherited": chosen.model_inherited,
        "cwd": task.cwd,
        "reason": task.reason,
    }
    if task.session is not None and task.state in IN_PROGRESS:
        session = reads.session(task.session)
        fields |= _session(settings, session, reads.progress(session.id), now)
        fields["attended"] = session.supervisor in present
    return fields


def _session(settings: Settings, session: Session, progress: Progress, now: int) -> dict[str, object]:
    began = session.started_at or session.claimed_at
    return {
        "coder": session.coder,
        "model": session.model,
        "started_at": began,
        "elapsed_ms": max(0, now - began),
        "idle_ms": max(0, now - (progress.last_output_at or began)),
        "peak_context_tokens": progress.peak_context_tokens,
        "context_window": progress.context_window or _window(settings, session),
        "events": progress.usage.events,
    }


def _window(settings: Settings, session: Session) -> int | None:
    """How many tokens the session's model holds, where its coder knows."""
    options = settings.coders.get(session.coder)
    if options is not None and (options.argv or options.python or options.context_limit):
        return options.context_limit or None
    from fleet.plugins import load  # not at the top: most commands show no session, and start faster without it

    try:
        found: int | None = load("coders", session.coder).context_limit(session.model)
    except FleetError:  # a coder that is not installed any more
        return None
    return found
