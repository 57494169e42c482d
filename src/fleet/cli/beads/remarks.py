"""`comment`, `comments` and `label`: what is said about an issue."""

from __future__ import annotations

from collections import Counter

from fleet.cli.beads import text
from fleet.cli.beads.call import Call, Refused, read_file
from fleet.cli.beads.fields import change
from fleet.cli.beads.flags import REAL_BD, Flag, Given, Takes
from fleet.errors import UsageError
from fleet.model.task import Task
from fleet.projections import beads

COMMENT_FLAGS = (
    Flag("file", "f", Takes.TEXT, "read the text from a file; - reads stdin"),
    Flag("stdin", "", Takes.NOTHING, "read the text from stdin"),
)


def comment(call: Call) -> int:
    """Remark on an issue."""
    return _say(call, call.words)


def comments(call: Call) -> int:
    """List the remarks on an issue, or add one."""
    if call.words[:1] == ["add"]:
        return _say(call, call.words[1:])
    if len(call.words) != 1 or call.words == ["list"]:
        raise UsageError("comments takes one id", hint="fleet bd comments ID, or fleet bd comments add ID TEXT")
    task = call.find(call.words[0], before=f"resolving {call.words[0]}: ")
    found = [beads.comment(each) for each in call.reads.comments(task.uid)]
    lines = [line for each in found for line in text.comment(each)]
    return call.answer(found, *(lines or [f"No comments on {task.uid}"]))


def _say(call: Call, words: list[str]) -> int:
    if not words:
        raise UsageError("requires at least 1 arg(s), only received 0", hint='fleet bd comment ID "text"')
    task = call.whole(words[0], before=f"resolving {words[0]}: ")
    said = " ".join(words[1:])
    if call.given.on("stdin") or call.given.has("file"):
        said = read_file(call.given.text("file") or "-", "file")
    if not said.strip():
        raise Refused("no comment text provided (use positional args, --stdin, or --file)")
    made = call.control.comment(task.uid, said)
    return call.answer(beads.comment(made), f"Comment added to {task.uid} — {task.title}")


def label(call: Call) -> int:
    """Add, remove or list labels."""
    verb, *rest = call.words or [""]
    match verb:
        case "add" | "remove":
            return _relabel(call, verb, rest)
        case "list" if len(rest) == 1:
            found = beads.labels(call.find(rest[0], before=f"resolving {rest[0]}: ").labels)
            return call.answer(found, *(found or [f"{rest[0]} has no labels"]))
        case "list-all":
            counts = Counter(word for task in call.reads.tasks() for word in beads.labels(task.labels))
            rows = [{"label": word, "count": n} for word, n in sorted(counts.items())]
            return call.answer(rows, *(f"{row['label']}  {row['count']}" for row in rows))
        case _:
            raise UsageError(f"unknown command `bd label {verb}`", hint=f"add, remove, list ID, list-all. {REAL_BD}")


def _relabel(call: Call, verb: str, words: list[str]) -> int:
    if len(words) < 2:
        raise UsageError(
            f"requires at least 2 arg(s), only received {len(words)}", hint=f"fleet bd label {verb} ID LABEL[,LABEL]"
        )
    *ids, last = words
    given = Given([], {f"{verb}-label": [last]})
    labels, apply = given.list(f"{verb}-label"), change(given)
    tasks: list[Task] = [call.whole(word, before=f'resolving issue ID "{word}": ') for word in ids]
    status = "added" if verb == "add" else "removed"
    for task in tasks:
        if apply:
            call.control.amend(task.uid, apply)
    rows = [{"issue_id": task.uid, "label": word, "status": status} for task in tasks for word in labels]
    return call.answer(rows, *(f"{status.capitalize()} label '{row['label']}': {row['issue_id']}" for row in rows))
