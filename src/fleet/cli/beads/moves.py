"""The moves of a task under beads' words: claim, set a status, close, reopen, release. Refusals are in bd's words."""

from __future__ import annotations

from msgspec.structs import replace

from fleet.cli.beads.call import Call, Refused
from fleet.errors import Conflict
from fleet.model.states import ENDED, IN_PROGRESS, TaskState
from fleet.model.task import BLOCKS, TAKEN, Task, TaskEdit
from fleet.projections import beads


def claim(call: Call, task: Task) -> Task:
    """Take a task; of several who try, one gets it. Whoever has it already may say so again."""
    word = beads.status(task, call.now)
    holder = beads.assignee(task, call.reads)
    if word == "in_progress" and (holder != call.actor or task.state in IN_PROGRESS):
        raise Refused(f"issue already claimed by {holder or 'somebody'}")
    if word not in ("open", "in_progress"):
        raise Refused(f"issue not claimable: status {word}")
    if word == "open" and holder not in ("", call.actor):
        raise Refused(f'issue already claimed: already assigned to "{holder}"')
    try:
        return call.control.take(task.uid)
    except Conflict as exc:
        now = call.reads.task(task.uid)
        if now.state is task.state and now.bead.assignee == task.bead.assignee:
            raise
        raise Refused(f"issue already claimed by {beads.assignee(now, call.reads) or now.state.value}") from exc


def set_status(call: Call, task: Task, word: str) -> Task:
    """Bring a task to a status; one that it has already is left alone."""
    if beads.status(task, call.now) == word and not (word == "blocked" and task.state is TaskState.BLOCKED):
        return task
    match word:
        case "open":
            return _open(call, task, f"put back by {call.actor}")
        case "in_progress":
            return _take(call, task)
        case "closed":
            return close(call, task, "Closed", force=call.given.on("force"))
        case "deferred":
            return _hold(call, task, beads.DEFERRED, f"deferred by {call.actor}")
        case _:
            said = call.given.text("notes") or call.given.text("append-notes") or ""
            before, asked, question = said.partition(beads.QUESTION)
            if asked and question.strip():
                return _hold(call, task, "question", question.strip())
            return _hold(call, task, "held", before.strip() or f"blocked by {call.actor}")


def put_off(call: Call, task: Task, until: int | None) -> Task:
    """Queue a task for a later date; None takes the date away."""
    word = beads.status(task, call.now)
    if until is None:
        return set_status(call, task, "open") if word == "deferred" else task
    if task.state is not TaskState.QUEUED:
        raise Refused(f"{task.uid} is {word}; only an open issue is put off to a date", hint="set it open first")
    return call.control.edit(task.uid, TaskEdit(not_before=until))


def _open(call: Call, task: Task, reason: str) -> Task:
    if task.state is TaskState.QUEUED:  # it was put off to a date
        return call.control.edit(task.uid, TaskEdit(not_before=None))
    return call.control.requeue(task.uid, reason)


def _take(call: Call, task: Task) -> Task:
    """`--status in_progress` by hand: a person works on it, and it shows whose it is."""
    if task.state is not TaskState.BLOCKED:
        return claim(call, task)
    call.control.block(task.uid, TAKEN, f"taken by {call.actor}")
    return call.control.amend(
        task.uid,
        lambda now: TaskEdit(
            bead=replace(now.bead, assignee=now.bead.assignee or call.actor, started_at=now.bead.started_at or call.now)
        ),
    )


def _hold(call: Call, task: Task, kind: str, text: str) -> Task:
    if task.state in ENDED:
        status = beads.status(task, call.now)
        raise Refused(f"{task.uid} is {status} ({task.state.value})", hint=f"`fleet bd reopen {task.uid}` first")
    return call.control.block(task.uid, kind, text)


def close(call: Call, task: Task, reason: str, *, force: bool) -> Task:
    """A person says that it is done. What is closed stays as it is."""
    if beads.status(task, call.now) == "closed":
        return task
    if task.state is TaskState.FAILED:
        raise Refused(
            f"cannot close {task.uid}: its last attempt failed, and a verdict is not rewritten",
            hint=f"`fleet bd reopen {task.uid}` queues it again",
        )
    if task.state in IN_PROGRESS:
        raise Refused(
            f"cannot close {task.uid}: a session works on it",
            hint=f"its session must end first: `fleet stop {task.uid}`",
        )
    if not force:
        _refuse_close(call, task)
    return call.control.close_task(task.uid, reason)


def _refuse_close(call: Call, task: Task) -> None:
    holder = beads.assignee(task, call.reads)
    if holder not in ("", call.actor):
        raise Refused(
            f'cannot close {task.uid}: assignee is "{holder}", actor is "{call.actor}";'
            " reclaim or use --force to override"
        )
    if waits := [uid for uid, _ in call.reads.unmet(task.uid)]:
        raise Refused(
            f"cannot close blocked issue: {task.uid} is blocked by [{' '.join(waits)}] (use --force to override)"
        )
    kin = [uid for uid, kind in call.reads.dependents(task.uid) if kind == beads.PARENT]
    if still := [uid for uid in kin if call.reads.task(uid).state not in ENDED]:
        raise Refused(
            f"cannot close {task.uid}: {len(still)} open child issue(s);"
            " close children first or use --force to override"
        )


def reopen(call: Call, task: Task, reason: str) -> Task | None:
    """Queue an ended task again. None, with a word about it, for one that has not ended."""
    if task.state in ENDED:
        return call.control.requeue(task.uid, reason)
    word = beads.status(task, call.now)
    already = "already open" if word == "open" else f"not closed (status: {word}); nothing to do"
    call.note(f"{task.uid} is {already}")
    return None


def release(call: Call, task: Task, *, force: bool) -> Task:
    """Put a task back that a person has taken."""
    holder = beads.assignee(task, call.reads)
    if not holder:
        raise Refused(f"issue {task.uid} is not assigned")
    if task.state in IN_PROGRESS:
        raise Refused(f"{task.uid} is held by a session on {holder}", hint=f"`fleet stop {task.uid}` ends it")
    if holder != call.actor and not force:
        raise Refused(f"issue claimed by a different actor: {task.uid} is held by {holder}", hint="--force overrides")
    if task.block and task.block.kind == TAKEN:
        call.control.requeue(task.uid, f"released by {call.actor}")
    return call.control.amend(task.uid, lambda now: TaskEdit(bead=replace(now.bead, assignee="", started_at=None)))


def refuse_reassigning(call: Call, task: Task) -> None:
    """Work that somebody else has in hand is not given away without --force; a session's never."""
    holder = beads.assignee(task, call.reads)
    if beads.status(task, call.now) != "in_progress" or holder in ("", call.actor):
        return
    if task.state in IN_PROGRESS or not call.given.on("force"):
        raise Refused(
            f'cannot reassign {task.uid}: held by "{holder}" (in_progress);'
            " pass --force only if their claim is abandoned",
            hint=f"`fleet stop {task.uid}` ends a session",
        )


def unblocked_by(call: Call, closed: list[Task]) -> list[Task]:
    """The tasks that waited for these and now wait for nothing."""
    behind = [uid for task in closed for uid, kind in call.reads.dependents(task.uid) if kind == BLOCKS]
    found = [call.reads.task(uid) for uid in dict.fromkeys(behind)]
    return [task for task in found if beads.status(task, call.now) == "open" and not call.reads.unmet(task.uid)]
