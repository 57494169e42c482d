"""The queue commands where bd keeps the queue: the same words, answered from bd and from each task's task.json."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING, Any

import msgspec

from fleet.errors import NotFound, ProgramError, UsageError

if TYPE_CHECKING:
    from fleet.cli.context import Context
    from fleet.sources.beads import Bd

STATUSES = {
    "queued": "open",
    "running": "in_progress",
    "blocked": "blocked",
    "completed": "closed",
    "cancelled": "closed",
}


class Beside(msgspec.Struct):
    """What Fleet keeps beside an issue, in task.json."""

    cwd: str | None = None
    coder: str | None = None
    model: str | None = None


def keeps_the_queue(context: Context) -> bool:
    """Whether the queue of this home is bd's."""
    return context.settings.queue.source == "beads"


def refuse_beads(context: Context, instead: str) -> None:
    """For what only Fleet's own queue can do: say which command acts on bd's."""
    if keeps_the_queue(context):
        raise UsageError("the queue of this home is kept by bd", hint=f"use `{instead}`")


def add(args: argparse.Namespace, context: Context) -> int:
    """`fleet add`, as `bd create`."""
    from fleet.cli.add import read_text
    from fleet.cli.beads import forward
    from fleet.model.task import check_priority, check_title

    words = [f"--title={check_title(args.title)}", f"--priority={check_priority(args.priority)}"]
    description = read_text(args.description)
    words += [f"--description={description}"] if description else []
    words += [f"--{name}={value}" for name in ("coder", "model", "cwd") if (value := getattr(args, name))]
    words += [f"--deps={need}" for need in args.needs]
    words += [f"--labels={label}" for label in args.label]
    words += ["--silent"] if args.quiet else []
    return forward.run([], "create", words, context)


def ready(args: argparse.Namespace, context: Context) -> int:
    """`fleet ready`, from `bd ready`."""
    from fleet.cli.ready import print_lines
    from fleet.projections.queue import ReadyLine

    rows = _rows(_bd(context), "ready", "--limit", str(args.limit), "--exclude-type", "epic")
    found = [
        ReadyLine(id=row["id"], title=row["title"], cwd=_beside(context, row["id"]).cwd, priority=row["priority"])
        for row in rows
    ]
    print_lines(found, args.limit, context, nothing="bd has nothing ready")
    return 0


def show(args: argparse.Namespace, context: Context) -> int:
    """`fleet show`, from `bd show`."""
    from fleet.projections.beads import envelope

    row = _issue(_bd(context), args.id)
    if context.json:
        context.print_json(envelope([row]))
        return 0
    context.print("\n".join(_lines(row, context)))
    return 0


def tasks(args: argparse.Namespace, context: Context) -> int:
    """`fleet tasks`, from `bd list`."""
    from fleet.cli.tasks import print_table
    from fleet.model.states import TaskState
    from fleet.model.task import effective
    from fleet.projections.queue import TaskLine

    chosen = args.status or "running"
    words = ["--all"] if chosen == "all" else [f"--status={_status(chosen)}"]
    defaults = context.settings.supervisor
    found = []
    for row in _rows(_bd(context), "list", *words, "--limit", str(args.limit)):
        beside = _beside(context, row["id"])
        will = effective(
            beside.coder, beside.model, default_coder=defaults.coder, default_model=defaults.inherited_model
        )
        state = next((ours for ours, theirs in STATUSES.items() if theirs == row["status"]), "blocked")
        line = TaskLine(
            id=row["id"],
            title=row["title"],
            state=TaskState(state),
            priority=row["priority"],
            coder=will.coder,
            coder_inherited=will.coder_inherited,
            model=will.model,
            model_inherited=will.model_inherited,
            cwd=beside.cwd,
            reason=row.get("notes", ""),
        )
        found.append(line)
    if context.json:
        context.print_json(found)
    elif found:
        print_table(found, context)
    else:
        context.note(f"bd has no task that is {chosen}")
    return 0


def uid_of(word: str, context: Context) -> str:
    """The task that a word stands for, whoever keeps the queue."""
    if not keeps_the_queue(context):
        return context.reads.find(word).uid
    prefix = context.settings.queue.prefix
    for candidate in (word, f"{prefix}-{word}"):
        if context.home.task_dir(candidate).is_dir():
            return candidate
    raise NotFound(f"no task `{word}` has files in {context.home.tasks}", hint="`fleet bd list` shows the ids")


def _status(words: str) -> str:
    names = [name.strip() for name in words.split(",")]
    for name in names:
        if name not in STATUSES:
            raise UsageError(f"bd has no tasks that are `{name}`", hint=f"one of: {', '.join(STATUSES)}, all")
    return ",".join(STATUSES[name] for name in names)


def _bd(context: Context) -> Bd:
    from fleet.config.environment import environ
    from fleet.config.home import require
    from fleet.sources.beads import Bd, find_bd

    env = environ()
    return Bd(require(context.home), find_bd(env), env)


def _rows(bd: Bd, *words: str) -> list[dict[str, Any]]:
    answer = bd.call(*words, "--json")
    if answer.trouble or not isinstance(answer.data, list):
        raise ProgramError(f"bd {words[0]} failed: {answer.text}")
    return answer.data


def _issue(bd: Bd, word: str) -> dict[str, Any]:
    answer = bd.call("show", word, "--json")
    rows = answer.data if isinstance(answer.data, list) else []
    if not rows:
        raise NotFound(f"no task `{word}`: {answer.text}")
    return dict(rows[0])


def _beside(context: Context, uid: str) -> Beside:
    """What stands in task.json; a file that is missing or broken says nothing."""
    try:
        return msgspec.json.decode((context.home.task_dir(uid) / "task.json").read_bytes(), type=Beside)
    except (OSError, msgspec.DecodeError):
        return Beside()


def _lines(row: dict[str, Any], context: Context) -> list[str]:
    from fleet.cli.show import inherited
    from fleet.model.task import effective

    beside, defaults = _beside(context, row["id"]), context.settings.supervisor
    will = effective(beside.coder, beside.model, default_coder=defaults.coder, default_model=defaults.inherited_model)
    pairs = [
        ("id", row["id"]),
        ("title", row["title"]),
        ("status", row["status"]),
        ("notes", row.get("notes", "")),
        ("cwd", beside.cwd or str(context.home.path)),
        ("coder", inherited(will.coder, will.coder_inherited)),
        ("model", inherited(will.model or "the coder's own", will.model_inherited)),
        ("priority", str(row["priority"])),
    ]
    lines = [f"{name + ':':<11} {value}" for name, value in pairs if value]
    return [*lines, "", row["description"].rstrip()] if row.get("description") else lines
