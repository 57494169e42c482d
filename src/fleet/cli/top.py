"""A screen to steer a fleet from: what needs you first, then what runs, what is queued, and the hosts.

Keys: up and down choose a task; p peeks at what its agent says, a answers what it asks, t attaches the terminal to its
log, i interrupts it, r restarts it, s stops it, / filters, ? helps, q quits. The screen follows every change at once.
With --json the board is printed once.

Examples:
  fleet top
  fleet top --json
"""

from __future__ import annotations

import argparse
import sys
from typing import TYPE_CHECKING

from fleet.errors import ProgramMissing, UsageError

if TYPE_CHECKING:
    from fleet.cli.context import Context


def configure(parser: argparse.ArgumentParser) -> None:
    """`fleet top` has no options of its own."""


def run(args: argparse.Namespace, context: Context) -> int:
    """Draw until somebody quits."""
    from fleet.config.environment import environ
    from fleet.config.home import require

    home = require(context.home)
    if context.json:
        return _print(context)
    if not (context.out.isatty() and sys.stdin.isatty()) or environ().get("TERM", "dumb") == "dumb":
        raise UsageError(
            "fleet top needs a terminal", hint="`fleet status` prints once; `fleet watch` follows in lines"
        )
    try:
        from fleet.cli.screen.app import Top
    except ModuleNotFoundError as exc:
        if exc.name is None or not exc.name.startswith("textual"):
            raise
        raise ProgramMissing(
            "fleet top needs Textual, which is not installed",
            hint="pip install textual; without it: fleet watch, fleet tasks --watch",
        ) from exc
    from fleet.cli.screen.desk import Desk

    app = Top(Desk(home))
    app.run()
    return app.return_code or 0


def _print(context: Context) -> int:
    from fleet.cli.words import now_ms
    from fleet.hosts.machine import local_host
    from fleet.projections.board import board

    found = board(context.reads, context.settings, context.home, machine=local_host(), now=now_ms())
    context.print_json(found)
    return 0
