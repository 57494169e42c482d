"""A session: one attempt at a task, by one coder, on one host; and what the claim of a task needs."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import lru_cache
from typing import Literal

import msgspec

from fleet.model.receipt import NO_USAGE, Usage
from fleet.model.states import SessionState
from fleet.model.task import NewTask, Task

POOL, WORKER = "pool:", "worker:"  # what the capability begins with that a pool, or one worker of it, alone has


class Fence(msgspec.Struct, frozen=True):
    """The right to write about a session; lost as soon as somebody else takes it over."""

    session: str
    epoch: int


class Session(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, forbid_unknown_fields=True):
    """One attempt as it stands: what the fold of its events gives."""

    id: str
    task: str
    run: str | None = None
    kind: Literal["work", "verify"] = "work"
    state: SessionState = SessionState.STARTING
    epoch: int
    worker: str
    host: str
    supervisor: str
    coder: str
    model: str | None = None
    claimed_at: int
    started_at: int | None = None
    ended_at: int | None = None
    pid: int | None = None
    outcome: str | None = None
    usage: Usage = NO_USAGE  # what it consumed; known when it has ended
    ran_ms: int | None = None  # for how long its agent ran, where that is known: its end may be recorded later

    @property
    def fence(self) -> Fence:
        """The right to write about it."""
        return Fence(self.id, self.epoch)

    def running_ms(self, now: int) -> int:
        """For how long its agent ran, or has until now; not for how long nobody saw that it had ended."""
        if self.started_at is None:
            return 0
        return max(0, (self.ended_at or now) - self.started_at) if self.ran_ms is None else self.ran_ms


def session_id(task: str, epoch: int, seal: str = "") -> str:
    """The name of the session that a task's launch with this epoch is. It names a directory on its host: where homes
    may share that, it has a seal, letters that no other home's have."""
    return f"{task}.{epoch}_{seal}" if seal else f"{task}.{epoch}"


def seal_of(session: str) -> str:
    """The seal of a session; empty: it is on a machine of its home, or an earlier Fleet began its task."""
    return session.rpartition(".")[2].partition("_")[2]


def goes_by(session: str, word: str) -> bool:
    """Whether a word means this session: its id, or that without the seal."""
    return session == word or session.startswith(f"{word}_")


def name_there(session: str) -> str:
    """What a session's task is called on a host that homes may share. No id of a task has an @ in it."""
    seal = seal_of(session)
    return f"{task_of(session)}@{seal}" if seal else task_of(session)


def task_of(session: str) -> str:
    """The task that a session is an attempt at."""
    return session.rpartition(".")[0]


class Ending(msgspec.Struct, frozen=True, kw_only=True):
    """How a session came to its end."""

    outcome: str  # as model/outcome.py names them; or abandoned, by a person
    state: SessionState = SessionState.EXITED
    usage: Usage = NO_USAGE
    ran_ms: int | None = None  # for how long its agent ran, where its end was seen


class Progress(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, forbid_unknown_fields=True):
    """How far the reading of a session's output has come. Not in the ledger: it changes with every line."""

    cursor: int = 0  # the next byte of stdout to read
    long_line: int = 0  # of a line that is too long to be read as one: its bytes so far
    left_out: int = 0  # bytes of such lines that are not in its log
    logged: int = 0  # bytes that it added to the log of its task
    full_from: int | None = None  # from this byte of stdout on nothing was logged; its last words follow at its end
    usage: Usage = NO_USAGE
    context_tokens: int = 0
    peak_context_tokens: int = 0
    context_window: int | None = None  # as the coder reports it; None: it does not
    last_output_at: int | None = None
    stale_since: int | None = None  # its host gives no sign of life since then
    tools_running: int = 0  # while there are any, silence is work
    coder_session: str | None = None  # the coder's own name for the conversation
    requests: int = 0  # how many of the agent's requests have been dealt with
    asked_kind: str | None = None  # it asked a person: the task waits when it ends
    asked_text: str = ""
    closed: str | None = None  # it said that it is done, with these words
    stopped_for: str | None = None  # why we ended it, with the outcome that makes and the bound it crossed
    stopped_reason: str = ""
    stopped_by: str = ""
    cwd: str = ""  # where it works, when that is a worktree
    ready: str = ""  # a file that is there once that worktree's setup was run
    commit_before: str | None = None  # of the workspace, when it began
    parser: msgspec.Raw = msgspec.Raw(b"null")  # the coder's own state, opaque here


class Slot(msgspec.Struct, frozen=True, kw_only=True):
    """Room for one task, offered to a claim."""

    worker: str
    host: str
    here: bool = True  # on the machine of the supervisor that offers it
    declared: bool = False  # of a worker that several supervisors may offer: one session at a time has it
    capabilities: frozenset[str] | None = None  # None: every capability
    lacks: frozenset[str] = frozenset()  # capabilities that only others have
    runs: frozenset[str] | None = None  # None: any run, and tasks without one
    not_runs: frozenset[str] = frozenset()  # runs that have workers elsewhere
    paused_coders: frozenset[str] = frozenset()
    pool: str | None = None  # the pool that it is a worker of, and whose tasks alone it takes
    shares: bool = True  # several tasks may work in one directory at the same time


class Defaults(msgspec.Struct, frozen=True, kw_only=True):
    """What a task inherits when it says nothing."""

    coder: str
    model: str


class Claimed(msgspec.Struct, frozen=True):
    """A task that is ours to run, and the session to run it in."""

    task: Task
    session: Session


class Lane(msgspec.Struct, frozen=True, array_like=True, cache_hash=True):
    """All that placement asks of a task. Tasks of a lane are equal to a slot, so a claim looks at lanes, not tasks."""

    run: str | None
    host: str | None
    coder: str | None
    capabilities: tuple[str, ...]
    directory: str | None = None  # that it changes in place

    @classmethod
    def of(cls, task: Task) -> Lane:
        """The lane that a task waits in. Verified is where the files are, by who verifies; a pool does it itself."""
        awaits = task.awaits
        if awaits is not None:
            pool = tuple(name for name in task.capabilities if name.startswith(POOL))
            return _lane(task.run, awaits.host, awaits.coder, pool, None)
        return _lane(task.run, task.host, task.coder, task.capabilities, changed_in_place(task))

    @property
    def pool(self) -> str | None:
        """The pool that its tasks are for."""
        return pool_of(self.capabilities)

    @property
    def key(self) -> str:
        """The lane as the store indexes it."""
        return _key(self)

    @classmethod
    def parse(cls, key: str) -> Lane:
        """The lane that a key stands for."""
        return _parse(key)


# There are few lanes and many tasks in each.
@lru_cache(maxsize=1024)
def _lane(
    run: str | None, host: str | None, coder: str | None, capabilities: tuple[str, ...], directory: str | None
) -> Lane:
    return Lane(run, host, coder, tuple(sorted(set(capabilities))), directory)


@lru_cache(maxsize=1024)
def _key(lane: Lane) -> str:
    return msgspec.json.encode(lane).decode()


@lru_cache(maxsize=1024)
def _parse(key: str) -> Lane:
    return msgspec.json.decode(key, type=Lane)


def pool_of(capabilities: Iterable[str]) -> str | None:
    """The pool that is asked for by name; None: no pool."""
    for name in capabilities:
        if name.startswith(POOL):
            return name.removeprefix(POOL)
    return None


def changed_in_place(task: Task | NewTask) -> str | None:
    """The directory that an agent on this task changes under the feet of others; None where it does not.

    What a command does there is its author's affair: commands of one run may well share a directory. But where the
    writes are looked at afterwards, those of a neighbour would be taken for the task's own.
    """
    terms = task.terms
    harmless = terms.tool_profile == "read-only" or task.coder == "command"
    apart = terms.isolation == "worktree" or (harmless and terms.writable_paths is None)
    return None if apart else task.cwd


def accepts(slot: Slot, lane: Lane, defaults: Defaults) -> bool:
    """Whether a task of this lane may run in this slot."""
    return (
        (lane.host is None or lane.host == slot.host)
        and lane.pool == slot.pool
        and (slot.runs is None or lane.run in slot.runs)
        and lane.run not in slot.not_runs
        and (slot.capabilities is None or slot.capabilities.issuperset(lane.capabilities))
        and (not slot.lacks or slot.lacks.isdisjoint(lane.capabilities))
        and (lane.coder or defaults.coder) not in slot.paused_coders
    )


def first_fit(slots: Iterable[Slot], lane: Lane, defaults: Defaults) -> Slot | None:
    """The first slot, in the order offered, that accepts the lane."""
    for slot in slots:
        if accepts(slot, lane, defaults):
            return slot
    return None


def fits(slots: Iterable[Slot], lane: Lane, defaults: Defaults) -> Iterator[Slot]:
    """The slots that accept the lane, in the order offered; one of each worker's: the others are as good."""
    seen: set[tuple[str, str]] = set()
    for slot in slots:
        who = (slot.host, slot.worker.partition("#")[0])
        if who not in seen and accepts(slot, lane, defaults):
            seen.add(who)
            yield slot
