"""Bring what a task did in its worktree into the checkout that it began from.

What it has not committed is committed on its branch first. Where there is a conflict, it is told and nothing changes.
What git ignores is put aside when the worktree goes; what a program makes anew, such as node_modules, goes with it.
Of a task that ran on another host that checkout is on the host; --into brings the work to one of this machine.

Examples:
  fleet land fleet-abc
  fleet land fleet-abc --into . --keep
"""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from fleet.cli.worktrees import add_ignored, note_left

if TYPE_CHECKING:
    from fleet.cli.context import Context
    from fleet.control.landed import How


def configure(parser: argparse.ArgumentParser) -> None:
    """The options of `fleet land`."""
    parser.add_argument("id", metavar="ID", help="a task that has passed")
    parser.add_argument("--apply", action="store_true", help="change the files only, without a merge commit")
    parser.add_argument(
        "--into", metavar="DIR", help="a checkout of this machine that gets the work, wherever it was done"
    )
    parser.add_argument("--keep", action="store_true", help="leave the worktree and its branch in place")
    add_ignored(parser)


def run(args: argparse.Namespace, context: Context) -> int:
    """Land it, and say where."""
    how: How = "apply" if args.apply else "merge"
    landed = context.landing.land(args.id, how, into=args.into, keep=args.keep, ignored=args.ignored)
    if context.json:
        context.print_json(landed)
        return 0
    what = "applied to" if landed.how == "apply" else "merged into"
    where = f"{landed.host}:{landed.into}" if landed.host else landed.into
    if landed.commits:
        context.print(f"Landed {landed.task}: {what} {where}  [{landed.commit[:12]}]")
    else:
        context.print(f"Nothing to land: {landed.task} changed nothing")
    if landed.commits and landed.how == "merge" and not landed.branch:
        context.note(f"no branch is checked out there; to keep the merge: git -C {landed.into} switch -c NAME")
    for remark in landed.remarks:
        context.note(remark)
    if landed.why:
        context.note(f"its worktree stays: {landed.why}; `fleet worktrees drop {landed.task}` when that is seen to")
    elif not landed.kept:
        context.note(f"its worktree is gone; `fleet worktrees restore {landed.task}` brings it back")
        note_left(context, landed.left)
    return 0
