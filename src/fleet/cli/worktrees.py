"""The worktrees of tasks: list them, drop one whose work is committed, or bring a dropped one back.

Examples:
  fleet worktrees
  fleet worktrees --host builder-1
  fleet worktrees drop fleet-abc
"""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from fleet.cli.parsing import add_verb
from fleet.errors import UsageError

if TYPE_CHECKING:
    from fleet.cli.context import Context
    from fleet.control.landed import Dropped, Left, Tree

MOST_TOLD = 1000  # files of a worktree that a host tells of


def configure(parser: argparse.ArgumentParser) -> None:
    """The verbs of `fleet worktrees`."""
    parser.add_argument("--host", metavar="NAME", default="", help="list those of another host; else of this machine")
    verbs = parser.add_subparsers(dest="verb", metavar="VERB")
    drop = add_verb(verbs, "drop", "remove a worktree; its branch is kept apart", "fleet worktrees drop fleet-abc")
    drop.add_argument("id", metavar="ID", help="a task")
    add_ignored(drop)
    restore = add_verb(verbs, "restore", "bring a dropped worktree back", "fleet worktrees restore fleet-abc")
    restore.add_argument("id", metavar="ID", help="a task")


def add_ignored(parser: argparse.ArgumentParser) -> None:
    """What becomes of the files that git ignores, where a worktree goes."""
    parser.add_argument(
        "--ignored",
        choices=["keep", "discard"],
        help="put aside all that git ignores, or none; else up to 16 MiB of what no program makes anew",
    )


def note_left(context: Context, left: Left) -> None:
    """Tell what became of them."""
    from fleet.hosts.ignored import told

    if left.kept:
        context.note(f"what git ignores was put aside in {left.place}: {told(left.kept)}")
    if left.gone:
        context.note(f"what git ignores is gone with it: {told(left.gone)}")


def run(args: argparse.Namespace, context: Context) -> int:
    """Print them, or do what was asked to one."""
    if args.verb is None:
        return _list(context, args.host)
    context.here(f"`fleet worktrees {args.verb}`")
    if args.host:
        raise UsageError("--host is for the list", hint="a task's worktree is found wherever it is")
    landing = context.landing
    tree = landing.drop(args.id, args.ignored) if args.verb == "drop" else landing.restore(args.id)
    if context.json:
        context.print_json(tree)
    elif args.verb == "drop":
        context.print(f"Dropped {_place(tree)}; `fleet worktrees restore {args.id}` brings it back")
        note_left(context, tree.left)
    else:
        context.print(f"Restored {_place(tree)} on branch {tree.branch}")
    return 0


def _list(context: Context, host: str) -> int:
    trees = context.front.worktrees(host)
    if context.json:
        context.print_json(trees)
        return 0
    if not trees:
        context.note('no task has a worktree; isolation = "worktree" gives it one')
    for tree in trees:
        context.print(
            f"{tree.task}  {tree.state.value if tree.state else '-':9}  {_work(tree)}  {_place(tree)}  {tree.title}"
        )
    return 0


def _place(tree: Tree | Dropped) -> str:
    return f"{tree.host}:{tree.path}" if tree.host else tree.path


def _work(tree: Tree) -> str:
    if tree.problem:
        return tree.problem
    commits = f"{tree.commits} commit{'' if tree.commits == 1 else 's'}"
    more = "+" if len(tree.dirty) + len(tree.ignored) >= MOST_TOLD else ""
    dirty = f", {len(tree.dirty)}{more} uncommitted" if tree.dirty else ""
    return f"{commits}{dirty}, {len(tree.ignored)}{more} ignored" if tree.ignored else f"{commits}{dirty}"
