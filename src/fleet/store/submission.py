"""Submission: tasks enter the queue, all of them or none, each under an id that is short and free."""

from __future__ import annotations

from collections.abc import Container, Sequence

from msgspec.structs import replace

from fleet.errors import Conflict, CycleError, NotFound, UsageError
from fleet.model import event as ev
from fleet.model.circles import circles
from fleet.model.ids import check_token, run_subject, slug
from fleet.model.run import NewRun, Run
from fleet.model.states import UNMET, TaskState
from fleet.model.task import BLOCKS, Link, NewTask, Task, check_new
from fleet.store import ledger, rows
from fleet.store.engine import Tx
from fleet.store.letters import letters


def submit(tx: Tx, new: Sequence[NewTask], *, run: NewRun | None, by: str, prefix: str) -> list[Task]:
    """All of the tasks enter the queue, or none does. `needs` name tasks of this submission or of the store.

    A uid that is given and taken is refused: whoever gives uids asks first whether the task is there.
    """
    _refuse_circles(new)
    made_run = _create_run(tx, run, len(new), by) if run else None
    states: dict[str, TaskState] = {}
    for asked in new:
        uid = _given(tx, asked.uid) if asked.uid else _mint(tx, "tasks", "uid", prefix, taken=states)
        states[uid] = TaskState.QUEUED
    uids = list(states)
    by_task_id = {task.task_id: uid for task, uid in zip(new, uids, strict=True) if task.task_id}
    made = []
    for asked, uid in zip(new, uids, strict=True):
        check_new(asked)
        links: tuple[Link, ...] = ()
        if asked.needs or asked.links:
            needs = dict.fromkeys(by_task_id.get(need) or _existing(tx, need, states) for need in asked.needs)
            others = (_checked_link(tx, link, states) for link in asked.links)
            links = (*(Link(other=need, at=tx.now, by=by) for need in needs), *others)
        task = _entering(asked, uid, run=made_run.id if made_run else None, links=links, at=tx.now, by=by)
        ledger.begin(tx, ev.TaskSubmitted(subject=uid, at=tx.now, by=by, task=task))
        rows.insert_task(tx, task, sum(states[need] is not TaskState.COMPLETED for need in task.needs))
        if links:
            pairs = [(uid, link.other, link.kind) for link in links]
            tx.many("INSERT INTO links (task, other, kind) VALUES (?, ?, ?)", pairs)
        made.append(task)
    return made


def _entering(asked: NewTask, uid: str, *, run: str | None, links: tuple[Link, ...], at: int, by: str) -> Task:
    """The task as it enters the queue."""
    task = Task(
        uid=uid,
        task_id=asked.task_id or uid,
        run=run,
        title=asked.title,
        description=asked.description,
        priority=asked.priority,
        needs=tuple([link.other for link in links if link.kind == BLOCKS]),
        links=links,
        created_at=at,
        created_by=by,
        updated_at=at,
        not_before=asked.not_before,
        terms=asked.terms,
        bead=asked.bead,
    )
    return replace(  # a second step: Python makes a call with more than 15 names by way of dictionaries, slowly
        task,
        coder=asked.coder,
        model=asked.model,
        cwd=asked.cwd,
        host=asked.host,
        capabilities=asked.capabilities,
        labels=asked.labels,
    )


def _refuse_circles(new: Sequence[NewTask]) -> None:
    """Only tasks of one submission can form a circle: nobody needs a task that does not exist yet."""
    needs: dict[str, tuple[str, ...]] = {}
    for task in new:
        if task.task_id in needs:
            raise UsageError(f"two tasks have the id `{task.task_id}`")
        if task.task_id:
            needs[task.task_id] = task.needs
    found = next(circles(needs), None)
    if found is not None:
        raise CycleError(f"a circle of needs: {' -> '.join(found)}")


def _existing(tx: Tx, uid: str, states: dict[str, TaskState]) -> str:
    if uid not in states:
        found = rows.task_or_none(tx, uid)
        if found is None:
            raise NotFound(f"needs `{uid}`: no such task")
        if found.state in UNMET:
            raise UsageError(
                f"needs {uid}, which is {found.state.value}; a task that needs it could never start",
                hint=f"restart {uid} first, or leave it out",
            )
        states[uid] = found.state
    return uid


def _checked_link(tx: Tx, asked: Link, states: dict[str, TaskState]) -> Link:
    _existing(tx, asked.other, states)
    return Link(other=asked.other, kind=asked.kind, at=tx.now, by=asked.by)


def _create_run(tx: Tx, new: NewRun, tasks: int, by: str) -> Run:
    run_id = _mint(tx, "runs", "id", slug(new.name))
    made = Run(
        id=run_id,
        name=new.name,
        labels=new.labels,
        tasks=tasks,
        max_workers=new.max_workers,
        workers=new.workers,
        alerts=new.alerts,
        created_at=tx.now,
        created_by=by,
    )
    seq = ledger.begin(tx, ev.RunCreated(subject=run_subject(run_id), at=tx.now, by=by, run=made))
    tx.run(
        "INSERT INTO runs (id, seq, state, doc) VALUES (?, ?, ?, ?)", run_id, seq, made.state.value, rows.encode(made)
    )
    return made


def _given(tx: Tx, uid: str) -> str:
    """An id that an outside queue gave, if it can name a task and none has it."""
    if tx.rows("SELECT 1 FROM tasks WHERE uid = ?", check_token(uid, "task")):
        raise Conflict(f"there is a task {uid} already")
    return uid


def _mint(tx: Tx, table: str, column: str, prefix: str, taken: Container[str] = ()) -> str:
    """A new id: as short as is still free after two tries of each length."""
    for attempt in range(64):
        length = 3 + attempt // 2
        candidate = f"{prefix}-{letters(length)}"
        if candidate not in taken and not tx.rows(f"SELECT 1 FROM {table} WHERE {column} = ?", candidate):
            return candidate
    raise Conflict("no free id was found")
