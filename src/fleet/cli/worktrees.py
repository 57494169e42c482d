"""The worktrees of tasks: list them, drop one whose work is committed, or bring a dropped one back.

Examples:
  fleet worktrees
  fleet worktrees drop fleet-abc
"""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from fleet.cli.parsing import add_verb

if TYPE_CHECKING:
    from fleet.cli.context import Context
    from fleet.control.landing import Tree


def configure(parser: argparse.ArgumentParser) -> None:
    """The verbs of `fleet worktrees`."""
    verbs = parser.add_subparsers(dest="verb", metavar="VERB")
    drop = add_verb(verbs, "drop", "remove a worktree; its branch is kept apart", "fleet worktrees drop fleet-abc")
    drop.add_argument("id", metavar="ID", help="a task")
    restore = add_verb(verbs, "restore", "bring a dropped worktree back", "fleet worktrees restore fleet-abc")
    restore.add_argument("id", metavar="ID", help="a task")


def run(args: argparse.Namespace, context: Context) -> int:
    """Print them, or do what was asked to one."""
    if args.verb is None:
        return _list(context)
    tree = context.landing.drop(args.id) if args.verb == "drop" else context.landing.restore(args.id)
    if context.json:
        context.print_json(tree)
    elif args.verb == "drop":
        context.print(f"Dropped {tree.path}; `fleet worktrees restore {args.id}` brings it back")
    else:
        context.print(f"Restored {tree.path} on branch {tree.branch}")
    return 0


def _list(context: Context) -> int:
    trees = context.landing.standing()
    if context.json:
        context.print_json(trees)
        return 0
    if not trees:
        context.note('no task has a worktree; isolation = "worktree" gives it one')
    for tree in trees:
        context.print(f"{tree.task}  {tree.state.value:9}  {_work(tree)}  {tree.path}  {tree.title}")
    return 0


def _work(tree: Tree) -> str:
    if tree.problem:
        return tree.problem
    commits = f"{tree.commits} commit{'' if tree.commits == 1 else 's'}"
    return f"{commits}, {len(tree.dirty)} uncommitted" if tree.dirty else commits
