"""The queue commands where bd keeps the queue: the same words, answered from bd and from each task's task.json."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING, Any

from fleet.errors import NotFound, ProgramError, UsageError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from fleet.cli.context import Context
    from fleet.model.task import Task
    from fleet.projections.queue import TaskLine
    from fleet.sources.beads import Bd

STATUSES = {
    "queued": "open",
    "running": "in_progress",
    "blocked": "blocked",
    "completed": "closed",
    "cancelled": "closed",
}


def keeps_the_queue(context: Context) -> bool:
    """Whether the queue of this home is bd's."""
    return context.bd_keeps_the_queue


def refuse_untaken(word: str, context: Context, instead: str) -> None:
    """For what needs a task: an issue that no supervisor has taken yet is bd's alone; say how to act on that."""
    for refused in untaken([word], context, lambda _: instead).values():
        raise refused


def untaken(words: Iterable[str], context: Context, instead: Callable[[str], str]) -> dict[str, NotFound]:
    """The same of many words: those that are refused, and why."""
    refused: dict[str, NotFound] = {}
    if not keeps_the_queue(context):
        return refused
    for word in words:
        try:
            context.reads.find(word)
        except NotFound:
            text = f"no supervisor has taken `{word}` yet; the queue is kept by bd"
            refused[word] = NotFound(text, hint=instead(word))
    return refused


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
    from fleet.store.taskfile import beside

    rows = _rows(_bd(context), "ready", "--limit", "0", "--exclude-type", "epic")
    rows.sort(key=lambda row: (row["priority"], row["created_at"], row["id"]))  # as a supervisor takes them
    found = [
        ReadyLine(id=row["id"], title=row["title"], cwd=beside(context.home, row["id"]).cwd, priority=row["priority"])
        for row in rows[: args.limit + 1]
    ]
    print_lines(found, args.limit, context, nothing="bd has nothing ready")
    return 0


def show(args: argparse.Namespace, context: Context) -> int:
    """`fleet show`, from `bd show`; with what Fleet knows of it once it has been taken."""
    from fleet.projections.beads import envelope
    from fleet.projections.whole import whole

    row = _issue(_bd(context), args.id)
    task = _task(row["id"], context)
    if context.json:
        context.print_json(envelope([row | ({"fleet": whole(context.front.task(task.uid))} if task else {})]))
        return 0
    context.print("\n".join(_lines(row, task, context)))
    return 0


def tasks(args: argparse.Namespace, context: Context) -> int:
    """`fleet tasks`, from `bd list`; with how the sessions fare of those that Fleet has taken."""
    from fleet.cli.tasks import print_lines
    from fleet.config.clock import utc_ms
    from fleet.projections.queue import line

    chosen = args.status or "running"
    words = ["--all"] if chosen == "all" else [f"--status={_status(chosen)}"]
    rows = _rows(_bd(context), "list", *words, "--limit", str(args.limit + 1))
    taken = context.reads.tasks_by_uid(row["id"] for row in rows)
    present = context.front.supervisors()
    found = []
    for row in rows:
        task = taken.get(row["id"])
        found.append(line(context.reads, context.settings, task, utc_ms(), present) if task else _line(row, context))
    print_lines(found, args.limit, context, nothing=f"bd has no task that is {chosen}")
    return 0


def _line(row: dict[str, Any], context: Context) -> TaskLine:
    """An issue that only bd knows."""
    from fleet.model.states import TaskState
    from fleet.model.task import effective
    from fleet.projections.queue import TaskLine
    from fleet.store.taskfile import beside

    kept, defaults = beside(context.home, row["id"]), context.settings.supervisor
    will = effective(kept.coder, kept.model, default_coder=defaults.coder, default_model=defaults.inherited_model)
    state = next((ours for ours, theirs in STATUSES.items() if theirs == row["status"]), "blocked")
    return TaskLine(
        id=row["id"],
        title=row["title"],
        state=TaskState(state),
        priority=row["priority"],
        coder=will.coder,
        coder_inherited=will.coder_inherited,
        model=will.model,
        model_inherited=will.model_inherited,
        cwd=kept.cwd,
        reason=row.get("notes", ""),
    )


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


def _task(uid: str, context: Context) -> Task | None:
    """The task that an issue became; None while nobody has taken it."""
    return context.reads.tasks_by_uid([uid]).get(uid)


def _lines(row: dict[str, Any], task: Task | None, context: Context) -> list[str]:
    from fleet.cli.show import inherited
    from fleet.model.task import effective
    from fleet.policy.limits import used_by
    from fleet.store.taskfile import beside

    kept, defaults = beside(context.home, row["id"]), context.settings.supervisor
    will = effective(kept.coder, kept.model, default_coder=defaults.coder, default_model=defaults.inherited_model)
    attempts = used_by(context.reads.sessions(task=task.uid)).attempts if task else 0
    pairs = [
        ("id", row["id"]),
        ("title", row["title"]),
        ("status", row["status"]),
        ("notes", row.get("notes", "")),
        ("in Fleet", _standing(task) if task else ""),
        ("cwd", kept.cwd or str(context.home.path)),
        ("coder", inherited(will.coder, will.coder_inherited)),
        ("model", inherited(will.model or "the coder's own", will.model_inherited)),
        ("priority", str(row["priority"])),
        ("attempts", str(attempts) if attempts else ""),
        ("receipt", (task.receipt or "") if task else ""),
    ]
    lines = [f"{name + ':':<11} {value}" for name, value in pairs if value]
    return [*lines, "", row["description"].rstrip()] if row.get("description") else lines


def _standing(task: Task) -> str:
    why = task.block.text if task.block else task.reason
    return task.state.value + (f": {why}" if why else "")
