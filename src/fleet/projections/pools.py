"""The workers of pools: what the agent of each does, since when, and by what evidence; and how a dispatch stands."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Sequence

import msgspec

from fleet.coders.terminal import State
from fleet.config.settings import Settings
from fleet.errors import FleetError
from fleet.hosts.pool_worker import Facts, PoolWorker
from fleet.model.session import Session
from fleet.model.task import Comment, Task
from fleet.policy.allocation import Member, all_members, members, pool_named
from fleet.store.reads import Reads

AT_ONCE = 16
AT_WORK = frozenset({"running", "waiting"})


class PoolWorkerView(msgspec.Struct, frozen=True, kw_only=True):
    """One worker. What is None is not known."""

    pool: str
    worker: str
    host: str
    state: str  # waiting, running, completed, error; none: no agent; absent, asleep; unknown: no answer
    since: int | None = None
    evidence: str = ""
    busy: bool | None = None  # whether it can be given nothing now
    task: str | None = None  # that it has
    window: str = ""
    setup: str = ""
    branch: str = ""
    head: str = ""
    committed_at: int | None = None
    overdue: bool = False  # at work without a commit for longer than its pool allows
    dirty: int = 0
    unpushed: int = 0
    attach: str = ""


class DispatchView(msgspec.Struct, frozen=True, kw_only=True):
    """How far a dispatch has come."""

    task: str
    pool: str
    state: str  # of the task
    reason: str
    worker: str | None = None
    session: str | None = None
    delivered: bool = False
    result: str | None = None
    verifying: bool = False  # its result waits for a verifier that is not a person
    steps: tuple[str, ...] = ()  # what was done, in the words of who did it


def wanted(settings: Settings, pool: str | None) -> list[Member]:
    """The workers of a pool, or of all."""
    return list(members(pool, pool_named(settings, pool)) if pool else all_members(settings))


async def look(
    asked: Sequence[Member],
    at: Callable[[Member], PoolWorker],
    live: Iterable[Session],
    settings: Settings,
    *,
    seconds: float,
) -> list[PoolWorkerView]:
    """Look at workers, all at once. One whose host does not answer is unknown, which is not idle."""
    at_task = {session.worker.partition("#")[0]: session.task for session in live}
    turns = asyncio.Semaphore(AT_ONCE)

    async def one(member: Member) -> PoolWorkerView:
        task, found = at_task.get(member.worker), at(member)
        try:
            async with turns, asyncio.timeout(seconds):
                facts = await found.look(wake=False)
        except (FleetError, TimeoutError) as exc:
            return _view(member, state="unknown", evidence=str(exc) or "its host did not answer in time", task=task)
        return view(member, facts, task, found.plot.attach, minutes=settings.pools[member.pool].commit_minutes)

    return list(await asyncio.gather(*(one(member) for member in asked)))


def view(member: Member, facts: Facts, task: str | None, attach: str, *, minutes: int) -> PoolWorkerView:
    """A worker as its facts show it."""
    state, evidence = facts.state, facts.why
    if not facts.setup:
        state, evidence = "absent", "it was not set up yet"
    elif facts.setup == "failed":
        state, evidence = "error", f"its setup failed: {facts.setup_why}"
    elif state == "asleep":
        evidence = facts.why
    elif state == "none":
        evidence = f"{facts.setup_why}; no agent was started"
    latest = max(facts.commit or 0, (facts.since or 0) // 1000)
    return _view(
        member,
        state=state,
        since=facts.since,
        evidence=evidence,
        busy=task is not None or (state in AT_WORK and facts.agent_lives),
        task=task,
        window=facts.agent_name,
        setup=facts.setup,
        branch=facts.branch,
        head=facts.head,
        committed_at=facts.commit * 1000 if facts.commit else None,
        overdue=state == "running" and facts.now // 1000 - latest > minutes * 60,
        dirty=facts.dirty,
        unpushed=facts.unpushed,
        attach=attach if facts.setup else "",
    )


def _view(member: Member, **fields: object) -> PoolWorkerView:
    host = member.host or "this machine"
    return PoolWorkerView(pool=member.pool, worker=member.worker, host=host, **fields)  # type: ignore[arg-type]


def dispatch_view(reads: Reads, uid: str, pool: str) -> DispatchView:
    """A dispatch as the ledger has it."""
    task: Task = reads.task(uid)
    sessions = reads.sessions(task=uid)
    last = sessions[-1] if sessions else None
    comments: list[Comment] = reads.comments(uid)
    return DispatchView(
        task=uid,
        pool=pool,
        state=task.state.value,
        reason=task.block.text if task.block else task.reason,
        worker=last.worker.partition("#")[0] if last else None,
        session=last.id if last else None,
        delivered=last is not None and _given(reads, last.id),
        result=task.result.value if task.result else None,
        verifying=task.awaits is not None and not task.awaits.by_person,
        steps=tuple(comment.text for comment in comments),
    )


def _given(reads: Reads, session: str) -> bool:
    raw = bytes(reads.progress(session).parser)
    try:
        return msgspec.json.decode(raw, type=State).given
    except msgspec.DecodeError:
        return False
