"""Events: the record. Each is one fact, in a closed set of kinds; order is by sequence, times are UTC milliseconds.

What is stored is the JSON of the event without spaces: its kind, then its fields in the order in which they stand here;
the keys of maps are sorted. The chain of a subject (a task, a run, a host, a supervisor, a channel) hashes over those
bytes, so that a stored event cannot be changed, removed from the middle or re-ordered unnoticed.
"""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, ClassVar

import msgspec

from fleet.model.alert import AlertKind
from fleet.model.delivery import Came, Delivery
from fleet.model.host import Host
from fleet.model.intent import Intent
from fleet.model.receipt import NO_USAGE, Awaits, Receipt, Usage
from fleet.model.run import Run
from fleet.model.session import Session
from fleet.model.states import RunState, SessionState, TaskState
from fleet.model.supervisor import Supervisor
from fleet.model.task import Block, Comment, Link, Task, TaskEdit

if TYPE_CHECKING:
    import hashlib

GENESIS = b"\0" * 32  # what the first event of a chain follows


class Event(
    msgspec.Struct,
    frozen=True,
    kw_only=True,
    omit_defaults=True,
    forbid_unknown_fields=True,
    tag_field="kind",
):
    """What every event says: of what, when, by whom."""

    kind: ClassVar[str] = ""
    subject: str  # a task's uid, or run/ID, host/NAME, supervisor/ID, channel/NAME
    at: int
    by: str
    v: int = 1


class TaskSubmitted(Event, frozen=True, kw_only=True, tag="task.submitted"):
    """A task entered the queue."""

    task: Task


class TaskEdited(Event, frozen=True, kw_only=True, tag="task.edited"):
    """A person changed fields of a task; or a supervisor its `not_before`, which a clock set back had drawn out."""

    edit: TaskEdit


class TaskLinked(Event, frozen=True, kw_only=True, tag="task.linked"):
    """A task got a relation to another; with `blocks` it now needs that one."""

    link: Link


class TaskUnlinked(Event, frozen=True, kw_only=True, tag="task.unlinked"):
    """A relation to another task was taken away."""

    other: str


class TaskCommented(Event, frozen=True, kw_only=True, tag="task.commented"):
    """Somebody remarked on a task."""

    comment: Comment


class TaskClaimed(Event, frozen=True, kw_only=True, tag="task.claimed"):
    """A supervisor took a task; its session is about to start."""

    session: Session


class SessionStarted(Event, frozen=True, kw_only=True, tag="session.started"):
    """The agent's process is there."""

    session: str
    pid: int | None = None


class SessionStopping(Event, frozen=True, kw_only=True, tag="session.stopping"):
    """The agent was told to end."""

    session: str
    reason: str


class SessionAdopted(Event, frozen=True, kw_only=True, tag="session.adopted"):
    """Another supervisor took a session over; the epoch rose, so the old holder is fenced off."""

    session: str
    epoch: int
    supervisor: str


class SessionEnded(Event, frozen=True, kw_only=True, tag="session.ended"):
    """A session is over: its agent exited, or its host says that it is gone."""

    session: str
    state: SessionState
    outcome: str
    usage: Usage = NO_USAGE
    ran_ms: int | None = None  # for how long its agent ran; None: until this was recorded, as far as is known


class TaskSettled(Event, frozen=True, kw_only=True, tag="task.settled"):
    """A task got a verdict."""

    state: TaskState
    receipt: Receipt
    charged: bool = False  # the attempt counts


class TaskUnsettled(Event, frozen=True, kw_only=True, tag="task.unsettled"):
    """A task's verdict is open: its verifier is to run, for the first time or again."""

    reason: str
    awaits: Awaits
    not_before: int | None = None


class TaskRequeued(Event, frozen=True, kw_only=True, tag="task.requeued"):
    """A task went back to the queue: a retry, our own stop, a restart, a reopening, an answer by hand."""

    reason: str
    not_before: int | None = None
    charged: bool = False
    restart: bool = False  # a person took back an end or a live session
    receipt: Receipt | None = None  # of the attempt that failed


class TaskBlocked(Event, frozen=True, kw_only=True, tag="task.blocked"):
    """A task waits for a person."""

    block: Block


class TaskAnswered(Event, frozen=True, kw_only=True, tag="task.answered"):
    """A person answered; the task is queued again."""

    text: str


class AlertRaised(Event, frozen=True, kw_only=True, tag="alert.raised"):
    """Something that a person should hear of; it stands beside the event that caused it."""

    alert: AlertKind
    reason: str
    session: str | None = None
    worker: str | None = None


class AlertSending(Event, frozen=True, kw_only=True, tag="alert.sending"):
    """An alert is about to be sent to a channel; or again, when nobody knows whether it was."""

    delivery: Delivery


class AlertSent(Event, frozen=True, kw_only=True, tag="alert.sent"):
    """What came of sending an alert."""

    delivery: str
    outcome: Came
    attempts: int = 0
    detail: str = ""


class IntentRecorded(Event, frozen=True, kw_only=True, tag="intent.recorded"):
    """A person asked for something that only a supervisor can do."""

    intent: Intent


class IntentSettled(Event, frozen=True, kw_only=True, tag="intent.settled"):
    """A supervisor carried out what was asked, or says why not."""

    intent: str
    outcome: str
    detail: str = ""


class RunCreated(Event, frozen=True, kw_only=True, tag="run.created"):
    """Tasks were submitted together."""

    run: Run


class RunStopping(Event, frozen=True, kw_only=True, tag="run.stopping"):
    """A person stopped a run; it ends with the last of its tasks."""

    reason: str


class RunEnded(Event, frozen=True, kw_only=True, tag="run.ended"):
    """The last task of a run ended; `heads` are the ends of its tasks' chains."""

    state: RunState
    heads: dict[str, str]


class RunResumed(Event, frozen=True, kw_only=True, tag="run.resumed"):
    """A task of an ended run was restarted."""


class HostChanged(Event, frozen=True, kw_only=True, tag="host.changed"):
    """A machine came, went, or is being drained."""

    host: Host


class SupervisorJoined(Event, frozen=True, kw_only=True, tag="supervisor.joined"):
    """A supervisor began to take tasks."""

    supervisor: Supervisor


class SupervisorLeft(Event, frozen=True, kw_only=True, tag="supervisor.left"):
    """A supervisor ended, or its lease ran out; its sessions may be taken over."""

    reason: str


EVENTS: tuple[type[Event], ...] = (
    TaskSubmitted,
    TaskEdited,
    TaskLinked,
    TaskUnlinked,
    TaskCommented,
    TaskClaimed,
    TaskSettled,
    TaskUnsettled,
    TaskRequeued,
    TaskBlocked,
    TaskAnswered,
    SessionStarted,
    SessionStopping,
    SessionAdopted,
    SessionEnded,
    AlertRaised,
    AlertSending,
    AlertSent,
    IntentRecorded,
    IntentSettled,
    RunCreated,
    RunStopping,
    RunEnded,
    RunResumed,
    HostChanged,
    SupervisorJoined,
    SupervisorLeft,
)

AnyEvent = (
    TaskSubmitted
    | TaskEdited
    | TaskLinked
    | TaskUnlinked
    | TaskCommented
    | TaskClaimed
    | TaskSettled
    | TaskUnsettled
    | TaskRequeued
    | TaskBlocked
    | TaskAnswered
    | SessionStarted
    | SessionStopping
    | SessionAdopted
    | SessionEnded
    | AlertRaised
    | AlertSending
    | AlertSent
    | IntentRecorded
    | IntentSettled
    | RunCreated
    | RunStopping
    | RunEnded
    | RunResumed
    | HostChanged
    | SupervisorJoined
    | SupervisorLeft
)


class Entry(msgspec.Struct, frozen=True, kw_only=True):
    """An event in its place in the ledger."""

    seq: int
    hash: bytes
    body: bytes  # the stored bytes; the hash is over these
    event: AnyEvent


encode = msgspec.json.Encoder(order="deterministic").encode  # the bytes to store
_decoder: msgspec.json.Decoder[AnyEvent] = msgspec.json.Decoder(AnyEvent)


_KINDS = {kind: str(kind.__struct_config__.tag) for kind in EVENTS}


def kind_of(event: Event | type[Event]) -> str:
    """The event's name in the ledger."""
    return _KINDS[event if isinstance(event, type) else type(event)]


def decode(body: bytes | str) -> AnyEvent:
    """The event that stored bytes stand for."""
    return _decoder.decode(body)


def link(previous: bytes, body: bytes) -> bytes:
    """The hash of an event that follows `previous` in its chain."""
    digest = _empty().copy()
    digest.update(previous + body)
    return digest.digest()


@cache
def _empty() -> hashlib._Hash:
    """The hash of nothing. A copy of it is had for less than a new one, of which OpenSSL looks up every part."""
    from hashlib import sha256  # not at the top: commands that only read start faster without it

    return sha256()
