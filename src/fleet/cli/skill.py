"""The skills that come with Fleet, for agents that look after it: list them, install them.

`fleet-manager` is the runbook: classify what is in trouble, one action each, escalate, sum up. `orchestrator` hands out
work and sees it through. They are put where Claude Code looks for them, ~/.claude/skills; `--dir .claude/skills` is for
one project. Installing again brings them up to date. One that you changed is left alone: --force replaces it, and keeps
yours beside it. To take one away, remove its directory.

Examples:
  fleet skill list
  fleet skill install --dir .claude/skills
"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING

from fleet.cli.parsing import add_verb

if TYPE_CHECKING:
    from fleet.cli.context import Context

DIRECTORY = "~/.claude/skills"
DID = {"absent": "Installed", "current": "Up to date:", "older": "Updated", "edited": "Replaced"}


def configure(parser: argparse.ArgumentParser) -> None:
    """The verbs of `fleet skill`."""
    verbs = parser.add_subparsers(dest="verb", metavar="VERB", required=True)
    shown = add_verb(verbs, "list", "the skills, and how each stands in the directory", "fleet skill list --json")
    install = add_verb(
        verbs, "install", "write them, or bring them up to date", "fleet skill install fleet-manager --force"
    )
    install.add_argument("names", metavar="NAME", nargs="*", help="only these")
    install.add_argument("--force", action="store_true", help="also those that were changed; yours is kept beside")
    for verb in (shown, install):
        verb.add_argument("--dir", metavar="DIR", default=DIRECTORY, help=f"where agents look ({DIRECTORY})")


def run(args: argparse.Namespace, context: Context) -> int:
    """List, or install."""
    from fleet.control.skills.installing import install, listed

    directory = Path(args.dir).expanduser().absolute()
    if args.verb == "list":
        found = listed(directory)
        if context.json:
            context.print_json(found)
            return 0
        for one in found:
            context.print(f"{one.name}  {one.state} in {directory}")
            context.print(f"  {one.description}")
        return 0
    before = install(args.names, directory, force=args.force)
    if context.json:
        context.print_json(listed(directory))
        return 0
    for one in before:
        context.print(f"{DID[one.state]} {one.path}")
    return 0
