"""Put a task in the queue.

The directory that you stand in is recorded with it: the agent will work there. With --url, name one there: --cwd.

Examples:
  fleet add "Fix the login page" -d "It loops after a wrong password." --priority 1
  fleet add "Release notes" -d @notes.md --needs fleet-abc --coder codex
"""

from __future__ import annotations

import argparse
import os
import sys
from typing import TYPE_CHECKING

from fleet.errors import UsageError

if TYPE_CHECKING:
    from fleet.cli.context import Context

MOST_BYTES = 10 << 20
TEXT_WAYS = "@FILE reads a file, - stdin; what begins with @@ is text as it stands"


def configure(parser: argparse.ArgumentParser) -> None:
    """The options of `fleet add`."""
    parser.add_argument("title", metavar="TITLE", help="one line that says what is to be done")
    parser.add_argument("-d", "--description", metavar="TEXT", default="", help=f"the details; {TEXT_WAYS}")
    parser.add_argument("--coder", metavar="C", help="who does it (else supervisor.coder of fleet.toml)")
    parser.add_argument("--model", metavar="M", help="with which model (else the coder's configured or own default)")
    parser.add_argument("--priority", metavar="0-4", type=int, default=2, help="0 is the most urgent; 2 if not given")
    parser.add_argument("--needs", metavar="ID", nargs="+", action="extend", default=[], help="must be completed first")
    parser.add_argument("--cwd", metavar="DIR", help="where the agent works (else the current directory)")
    parser.add_argument(
        "--isolation", choices=["none", "worktree"], help="work in place, or in a git worktree of its own"
    )
    parser.add_argument("-q", "--quiet", action="store_true", help="print only the id")
    parser.add_argument("--label", metavar="K=V", action="append", default=[], help="a word to find it by; repeatable")


def run(args: argparse.Namespace, context: Context) -> int:
    """Add the task and say its id."""
    from fleet.front.views import Add
    from fleet.model.task import check_priority

    if context.bd_keeps_the_queue:
        from fleet.cli import beads_queue

        if args.isolation:
            raise UsageError("beads keeps no isolation", hint="fleet config set supervisor.isolation=worktree")
        return beads_queue.add(args, context)
    description = read_text(args.description)
    task = context.front.add(
        Add(
            title=args.title,
            description=description,
            coder=args.coder,
            model=args.model or None,
            priority=check_priority(args.priority),
            needs=args.needs,
            cwd=args.cwd if context.url else directory(args.cwd),
            labels=labels(args.label),
            isolation=args.isolation,
        )
    )
    if (task.title, task.description) != (args.title, description):
        context.note("warning: what looks like a secret is not kept, and the agent will not see it")
    if context.json:
        context.print_json(task)
    elif args.quiet:
        context.print(task.id)
    else:
        coder = None if task.coder_inherited else task.coder
        model = None if task.model_inherited else task.model
        context.print(created(task.id, task.title, cwd=task.cwd, coder=coder, model=model))
    return 0


def created(uid: str, title: str, **parts: str | None) -> str:
    """The line that says that a task is there, with what was recorded of it."""
    noted = ", ".join(f"{name}: {value}" for name, value in parts.items() if value)
    return f"Created {uid}: {title}" + (f"  [{noted}]" if noted else "")


def read_text(word: str) -> str:
    """Text as given, from @FILE, or from stdin for `-`. A file whose name begins with @ is @./@NAME."""
    if word != "-" and (not word.startswith("@") or word.startswith("@@")):
        return word
    name = "stdin" if word == "-" else os.path.expanduser(word[1:])
    if word == "-" and sys.stdin is None:
        raise UsageError("stdin is closed")
    try:
        with open(sys.stdin.fileno() if word == "-" else name, "rb", closefd=word != "-") as file:
            data = file.read(MOST_BYTES + 1)
        if len(data) > MOST_BYTES:
            raise UsageError(f"{name} has more than {MOST_BYTES >> 20} MiB")
        return data.decode("utf-8").removeprefix("\ufeff")
    except OSError as exc:
        raise UsageError(
            f"{name} cannot be read: {exc.strerror}",
            hint="" if word == "-" else "@ reads a file; a text that begins with @ can be piped: -",
        ) from exc
    except UnicodeDecodeError as exc:
        raise UsageError(f"{name} is not text: {exc.reason} at byte {exc.start}") from exc


def directory(word: str | None, said: str = "--cwd ") -> str:
    """A directory that is there, as an absolute path. `said` is what stood before it."""
    try:
        path = os.path.abspath(os.path.expanduser(word if word is not None else os.getcwd()))
    except FileNotFoundError as exc:
        raise UsageError("the current directory no longer exists", hint="name another with --cwd") from exc
    if not os.path.isdir(path):
        raise UsageError(f"{said}{path} is not a directory")
    try:
        path.encode()
    except UnicodeEncodeError as exc:
        raise UsageError("the name of the directory is not UTF-8 text", hint="name another with --cwd") from exc
    return path


def labels(pairs: list[str]) -> dict[str, str]:
    """`area=web urgent` as labels; a bare word is a label without a value."""
    made = {}
    for pair in pairs:
        key, _, value = pair.partition("=")
        if not key.strip():
            raise UsageError(f"--label `{pair}` has no name", hint="write --label area=web")
        made[key.strip()] = value
    return made
