"""The verbs of the queue: edit, link, comment, block, answer, settle, unsettle, requeue, cancel."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence

import msgspec
from msgspec.structs import replace

from fleet.errors import Conflict, CycleError, IllegalMove, NotFound, UsageError
from fleet.model import event as ev
from fleet.model.alert import Alert, of_block
from fleet.model.ids import run_subject
from fleet.model.receipt import Awaits, Verdict
from fleet.model.run import Run
from fleet.model.states import ENDED, IN_PROGRESS, STATE_OF_RESULT, UNMET, Result, RunState, TaskState
from fleet.model.task import BLOCKS, TAKEN, Block, Comment, Link, NewTask, Task, TaskEdit, check_new
from fleet.store import ledger, rows
from fleet.store.engine import Tx
from fleet.store.transition import apply, open_receipt, raised, receipt_from


def edit(tx: Tx, uid: str, change: TaskEdit, *, by: str) -> Task:
    """A person changes a task's own fields. A live session goes on with what it was given."""
    before = rows.task(tx, uid)
    wanted = change.changes()
    check_new(NewTask(title=str(wanted.get("title", before.title)), priority=int(str(wanted.get("priority", 2)))))
    differing = {name: value for name, value in wanted.items() if getattr(before, name) != value}
    if not differing:
        return before
    return apply(tx, before, ev.TaskEdited(subject=uid, at=tx.now, by=by, edit=TaskEdit(**differing)))  # type: ignore[arg-type]


def amend(tx: Tx, uid: str, change: Callable[[Task], TaskEdit], *, by: str) -> Task:
    """An edit that follows from what stands, such as one more label: nothing said in between is lost."""
    return edit(tx, uid, change(rows.task(tx, uid)), by=by)


def link(tx: Tx, uid: str, other: str, kind: str, *, by: str) -> Task:
    """A relation to another task. One pair has one relation: a second replaces the first."""
    tx.exclusively("links")
    if uid == other:
        raise CycleError(f"{uid} cannot need itself")
    target = rows.task(tx, other)  # held before its dependent, as everywhere
    before = rows.task(tx, uid)
    if any(known.other == other and known.kind == kind for known in before.links):
        return before
    needed = other in before.needs
    if kind == BLOCKS and not needed:
        _refuse_new_need(tx, before, target)
    event = ev.TaskLinked(subject=uid, at=tx.now, by=by, link=Link(other=other, kind=kind, at=tx.now, by=by))
    after = apply(tx, before, event)
    tx.run("DELETE FROM links WHERE task = ? AND other = ?", uid, other)
    tx.run("INSERT INTO links (task, other, kind) VALUES (?, ?, ?)", uid, other, kind)
    change = ((kind == BLOCKS) - needed) * (target.state is not TaskState.COMPLETED)
    if change:
        rows.wait(tx, uid, change)
    return after


def unlink(tx: Tx, uid: str, other: str, *, by: str) -> Task:
    """Take a relation away."""
    target = rows.task_or_none(tx, other)
    before = rows.task(tx, uid)
    if all(known.other != other for known in before.links):
        raise NotFound(f"{uid} has no relation to `{other}`")
    after = apply(tx, before, ev.TaskUnlinked(subject=uid, at=tx.now, by=by, other=other))
    tx.run("DELETE FROM links WHERE task = ? AND other = ?", uid, other)
    if other in before.needs and (target is None or target.state is not TaskState.COMPLETED):
        rows.wait(tx, uid, -1)
    return after


def comment(tx: Tx, uid: str, text: str, *, by: str, name: str | None = None) -> Comment:
    """A remark on a task."""
    if not text.strip():
        raise UsageError("the comment is empty")
    before = rows.task(tx, uid)
    known = tx.rows("SELECT doc FROM comments WHERE id = ?", name) if name is not None else []
    if known:
        return msgspec.json.decode(known[0][0], type=Comment)
    made = Comment(id=name or os.urandom(8).hex(), task=uid, by=by, text=text, at=tx.now)
    apply(tx, before, ev.TaskCommented(subject=uid, at=tx.now, by=by, comment=made))
    tx.run(
        "INSERT INTO comments (id, seq, task, doc) VALUES (?, ?, ?, ?)",
        made.id,
        ledger.head(tx, uid)[0],
        uid,
        rows.encode(made),
    )
    return made


def block(tx: Tx, uid: str, kind: str, text: str, *, by: str) -> Task:
    """A task that is not in progress waits for a person. A live session is blocked through its fence: `pause`."""
    before = _not_in_progress(tx, uid)
    made = Block(kind=kind, text=text, at=tx.now, by=by)
    told = raised(before, of_block(kind, text), at=tx.now, by=by)
    return apply(tx, before, ev.TaskBlocked(subject=uid, at=tx.now, by=by, block=made), *told)


def take(tx: Tx, uid: str, *, by: str) -> Task:
    """A person takes a queued task; of several who try, one gets it. Who has it already changes nothing."""
    before = rows.task(tx, uid)
    if before.block and before.block.kind == TAKEN and before.block.by == by:
        return before
    if before.state is not TaskState.QUEUED or before.bead.assignee not in ("", by):
        raise Conflict(f"task {uid} is {before.state.value}; it cannot be taken")
    made = Block(kind=TAKEN, text=f"taken by {by}", at=tx.now, by=by)
    bead = replace(before.bead, assignee=by, started_at=before.bead.started_at or tx.now)
    return apply(
        tx,
        before,
        ev.TaskBlocked(subject=uid, at=tx.now, by=by, block=made),
        ev.TaskEdited(subject=uid, at=tx.now, by=by, edit=TaskEdit(bead=bead)),
    )


def answer(tx: Tx, uid: str, text: str, *, by: str) -> Task:
    """A person answers what a blocked task waits for. The first answer wins; a second finds nothing to answer."""
    if not text.strip():
        raise UsageError("the answer is empty")
    before = rows.task(tx, uid)
    if before.state is not TaskState.BLOCKED:
        raise Conflict(f"task {uid} is {before.state.value}; it waits for no answer")
    return apply(tx, before, ev.TaskAnswered(subject=uid, at=tx.now, by=by, text=text))


def settle(tx: Tx, uid: str, verdict: Verdict, *, by: str, alerts: Sequence[Alert] = ()) -> Task:
    """A verdict on a task that has no live session: a person closes it, or a partial receipt is settled."""
    before = _not_in_progress(tx, uid)
    if before.state in ENDED:
        raise IllegalMove(f"task {uid} has ended already: it is {before.state.value}")
    receipt = receipt_from(before, verdict, session=None, at=tx.now, settles=open_receipt(tx, before))
    state = STATE_OF_RESULT[verdict.result]
    told = raised(before, alerts, at=tx.now, by=by)
    return apply(tx, before, ev.TaskSettled(subject=uid, at=tx.now, by=by, state=state, receipt=receipt), *told)


def unsettle(tx: Tx, uid: str, awaits: Awaits, reason: str, *, by: str) -> Task:
    """The verdict on a task is opened, so that its verifier runs, or a person judges it. Its receipt is superseded
    by the next; a task whose work itself failed has nothing to verify.
    """
    before = _not_in_progress(tx, uid)
    judged = ledger.receipt(tx, uid, before.receipt) if before.receipt else None
    if judged is None or not judged.may_be_judged:
        raise Conflict(f"task {uid} has no result that a verifier could judge: it is {before.state.value}")
    return apply(tx, before, ev.TaskUnsettled(subject=uid, at=tx.now, by=by, reason=reason, awaits=awaits))


def requeue(tx: Tx, uid: str, reason: str, *, by: str, check: Callable[[Task], object] | None = None) -> Task:
    """A task that ended, or waits for a person, goes back to the queue: restart, reopen, unblock."""
    before = _not_in_progress(tx, uid)
    if check is not None:
        check(before)
    if before.state is TaskState.QUEUED:
        return before
    for need in before.needs:
        found = rows.task_or_none(tx, need, lock=False)
        if found is not None and found.state in UNMET:
            raise Conflict(
                f"{uid} needs {need}, which is {found.state.value}", hint=f"restart {need}: that revives {uid}"
            )
    restart = before.state in ENDED
    return apply(tx, before, ev.TaskRequeued(subject=uid, at=tx.now, by=by, reason=reason, restart=restart))


def cancel(tx: Tx, uid: str, reason: str, *, by: str) -> Task:
    """A task that has no live session will not run."""
    return settle(tx, uid, Verdict(result=Result.SKIP, reason=reason), by=by)


def stop_run(tx: Tx, run_id: str, reason: str, *, by: str) -> Run:
    """A person stops a run: it is stopped, not completed, when the last of its tasks has ended."""
    run = rows.run(tx, run_id)
    if run.state is not RunState.ACTIVE:
        raise Conflict(f"run {run_id} is {run.state.value} already")
    if run.stopping:
        return run
    ledger.append(tx, ev.RunStopping(subject=run_subject(run_id), at=tx.now, by=by, reason=reason))
    after = replace(run, stopping=True)
    rows.save_run(tx, after)
    return after


def _not_in_progress(tx: Tx, uid: str) -> Task:
    found = rows.task(tx, uid)
    if found.state in IN_PROGRESS:
        raise Conflict(f"task {uid} is {found.state.value}", hint=f"its session must end first: `fleet stop {uid}`")
    return found


def _refuse_new_need(tx: Tx, task: Task, target: Task) -> None:
    if target.state in UNMET:
        raise UsageError(f"{target.uid} is {target.state.value}; a task that needs it could never start")
    if task.state in IN_PROGRESS | ENDED:
        raise Conflict(f"task {task.uid} is {task.state.value}; it can get no new needs")
    circle = tx.rows(
        "WITH RECURSIVE up (uid) AS (SELECT uid FROM tasks WHERE uid = ? UNION"
        " SELECT links.other FROM links JOIN up ON links.task = up.uid WHERE links.kind = ?)"
        " SELECT 1 FROM up WHERE uid = ?",
        target.uid,
        BLOCKS,
        task.uid,
    )
    if circle:
        raise CycleError(f"a circle of needs: {target.uid} already needs {task.uid}")
