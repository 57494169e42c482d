"""Print what belongs to one task, or set its fields.

log is the log of its sessions, plan and knowledge are the agent's own files, qa its questions and your answers, events
what the ledger says of it, stderr what its program complained about, diff what it changed in its own worktree.

set changes its coder, model, directory, priority, and its terms: budgets over all attempts, the time of one session,
its attempts, whether it may run twice. An empty value goes back to the default.

Examples:
  fleet task fleet-abc plan
  fleet task fleet-abc set coder=codex priority=0 budget_tokens=200000
"""

from __future__ import annotations

import argparse
from codecs import iterdecode
from functools import partial
from typing import TYPE_CHECKING

from fleet.errors import FleetError, UsageError

if TYPE_CHECKING:
    from fleet.cli.context import Context
    from fleet.front.views import TaskFile

FILES = ("log", "plan", "knowledge", "qa", "stderr")
OTHERS = ("events", "diff", "set")
PIECE = 1 << 20


def configure(parser: argparse.ArgumentParser) -> None:
    """The options of `fleet task`."""
    parser.add_argument("id", metavar="ID", help="a task")
    parser.add_argument("what", metavar="WHAT", choices=[*FILES, *OTHERS], help=", ".join([*FILES, *OTHERS]))
    parser.add_argument(
        "pairs",
        metavar="KEY=VALUE",
        nargs="*",
        default=[],
        help="for set: coder=, model=, cwd=, priority=; budget_tokens=, budget_tool_calls=, budget_seconds=,"
        " budget_usd=, budget_idle_seconds=, budget_pause=; timeout_seconds=, max_output_mb=, max_attempts=,"
        " retry_safe=",
    )


def live_help(context: Context) -> str:
    """The tasks that run now, so that an id can be picked from the help."""
    from fleet.cli.tasks import parse_states

    try:
        found = context.front.tasks(parse_states(None), 50)
    except FleetError:
        return ""
    if not found:
        return "running now: none"
    shown = [f"  {line.id}  [{line.coder}/{line.model or '-'}]  {line.title}" for line in found]
    return "\n".join(["running now:", *shown])


def run(args: argparse.Namespace, context: Context) -> int:
    """Print the file, the events, or the task after the change."""
    if args.what == "set":
        context.here("`fleet task set`")
        return _set(args, context)
    if args.pairs:
        raise UsageError(f"`{args.pairs[0]}`: only `set` takes values")
    if args.what == "events":
        return _events(args.id, context)
    if args.what == "diff":
        return _diff(args.id, context)
    found = _log(args.id, context) if args.what == "log" else context.front.file(args.id, args.what)
    return _print(found, args, context)


def _log(word: str, context: Context) -> TaskFile:
    """The log. For a person it is printed as it is read, since it may be long; then no text is left to print."""
    from fleet.front.views import TaskFile

    view = context.front.log_view(word)
    try:
        with context.front.open_log(view) as opened:
            if context.json:
                return TaskFile(task=view.task, file=view.file, text=opened.read().decode("utf-8", "replace"))
            last = ""
            for text in iterdecode(iter(partial(opened.read, PIECE), b""), "utf-8", "replace"):
                context.print_text(text)
                last = text[-1:] or last
            context.print_text("\n" if last not in ("", "\n") else "")
    except FileNotFoundError:
        return TaskFile(task=view.task, file=view.file, text=None)
    except BrokenPipeError:  # nobody reads what is printed
        raise
    except OSError as exc:
        raise FleetError(f"{view.file} cannot be read: {exc.strerror}") from exc
    return TaskFile(task=view.task, file=view.file, text="")


def _print(found: TaskFile, args: argparse.Namespace, context: Context) -> int:
    if context.json:
        context.print_json(found)
    elif found.text:
        context.print_text(found.text if found.text.endswith("\n") else found.text + "\n")
    if found.left_out:
        context.note(f"the last {found.left_out:,} bytes of {found.file} are left out")
    if found.text is None:
        context.note(f"{found.task} has no {args.what} yet ({found.file})")
    return 0


def _events(word: str, context: Context) -> int:
    from fleet.cli.ledger import line_of

    entries = context.front.history(word)
    if context.json:
        context.print_json([{"seq": entry.seq, "event": entry.event} for entry in entries])
    else:
        context.print_lines(line_of(entry) for entry in entries)
    return 0


def _diff(word: str, context: Context) -> int:
    found = context.front.diff(word)
    if context.json:
        context.print_json(found)
    else:
        context.print_text(found.diff)
    return 0


def _set(args: argparse.Namespace, context: Context) -> int:
    from fleet.cli.add import directory
    from fleet.cli.beads_queue import refuse_untaken
    from fleet.cli.show import terms_in_words
    from fleet.control.setting import parse_settings

    refuse_untaken(args.id, context, f"edit {context.home.tasks / args.id / 'task.json'}")
    if not args.pairs:
        raise UsageError("nothing to set", hint=f"fleet task {args.id} set coder=codex")
    pairs = [
        f"cwd={directory(pair[4:], 'cwd=')}" if pair.startswith("cwd=") and pair != "cwd=" else pair
        for pair in args.pairs
    ]
    before = context.control.reads.find(args.id)
    task = context.control.edit(before.uid, parse_settings(pairs, before.terms, context.settings.supervisor))
    if context.json:
        context.print_json(context.front.task(task.uid))
        return 0
    values = {"coder": task.coder, "model": task.model, "cwd": task.cwd, "priority": task.priority}
    said = [f"{k}={'(default)' if v is None else v}" for k, v in values.items()]
    context.print(f"{task.uid}: " + ", ".join([*said, *terms_in_words(task.terms)]))
    return 0
