"""Waits that a clock has drawn out: begun at a time that has not come yet, since somebody set the clock back."""

from __future__ import annotations

from fleet.model import event as ev
from fleet.model.task import Task, TaskEdit
from fleet.store import ledger, rows
from fleet.store.engine import Tx
from fleet.store.transition import apply

SLACK_MS = 1000  # so far apart the clocks of those who write may be
OURS = frozenset({"task.requeued", "task.unsettled"})  # by these a supervisor has a task wait, for so long
SAYS = OURS | {"task.edited", "task.submitted"}  # by those a person has, until a day and time of their own
LOOKED_AT = 100  # events of a task, from its newest
SHELVES = ", ".join(f"'{name}'" for name in (rows.READY, rows.UNVERIFIED, "queued", "partial"))


def mend(tx: Tx, *, by: str) -> list[Task]:
    """Have such waits last as long as was meant, from now on. Until when a person wants a task to wait stays."""
    found = tx.rows(
        f"SELECT uid FROM tasks WHERE shelf IN ({SHELVES}) AND not_before > ? AND updated_at > ? ORDER BY uid",
        tx.now,
        tx.now + SLACK_MS,
    )
    waiting = [rows.task(tx, row[0]) for row in found]
    return [_mended(tx, task, by) for task in waiting if _newest(tx, task.uid) in OURS]


def _mended(tx: Tx, task: Task, by: str) -> Task:
    meant = max(0, (task.not_before or 0) - task.updated_at)
    return apply(tx, task, ev.TaskEdited(subject=task.uid, at=tx.now, by=by, edit=TaskEdit(not_before=tx.now + meant)))


def _newest(tx: Tx, uid: str) -> str:
    """Of the events that may say until when a task waits, the kind of the last."""
    seq = ledger.head(tx, uid)[0]
    for _ in range(LOOKED_AT):
        found = tx.rows("SELECT kind, prev FROM events WHERE seq = ?", seq)
        if not found or found[0][0] in SAYS:
            return str(found[0][0]) if found else ""
        seq = found[0][1]
    return ""
