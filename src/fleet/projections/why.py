"""Why a task is where it is: read from the ledger, with what is evidence for it and what may be done."""

from __future__ import annotations

import msgspec

from fleet.config.settings import Settings
from fleet.model import event as ev
from fleet.model.outcome import REMEDIES, UNKNOWN_RESET, OutcomeKind
from fleet.model.scorer import BY_SESSION, kind_of, leaves, scorer_of
from fleet.model.session import Session, pool_of
from fleet.model.states import ENDED, IN_PROGRESS, Result, Source, TaskState
from fleet.model.task import KEPT, Task
from fleet.policy.ending import allowance_of
from fleet.policy.limits import limits_of, used_by, used_up
from fleet.policy.placement import Withheld, crews_of, crews_of_pools, crews_of_run, refusals
from fleet.policy.restarting import raise_command
from fleet.policy.triage import classify, restart_command
from fleet.projections.queue import Need
from fleet.store.reads import Reads

K = OutcomeKind
UNSTARTED = "see to what it says, then run it again"  # it is not tried again by itself any more
GIVEN_UP = "no attempt is left: run it again once what ailed it is over"
MOVING = (
    ev.TaskSubmitted,
    ev.TaskClaimed,
    ev.TaskSettled,
    ev.TaskUnsettled,
    ev.TaskRequeued,
    ev.TaskBlocked,
    ev.TaskAnswered,
)


class Evidence(msgspec.Struct, frozen=True, kw_only=True):
    """The event that brought the task where it is."""

    seq: int
    kind: str
    at: int
    by: str
    reason: str


class LastOutcome(msgspec.Struct, frozen=True, kw_only=True):
    """How the last session that ended came to its end, and what a person can do about that."""

    session: str
    outcome: str
    at: int | None
    remedy: str


class Why(msgspec.Struct, frozen=True, kw_only=True):
    """The answer."""

    id: str
    title: str
    state: TaskState
    since: int
    summary: str  # one sentence
    evidence: Evidence
    classification: str | None  # transient, task, verifier, needs-human; None: nothing is wrong
    action: str  # what may be done now; a command, or a reason to wait
    waits_for: tuple[Need, ...]
    workers: tuple[Withheld, ...]  # of a task that could begin: why none of them takes it now
    asked: tuple[str, ...]  # what a person asked for and no supervisor has carried out yet
    attempts_used: int
    attempts_left: int
    retry_safe: bool
    sessions: int
    next_at: int | None
    paused_coder: str | None
    last: LastOutcome | None


def why(reads: Reads, settings: Settings, task: Task, *, now: int) -> Why:
    """Why this task is where it is."""
    sessions = reads.sessions(task=task.uid)
    last = _last(task, sessions)
    allowance = allowance_of(task.terms, settings.supervisor)
    again = _again(task, sessions, settings, restart_command(task, allowance))
    next_at = task.not_before if task.not_before and task.not_before > now else None
    limited = last is not None and last.outcome == K.PLAN_LIMIT and next_at is not None
    waits = tuple(Need(uid, state) for uid, state in reads.unmet(task.uid))
    present = {supervisor.id for supervisor in reads.supervisors()}
    supervised = bool(present)
    holder = reads.session(task.session).supervisor if task.session is not None else None
    orphaned = holder is not None and holder not in present
    entry = _evidence(reads, task)
    begins = task.state is TaskState.QUEUED and not waits and next_at is None and supervised
    workers = _withheld(reads, settings, task) if begins else ()
    still = _stands_still(reads.silent(), present if begins else {holder} if holder else set())
    return Why(
        id=task.uid,
        title=task.title,
        state=task.state,
        since=entry.at,
        summary=still
        or _summary(task, waits, next_at, workers, limited=limited, supervised=supervised, orphaned=orphaned),
        evidence=entry,
        classification=classify(task, last.outcome if last else None, orphaned=orphaned),
        action=(still and "fleet doctor")
        or _no_worker(workers)
        or _action(task, waits, next_at, last, again, supervised=supervised),
        waits_for=waits if task.state is TaskState.QUEUED else (),
        workers=workers,
        asked=tuple(f"{intent.verb} by {intent.by}" for intent in reads.intents() if intent.target == task.uid),
        attempts_used=task.charged,
        attempts_left=max(0, allowance.max_attempts - task.charged),
        retry_safe=task.terms.retry_safe,
        sessions=len(sessions),
        next_at=next_at,
        paused_coder=sessions[-1].coder if limited else None,
        last=last,
    )


def _withheld(reads: Reads, settings: Settings, task: Task) -> tuple[Withheld, ...]:
    """Why no worker takes a task that could begin, as far as the ledger tells; empty: one may at any moment."""
    run = reads.run(task.run) if task.run else None
    brought = run.workers if run is not None else ()
    if any(each.is_here for each in brought):
        return ()  # who of them is free is known only in the moment of the claim
    crews = (*crews_of(settings), *(crews_of_run(run, settings) if run is not None else ()))
    pool = pool_of(task.capabilities)
    if pool is not None:
        crews = tuple(crew for crew in crews_of_pools(settings) if crew.pool == pool)
    hosts = {host.name: host for host in reads.hosts()}
    return refusals(
        task,
        crews,
        hosts,
        reads.sessions(live=True),
        room_here=0 if brought or pool is not None else settings.supervisor.max_concurrent,
    )


def _no_worker(workers: tuple[Withheld, ...]) -> str:
    """What may be done where none can take it, however long it waits."""
    return "" if not workers or any(each.full for each in workers) else "look at the workers: fleet hosts"


def _evidence(reads: Reads, task: Task) -> Evidence:
    entry = next(entry for entry in reversed(reads.chain(task.uid)) if isinstance(entry.event, MOVING))
    event = entry.event
    return Evidence(seq=entry.seq, kind=ev.kind_of(event), at=event.at, by=event.by, reason=task.reason)


def _last(task: Task, sessions: list[Session]) -> LastOutcome | None:
    ended = [session for session in sessions if session.outcome is not None]
    if not ended:
        return None
    session = ended[-1]
    return LastOutcome(
        session=session.id,
        outcome=str(session.outcome),
        at=session.ended_at,
        remedy=_remedy(str(session.outcome), task).replace("ID", task.uid),
    )


def _remedy(outcome: str, task: Task) -> str:
    if outcome not in list(K):
        return ""
    if outcome == K.PLAN_LIMIT and task.not_before is None:
        return UNKNOWN_RESET
    if outcome == K.TRANSIENT and task.state is TaskState.BLOCKED:
        return UNSTARTED
    if REMEDIES[K(outcome)].startswith("wait: ") and task.state in ENDED:
        return GIVEN_UP
    return REMEDIES[K(outcome)]


def _stands_still(silent: dict[str, int], needed: set[str]) -> str:
    """What is wrong where all that could see to it live and do nothing; empty where nothing is."""
    if not needed or not needed <= silent.keys():
        return ""
    names = ", ".join(sorted(needed))
    return f"supervisor {names} ought to see to it and gives no sign of life; an agent that runs goes on"


def _summary(
    task: Task,
    waits: tuple[Need, ...],
    next_at: int | None,
    workers: tuple[Withheld, ...],
    *,
    limited: bool,
    supervised: bool,
    orphaned: bool,
) -> str:
    match task.state:
        case TaskState.QUEUED if waits:
            return "it waits for " + ", ".join(f"{need.id} ({need.state})" for need in waits)
        case TaskState.QUEUED if limited:
            return "its coder's plan limit is used up; it goes on by itself after the reset"
        case TaskState.QUEUED if next_at:
            return f"it is tried again by itself: {task.reason}"
        case TaskState.QUEUED if workers and not any(each.full for each in workers):
            return "no worker fits: " + "; ".join(f"{each.worker}: {each.reason}" for each in workers)
        case TaskState.QUEUED:
            return "it waits for a free slot" if supervised else "it is ready, and no supervisor is running"
        case TaskState.BLOCKED if task.block and task.block.kind in KEPT:
            return f"it is {task.block.kind} by {task.block.by}" + (f": {task.block.text}" if task.block.text else "")
        case TaskState.BLOCKED if task.block:
            return f"it waits for a person ({task.block.kind}): {task.block.text}"
        case state if state in IN_PROGRESS and orphaned:
            return "its supervisor is gone; its agent may run on, and the next supervisor takes it over"
        case state if state in IN_PROGRESS:
            return task.reason or "a session is at work"
        case TaskState.CANCELLED if task.skipped_for:
            return f"it was {task.reason}"
        case TaskState.PARTIAL if task.awaits is None or task.awaits.by_person:
            return f"a person has yet to judge it: {task.reason}"
        case TaskState.PARTIAL:
            return f"a verifier has yet to settle it: {task.reason}"
        case _:
            return task.reason


def _again(task: Task, sessions: list[Session], settings: Settings, restart: str) -> str:
    """How it is run again: with more to run on first, where that is what it lacks."""
    limits = limits_of(task.terms, settings.supervisor)
    gone = used_up(limits.budget, used_by(sessions))
    if gone is None and limits.seconds and task.result is Result.TIMEOUT and task.source is Source.TASK:
        return f"fleet task {task.uid} set timeout_seconds=N, then {restart}"
    return f"{raise_command(task, gone)}, then {restart}" if gone else restart


def _has_verifier(task: Task) -> bool:
    """Whether a session of its own can judge it again."""
    declared = leaves(scorer_of(task.terms.scorer)) if task.terms.scorer else ()
    return any(kind_of(leaf) in BY_SESSION for _, leaf in declared)


def _action(
    task: Task, waits: tuple[Need, ...], next_at: int | None, last: LastOutcome | None, again: str, *, supervised: bool
) -> str:
    uid, run = task.uid, "" if supervised else "; start a supervisor: fleet run"
    match task.state:
        case TaskState.QUEUED if waits:
            return f"fleet why {waits[0].id}"
        case TaskState.QUEUED if next_at:
            return f"wait{run}"
        case TaskState.QUEUED:
            return "wait" if supervised else "fleet run"
        case TaskState.BLOCKED if task.block and task.block.kind in KEPT:
            return f"to let it go: fleet bd update {uid} --status open"
        case TaskState.BLOCKED if task.block and task.block.kind == "interrupted":
            return f"{again}, or fleet stop {uid}"
        case TaskState.BLOCKED if task.block and task.block.kind == "budget":
            return f"{again}, or fleet stop {uid}"
        case TaskState.BLOCKED if task.block and task.block.kind == "needs_human" and last:
            return f"{last.remedy}: {again}"
        case TaskState.BLOCKED:
            return f'fleet answer {uid} "..."'
        case state if state in IN_PROGRESS:
            return f"fleet logs {uid} -f, fleet interrupt {uid}, or fleet restart {uid}{run}"
        case TaskState.CANCELLED if task.skipped_for:
            return f"fleet why {task.skipped_for}"
        case TaskState.FAILED if last and last.outcome == K.PLUGIN:
            return f"{last.remedy}: {again}"
        case TaskState.FAILED if task.source is Source.VERIFIER:
            verify = (
                f"mend it, then: fleet verify {uid}" if _has_verifier(task) else f"fleet verify {uid} --pass, or --fail"
            )
            return f"look at what it said: fleet receipts {uid}; {verify}"
        case TaskState.FAILED if task.source is not Source.TRANSPORT:
            return f"look at what it left: fleet logs {uid}; then, if another try can help: {again}"
        case TaskState.FAILED | TaskState.CANCELLED:
            return again
        case _ if task.state in ENDED:
            return "nothing to do"
        case _ if task.awaits is None or task.awaits.by_person:
            return f"look at it: fleet artifacts {uid}; then: fleet verify {uid} --pass, or --fail"
        case _:
            return f"wait for its verifier{run}"
