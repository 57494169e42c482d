"""What tools give where it is a list or one of two things: a result must be an object."""

from __future__ import annotations

import msgspec

from fleet.model.intent import Intent
from fleet.projections.queue import Question, TaskDetail, TaskLine
from fleet.projections.receipts import Kept, ReceiptView


class Tasks(msgspec.Struct, frozen=True, kw_only=True):
    """Tasks."""

    tasks: list[TaskLine]


class Artifacts(msgspec.Struct, frozen=True, kw_only=True):
    """What was left."""

    artifacts: list[Kept]


class Receipts(msgspec.Struct, frozen=True, kw_only=True):
    """Verdicts."""

    receipts: list[ReceiptView]


class Questions(msgspec.Struct, frozen=True, kw_only=True):
    """What waits for a person."""

    questions: list[Question]


class Asked(msgspec.Struct, frozen=True, kw_only=True):
    """The wish that the supervisor of the session has yet to carry out."""

    asked: Intent


class Restarted(msgspec.Struct, frozen=True, kw_only=True):
    """The task, queued again; or the wish that its supervisor has yet to carry out."""

    task: TaskDetail | None
    asked: Intent | None


class Stopped(msgspec.Struct, frozen=True, kw_only=True):
    """What was cancelled or skipped at once, and the wishes that supervisors have yet to carry out."""

    tasks: list[TaskDetail]
    asked: list[Intent]
