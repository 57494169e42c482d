"""Tasks in the shapes of beads: the JSON that bd gives under BD_JSON_ENVELOPE=1, with its names and its omissions.

A field that is empty is left out; times are UTC seconds; `list` and `ready` give rows that count only what blocks,
`show` counts every relation. Fleet has no owners by e-mail, no leases and no revisions: those fields are not given.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Iterable
from typing import Any

from fleet.config.clock import utc_ms
from fleet.model.states import IN_PROGRESS, TaskState
from fleet.model.task import BLOCKS, TAKEN, Comment, Task
from fleet.store.reads import Reads

SCHEMA_VERSION = 1
PARENT = "parent-child"
DEFERRED = "deferred"  # the kind of block that says: not now
QUESTION = "QUESTION:"

Json = dict[str, Any]

T = TaskState
ALWAYS = frozenset({"id", "title", "status", "priority", "issue_type", "created_at", "updated_at"})
STATUSES = ("open", "in_progress", "blocked", "deferred", "closed", "pinned", "hooked")
STATES_OF: dict[str, frozenset[TaskState]] = {  # where tasks of a status may be found; `status` decides
    "open": frozenset({T.QUEUED}),
    "in_progress": frozenset({*IN_PROGRESS, T.PARTIAL, T.BLOCKED}),
    "blocked": frozenset({T.BLOCKED, T.FAILED}),
    "deferred": frozenset({T.QUEUED, T.BLOCKED}),
    "closed": frozenset({T.COMPLETED, T.CANCELLED}),
}


def status(task: Task, now: int) -> str:
    """The word that beads has for where a task stands."""
    match task.state:
        case T.QUEUED:
            return "deferred" if task.not_before is not None and task.not_before > now else "open"
        case T.BLOCKED if task.block and task.block.kind in (TAKEN, DEFERRED):
            return "in_progress" if task.block.kind == TAKEN else "deferred"
        case T.BLOCKED | T.FAILED:
            return "blocked"
        case T.COMPLETED | T.CANCELLED:
            return "closed"
        case _:
            return "in_progress"


def envelope(data: object, **beside: object) -> Json:
    """What every verb prints with --json."""
    return {"schema_version": SCHEMA_VERSION, "data": data, **beside}


def issue(task: Task, reads: Reads, *, now: int | None = None) -> Json:
    """A task as `create`, `update` and `close` give it."""
    now = utc_ms() if now is None else now
    bead, word = task.bead, status(task, now)
    closed, started = word == "closed", bead.started_at or task.started_at
    fields: Json = {
        "id": task.uid,
        "title": task.title,
        "description": task.description,
        "design": bead.design,
        "acceptance_criteria": bead.acceptance_criteria,
        "notes": notes(task),
        "status": word,
        "priority": task.priority,
        "issue_type": bead.issue_type,
        "assignee": assignee(task, reads),
        "owner": bead.owner,
        "estimated_minutes": bead.estimated_minutes,
        "created_at": rfc3339(task.created_at),
        "created_by": task.created_by,
        "updated_at": rfc3339(task.updated_at),
        "started_at": rfc3339(started) if started else None,
        "closed_at": rfc3339(task.ended_at) if closed and task.ended_at else None,
        "close_reason": task.reason if closed else None,
        "defer_until": rfc3339(task.not_before) if word == "deferred" and task.not_before else None,
        "external_ref": bead.external_ref,
        "metadata": bead.metadata,
        "labels": labels(task.labels),
    }
    return {name: value for name, value in fields.items() if value or name in ALWAYS}


def row(task: Task, reads: Reads, *, now: int | None = None) -> Json:
    """A task as `list` and `ready` give it. The counts are of what blocks."""
    dependents = [uid for uid, kind in reads.dependents(task.uid) if kind == BLOCKS]
    return _filled(
        issue(task, reads, now=now),
        dependencies=edges(task),
        dependency_count=len(task.needs),
        dependent_count=len(dependents),
        comment_count=task.comments,
        parent=parent(task),
    )


def hit(task: Task, reads: Reads, *, now: int | None = None) -> Json:
    """A task as `search` gives it: a row without its relations."""
    found = row(task, reads, now=now)
    return {name: value for name, value in found.items() if name not in ("dependencies", "parent")}


def detail(
    task: Task, reads: Reads, *, now: int | None = None, comments: bool = False, dependents: bool = False
) -> Json:
    """A task as `show` gives it, with the tasks that it depends on in full."""
    behind = reads.dependents(task.uid)
    said = [comment(each) for each in reads.comments(task.uid)] if comments and task.comments else []
    return _filled(
        issue(task, reads, now=now),
        dependencies=relatives([(link.other, link.kind) for link in task.links], reads, now=now),
        dependents=relatives(behind, reads, now=now) if dependents else [],
        comments=said,
        parent=parent(task),
        dependent_count=len(behind),
        dependency_count=len(task.links),
        comment_count=task.comments,
        comments_omitted=bool(task.comments and not said),
    )


def show_envelope(task: Task, reads: Reads) -> Json:
    """What `bd show ID --json` prints."""
    return envelope([detail(task, reads)])


def blocked_row(task: Task, reads: Reads, *, now: int | None = None) -> Json:
    """A task as `blocked` gives it, with the open tasks that hold it back."""
    by = [uid for uid, _ in reads.unmet(task.uid)]
    return {**issue(task, reads, now=now), "blocked_by_count": len(by), "blocked_by": by}


def relatives(links: Iterable[tuple[str, str]], reads: Reads, *, now: int | None = None) -> list[Json]:
    """Tasks at the other end of relations, each with the kind of the relation."""
    found = [(reads.task(uid), kind) for uid, kind in links]
    found.sort(key=lambda pair: (pair[0].priority, pair[0].created_at, pair[0].uid))
    return [{**issue(task, reads, now=now), "dependency_type": kind} for task, kind in found]


def edges(task: Task) -> list[Json]:
    """A task's relations as plain records."""
    return [
        {
            "issue_id": task.uid,
            "depends_on_id": link.other,
            "type": link.kind,
            "created_at": rfc3339(link.at),
            "created_by": link.by or task.created_by,
            "metadata": "{}",
        }
        for link in task.links
    ]


def tree(task: Task, reads: Reads, *, up: bool = False, most: int = 50, now: int | None = None) -> list[Json]:
    """What a task depends on (or, going up, what depends on it), each task once, under the first that led to it."""
    nodes: list[Json] = []
    seen = {task.uid}
    waiting = deque([(task, 0, "", "")])
    while waiting:
        node, depth, above, edge = waiting.popleft()
        shown = {**issue(node, reads, now=now), "depth": depth, "parent_id": above}
        nodes.append({**shown, **({"edge_from_parent": edge} if edge else {}), "truncated": depth >= most})
        if depth >= most:
            continue
        for uid, kind in reads.dependents(node.uid) if up else [(link.other, link.kind) for link in node.links]:
            if uid not in seen:
                seen.add(uid)
                waiting.append((reads.task(uid), depth + 1, node.uid, kind))
    return nodes


def comment(said: Comment) -> Json:
    """A remark."""
    return {
        "id": said.id,
        "issue_id": said.task,
        "author": said.by,
        "text": said.text,
        "created_at": rfc3339(said.at),
    }


def summary(reads: Reads, *, now: int | None = None) -> Json:
    """What `stats` counts."""
    now = utc_ms() if now is None else now
    counts = reads.counts()
    held = reads.tasks(frozenset({T.BLOCKED}))
    queued = reads.tasks(frozenset({T.QUEUED}))
    closed = sum(counts.get(state.value, 0) for state in STATES_OF["closed"])
    words = [status(task, now) for task in (*held, *queued)]
    working = sum(counts.get(state.value, 0) for state in (T.RUNNING, T.VERIFYING, T.PARTIAL))
    return {
        "summary": {
            "total_issues": sum(counts.get(state.value, 0) for state in T),
            "open_issues": words.count("open"),
            "in_progress_issues": words.count("in_progress") + working,
            "closed_issues": closed,
            "blocked_issues": len(reads.waiting()),
            "deferred_issues": words.count("deferred"),
            "ready_issues": len(reads.ready()),
            "pinned_issues": 0,
            "epics_eligible_for_closure": 0,
            "average_lead_time_hours": 0,
        }
    }


def assignee(task: Task, reads: Reads) -> str:
    """Who works on it: the slot that runs it, else the person it was given to or who took it."""
    if task.session is not None and task.state in IN_PROGRESS:
        return reads.session(task.session).worker
    return task.bead.assignee


def notes(task: Task) -> str:
    """The notes; a question that waits for a person stands among them, as the protocol wants it."""
    asked = f"{QUESTION} {task.block.text}" if task.block and task.block.kind == "question" else ""
    if not asked or asked in task.bead.notes:
        return task.bead.notes
    return f"{task.bead.notes}\n{asked}".lstrip()


def parent(task: Task) -> str | None:
    """The task that this one is a child of."""
    return next((link.other for link in task.links if link.kind == PARENT), None)


def labels(given: dict[str, str]) -> list[str]:
    """Labels as beads has them, single words: a label with a value is `name=value`."""
    return sorted(f"{name}={value}" if value else name for name, value in given.items())


def labels_from(words: Iterable[str]) -> dict[str, str]:
    """Labels from single words; the other way of `labels`. One name has one value: the last that was said."""
    pairs = (word.strip().partition("=") for word in words)
    return {name.strip(): value.strip() for name, _, value in pairs if name.strip()}


def rfc3339(at: int) -> str:
    """A moment, in whole seconds of UTC."""
    return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(at // 1000))


def _filled(made: Json, **fields: object) -> Json:
    """The issue with more fields; what is empty is left out, but a count is always given."""
    return made | {name: value for name, value in fields.items() if value or name.endswith("_count")}
