"""A task: a piece of work, as it is asked for and as it stands."""

from __future__ import annotations

import msgspec

from fleet.errors import UsageError
from fleet.model.receipt import Awaits
from fleet.model.states import Result, Source, TaskState
from fleet.model.terms import NO_TERMS, Terms

BLOCKS = "blocks"  # the kind of link that makes one task need another
TAKEN = "taken"  # the kind of block that says: a person works on it
KEPT = frozenset({TAKEN, "held", "deferred"})  # blocks by which a person keeps a task: nobody is asked anything
ASKED = frozenset({"question", "permission", "secret", "destructive"})  # blocks by which an agent asks: an answer helps
DEFAULT_PRIORITY = 2
PRIORITIES = range(5)  # 0 is the most urgent
MAX_TITLE = 500


class Block(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, forbid_unknown_fields=True):
    """Why a task waits for a person."""

    kind: str  # question, permission, secret, destructive, budget, interrupted, needs_human, held, taken, deferred
    text: str
    at: int
    by: str


class Link(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, forbid_unknown_fields=True):
    """A relation to another task. Only `blocks` holds work back; the others are notes, as in beads."""

    other: str
    kind: str = BLOCKS
    at: int = 0
    by: str = ""


class Bead(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, forbid_unknown_fields=True):
    """What the beads verbs keep beside a task, so that nothing said with `fleet bd` is lost."""

    issue_type: str = "task"
    assignee: str = ""
    notes: str = ""
    design: str = ""
    acceptance_criteria: str = ""
    external_ref: str = ""
    owner: str = ""
    metadata: dict[str, object] = {}
    close_reason: str = ""
    started_at: int | None = None
    estimated_minutes: int | None = None


NO_BEAD = Bead()  # one for all, as with NO_USAGE


class NewTask(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A task as a person asks for it. `needs` may name tasks of the same submission by their task_id."""

    title: str
    description: str = ""
    uid: str | None = None  # given by the outside queue that it comes from; else the store makes one
    task_id: str | None = None
    priority: int = DEFAULT_PRIORITY
    coder: str | None = None
    model: str | None = None
    cwd: str | None = None
    host: str | None = None
    capabilities: tuple[str, ...] = ()
    labels: dict[str, str] = {}
    needs: tuple[str, ...] = ()
    links: tuple[Link, ...] = ()
    not_before: int | None = None
    terms: Terms = NO_TERMS
    bead: Bead = NO_BEAD


class TaskEdit(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, forbid_unknown_fields=True):
    """A change that a person makes to a task's own fields; what is UNSET stays."""

    title: str | msgspec.UnsetType = msgspec.UNSET
    description: str | msgspec.UnsetType = msgspec.UNSET
    priority: int | msgspec.UnsetType = msgspec.UNSET
    coder: str | msgspec.UnsetType | None = msgspec.UNSET
    model: str | msgspec.UnsetType | None = msgspec.UNSET
    cwd: str | msgspec.UnsetType | None = msgspec.UNSET
    host: str | msgspec.UnsetType | None = msgspec.UNSET
    labels: dict[str, str] | msgspec.UnsetType = msgspec.UNSET
    not_before: int | msgspec.UnsetType | None = msgspec.UNSET
    terms: Terms | msgspec.UnsetType = msgspec.UNSET
    bead: Bead | msgspec.UnsetType = msgspec.UNSET

    def changes(self) -> dict[str, object]:
        """The fields that are set, by name."""
        values = {name: getattr(self, name) for name in self.__struct_fields__}
        return {name: value for name, value in values.items() if value is not msgspec.UNSET}


class Task(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, forbid_unknown_fields=True):
    """A task as it stands: what the fold of its events gives."""

    uid: str  # names it everywhere: paths, keys, commands
    task_id: str  # the spec's id, unique within its run; else the uid
    run: str | None = None
    title: str
    description: str = ""
    state: TaskState = TaskState.QUEUED
    priority: int = DEFAULT_PRIORITY
    coder: str | None = None  # None: the configured one
    model: str | None = None
    cwd: str | None = None
    host: str | None = None  # the machine that `cwd` is on; None: any
    capabilities: tuple[str, ...] = ()
    labels: dict[str, str] = {}
    needs: tuple[str, ...] = ()  # uids of tasks that must be completed first
    links: tuple[Link, ...] = ()  # every relation, the needs among them
    created_at: int
    created_by: str
    updated_at: int
    started_at: int | None = None
    ended_at: int | None = None
    not_before: int | None = None
    epoch: int = 0  # raised by every launch and takeover; the fence
    charged: int = 0  # attempts that count against max_attempts
    restarts: int = 0
    escalated: bool = False  # raised to a person, and not dealt with yet
    session: str | None = None  # the session that is open now
    block: Block | None = None
    reason: str = ""  # why it is in this state, in one sentence
    result: Result | None = None  # of the receipt in force
    source: Source | None = None
    receipt: str | None = None
    awaits: Awaits | None = None  # what its partial receipt waits for
    skipped_for: str | None = None  # the needed task whose end skipped this one
    receipts: int = 0
    comments: int = 0
    terms: Terms = NO_TERMS
    bead: Bead = NO_BEAD

    @property
    def awaits_verifier(self) -> bool:
        """Whether the session of a verifier has yet to settle its partial receipt."""
        return self.state is TaskState.PARTIAL and self.awaits is not None and not self.awaits.by_person


class Comment(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A remark on a task. It changes nothing else."""

    id: str
    task: str
    by: str
    text: str
    at: int


class Effective(msgspec.Struct, frozen=True):
    """The coder and model that a task will get, and whether each was inherited."""

    coder: str
    model: str | None
    coder_inherited: bool
    model_inherited: bool


def effective(coder: str | None, model: str | None, *, default_coder: str, default_model: str) -> Effective:
    """The task's own choice, else the configured one; a configured model belongs to the configured coder only."""
    chosen = coder or default_coder
    inherited_model = default_model if chosen == default_coder else None
    return Effective(chosen, model or inherited_model or None, coder is None, model is None)


def check_new(new: NewTask) -> NewTask:
    """The task as given, or a UsageError that says what cannot be taken."""
    check_title(new.title)
    check_priority(new.priority)
    return new


def check_title(title: str) -> str:
    """A title is one printable line."""
    if not title.strip():
        raise UsageError("the title is empty", hint='give it in quotes: fleet add "Fix the login page"')
    if len(title) > MAX_TITLE:
        raise UsageError(f"the title has {len(title)} characters; at most {MAX_TITLE} fit", hint="use -d for details")
    if not title.isprintable() and any(
        (ord(c) < 32 and c != "\t") or 127 <= ord(c) < 160 or c in "\u2028\u2029" for c in title
    ):
        raise UsageError("the title must be one printable line", hint="use -d for text of several lines")
    return title


def check_priority(priority: int) -> int:
    """Five steps, as in beads; 0 is the most urgent."""
    if priority not in PRIORITIES:
        raise UsageError(f"priority {priority} is not one of 0 (most urgent) to 4")
    return priority
