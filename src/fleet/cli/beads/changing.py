"""The verbs that change issues: update, close, reopen, unclaim, defer, undefer, and the short forms of update."""

from __future__ import annotations

from collections.abc import Callable

import msgspec

from fleet.cli.beads import fields, vocabulary
from fleet.cli.beads.call import Call, Refused, read_file
from fleet.cli.beads.flags import Flag, Given, Takes
from fleet.cli.beads.moves import claim, close, put_off, refuse_reassigning, release, reopen, set_status, unblocked_by
from fleet.cli.beads.relations import link
from fleet.errors import FleetError, UsageError
from fleet.model.task import Task
from fleet.projections import beads

UPDATE_FLAGS = (
    Flag(
        "status", "s", Takes.TEXT, 'open, in_progress, blocked, deferred or closed; notes "QUESTION: ..." ask a person'
    ),
    Flag("claim", "", Takes.NOTHING, "take it: you work on it, no supervisor does"),
    *fields.FLAGS,
    Flag("defer", "", Takes.TEXT, 'not before: +6h, +1d, tomorrow, 2027-01-15; "" for now'),
    Flag("parent", "", Takes.TEXT, 'the issue that this one is a child of; "" for none'),
    Flag("force", "", Takes.NOTHING, "reassign what another has claimed; close in spite of blockers or children"),
)
CLOSE_FLAGS = (
    Flag("reason", "r", Takes.TEXTS, "why; one for all, or one for each id"),
    Flag("reason-file", "", Takes.TEXT, "read the reason from a file; - reads stdin"),
    Flag("force", "f", Takes.NOTHING, "in spite of blockers, children or another's claim"),
    Flag("suggest-next", "", Takes.NOTHING, "also say what may start now"),
)
REOPEN_FLAGS = (Flag("reason", "r", Takes.TEXT, "why"),)
UNCLAIM_FLAGS = (*REOPEN_FLAGS, Flag("force", "", Takes.NOTHING, "even if another has claimed it"))
DEFER_FLAGS = (
    Flag("until", "", Takes.TEXT, "until then: +6h, +1d, tomorrow, 2027-01-15; else until undefer"),
    Flag("reason", "", Takes.TEXT, "why; kept in the notes"),
)
ASSIGN_FLAGS = UPDATE_FLAGS[-1:]
NO_ID = "no issue ID provided (pass an explicit issue ID)"


def update(call: Call) -> int:
    """Change issues. Each by itself: when one fails the others are changed all the same."""
    if not call.words:
        raise Refused(NO_ID)
    apply = _updating(call, call.given)
    if apply is None:
        call.context.print("No updates specified")
        return 0
    return _each(call, "update", apply)


def _updating(call: Call, given: Given) -> Callable[[Task], Task] | None:
    """What an update does to one task. All that can be seen to be wrong beforehand is refused here."""
    status = vocabulary.new_status(word) if (word := given.text("status")) is not None else None
    change = fields.change(given)
    until = vocabulary.later(word, call.now, "--defer") if (word := given.text("defer")) else None
    parent = given.text("parent")
    above = call.find(parent, before="resolving parent: ").uid if parent else None
    if change is None and not any(given.has(name) for name in ("status", "parent", "claim", "defer")):
        return None

    def apply(task: Task) -> Task:
        if given.has("assignee"):
            refuse_reassigning(call, task)
        if given.on("claim"):
            task = claim(call, task)
        if status:
            task = set_status(call, task, status)
        if given.has("defer"):
            task = put_off(call, task, until)
        if given.has("notes") and task.bead.notes not in ("", given.text("notes")):
            call.note(f"warning: {task.uid}: --notes replaced existing notes (use --append-notes to preserve history)")
        if change is not None:
            task = call.control.amend(task.uid, change)
        return task if parent is None else _move_below(call, task, above)

    return apply


def _move_below(call: Call, task: Task, above: str | None) -> Task:
    """Make a task the child of another one, or of none."""
    present = beads.parent(task)
    if present and present != above:
        task = call.control.unlink(task.uid, present)
    return link(call, task.uid, above, beads.PARENT) if above and present != above else task


def _each(call: Call, verb: str, apply: Callable[[Task], Task]) -> int:
    """Do it to every issue that was named; say which could not be changed, and why."""
    done: list[Task] = []
    failed: list[beads.Json] = []
    for word in call.words:
        try:
            done.append(apply(call.whole(word)))
        except FleetError as exc:
            missing = "no issue found matching" in str(exc)
            call.note(f"Error {'resolving' if missing else 'updating'} {word}: {exc}")
            if exc.hint:
                call.note(f"hint: {exc.hint}")
            failed.append({"id": word, "error": f"{'resolving' if missing else 'updating'} issue: {exc}"})
    if done:
        call.answer([call.issue(task) for task in done], *(f"Updated issue: {t.uid} — {t.title}" for t in done))
    if not failed:
        return 0
    data = {"error": f"{len(failed)} of {len(call.words)} issues failed to {verb}", "failed": failed}
    if call.json and done:  # stdout holds the issues that were changed
        call.note(msgspec.json.encode(beads.envelope(data)).decode())
    elif call.json:
        call.context.print_json(beads.envelope(data))
    return 1


def close_issues(call: Call) -> int:
    """Say that issues are done."""
    if not call.words:
        raise Refused(NO_ID)
    tasks = [call.whole(word, before=f"resolving ID {word}: ") for word in call.words]
    reasons = _reasons(call, len(tasks))
    closed, refused = [], []
    for task, reason in zip(tasks, reasons, strict=True):
        try:
            closed.append(close(call, task, reason, force=call.given.on("force")))
        except FleetError as exc:
            refused.append(str(exc))
            call.note(str(exc))
            if exc.hint:
                call.note(f"hint: {exc.hint}")
    if refused and not closed and call.json:
        call.context.print_json(beads.envelope({"error": "; ".join(refused)}))
    if closed:
        _say_closed(call, closed)
    return 1 if refused else 0


def _reasons(call: Call, n: int) -> list[str]:
    if file := call.given.text("reason-file"):
        return [read_file(file, "reason file").strip() or "Closed"] * n
    said = [reason or "Closed" for reason in call.given.texts("reason")] or ["Closed"]
    if len(said) not in (1, n):
        raise Refused(
            f"got {len(said)} close reasons for {n} issue IDs;"
            " provide exactly one shared reason or one reason per issue"
        )
    return said * n if len(said) == 1 else said


def _say_closed(call: Call, closed: list[Task]) -> None:
    rows: object = [call.issue(task) for task in closed]
    lines = [f"Closed {task.uid} — {task.title}: {task.reason}" for task in closed]
    if call.given.on("suggest-next") and (free := unblocked_by(call, closed)):
        rows = {"closed": rows, "unblocked": [call.issue(task) for task in free]}
        lines += ["", "Newly unblocked:", *(f"  {task.uid} {task.title}" for task in free)]
    call.answer(rows, *lines)


def reopen_issues(call: Call) -> int:
    """Queue ended issues again."""
    reason = call.given.text("reason") or f"reopened by {call.actor}"
    return _some(call, "Reopened", lambda task: reopen(call, task, reason), "Error resolving {}: {}")


def unclaim(call: Call) -> int:
    """Put back what a person has taken."""
    force = call.given.on("force")
    return _some(call, "Released", lambda task: release(call, task, force=force), "Error unclaiming {}: {}")


def defer(call: Call) -> int:
    """Set issues aside, until a date or until undefer."""
    until = call.given.text("until")
    at = vocabulary.later(until, call.now, "--until") if until else None
    said = {"append-notes": [f"Deferred: {why}"]} if (why := call.given.text("reason")) else {}
    note = fields.change(Given([], said))

    def apply(task: Task) -> Task:
        task = set_status(call, task, "deferred") if at is None else put_off(call, task, at)
        return call.control.amend(task.uid, note) if note else task

    return _some(call, "Deferred", apply, "Error deferring {}: {}")


def undefer(call: Call) -> int:
    """Bring back what was set aside."""

    def apply(task: Task) -> Task | None:
        if (word := beads.status(task, call.now)) != "deferred":
            call.note(f"{task.uid} is not deferred (status: {word})")
            return None
        return set_status(call, task, "open")

    return _some(call, "Undeferred", apply, "Error undeferring {}: {}")


def _some(call: Call, done: str, apply: Callable[[Task], Task | None], refusal: str) -> int:
    """Do it to every issue that was named; those that it does not concern are passed over."""
    if not call.words:
        raise Refused(NO_ID)
    changed, refused = [], []
    for word in call.words:
        try:
            task = apply(call.whole(word))
        except FleetError as exc:
            refused.append(str(exc))
            call.note(refusal.format(word, exc))
            if exc.hint:
                call.note(f"hint: {exc.hint}")
        else:
            changed += [task] if task else []
    if changed:
        call.answer([call.issue(task) for task in changed], *(f"{done} {task.uid} — {task.title}" for task in changed))
    elif refused and call.json:
        call.context.print_json(beads.envelope({"error": "; ".join(refused)}))
    return 1 if refused else 0


def note(call: Call) -> int:
    """Add a line to the notes."""
    word, *text = call.words or [""]
    if not word or not text:
        raise UsageError("an id and a text are needed", hint='fleet bd note ID "text"')
    return _short(call, word, {"append-notes": [" ".join(text)]})


def assign(call: Call) -> int:
    """Say whom an issue is meant for."""
    word, name = _two(call, "assign ID NAME")
    return _short(call, word, {"assignee": [name], **({"force": ["true"]} if call.given.on("force") else {})})


def set_priority(call: Call) -> int:
    """Say how urgent an issue is."""
    word, n = _two(call, "priority ID 0-4")
    return _short(call, word, {"priority": [n]})


def tag(call: Call) -> int:
    """Add a label."""
    word, label = _two(call, "tag ID LABEL")
    return _short(call, word, {"add-label": [label]})


def _two(call: Call, usage: str) -> tuple[str, str]:
    if len(call.words) != 2:
        raise UsageError(f"accepts 2 arg(s), received {len(call.words)}", hint=f"fleet bd {usage}")
    return call.words[0], call.words[1]


def _short(call: Call, word: str, said: dict[str, list[str]]) -> int:
    """An update of one issue, which answers with the issue itself."""
    apply = _updating(call, Given([word], said))
    task = call.whole(word, before=f"resolving {word}: ")
    task = apply(task) if apply else task
    return call.answer(call.issue(task), f"Updated issue: {task.uid} — {task.title}")
