"""The one screen: what is queued, running and done, who failed, and what needs a person."""

from __future__ import annotations

import msgspec

from fleet.config.home import Home
from fleet.model.states import TaskState
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


class Status(msgspec.Struct, frozen=True, kw_only=True):
    """The work, counted. `stale` counts sessions without a sign of life; there are none without a supervisor."""

    home: str
    counts: dict[str, int]
    total: int
    needs_you: list[Question]  # the first of them
    needs_you_count: int
    supervisors: list[str]
    queue: Feed | None = None  # how the outside queue answered last, where there is one


def status(reads: Reads, home: Home, run: str | None = None) -> Status:
    """Where everything stands. Costs the same at any size of the ledger."""
    found = reads.counts(run)
    counts = {name: found.get(name, 0) for name in COUNTED}
    blocked = reads.tasks(frozenset({TaskState.BLOCKED}), run=run, limit=LOOKED_AT) if counts["blocked"] else []
    asked = [question for task in blocked if (question := question_of(task))]
    return Status(
        home=str(home.path),
        counts=counts,
        total=sum(counts[state.value] for state in TaskState),
        needs_you=asked[:SHOWN],
        needs_you_count=len(asked),
        supervisors=[supervisor.id for supervisor in reads.supervisors()],
        queue=feedfile.read(home),
    )
