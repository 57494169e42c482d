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
    from fleet.cli.screen.app import Top


def configure(parser: argparse.ArgumentParser) -> None:
    """`fleet top` has no options of its own."""


def run(args: argparse.Namespace, context: Context) -> int:
    """Draw until somebody quits."""
    from fleet.config.environment import environ
    from fleet.config.home import require

    if not context.url:
        require(context.home)
    if context.json:
        context.print_json(context.front.board())
        return 0
    if not (context.out.isatty() and sys.stdin.isatty()) or environ().get("TERM", "dumb") == "dumb":
        raise UsageError(
            "fleet top needs a terminal", hint="`fleet status` prints once; `fleet watch` follows in lines"
        )
    try:
        import fleet.cli.screen.app  # noqa: F401
    except ModuleNotFoundError as exc:
        if exc.name is None or not exc.name.startswith("textual"):
            raise
        raise ProgramMissing(
            "fleet top needs Textual, which is not installed",
            hint="pip install textual; without it: fleet watch, fleet tasks --watch",
        ) from exc
    app = _away(context) if context.url else _here(context)
    app.run()
    return app.return_code or 0


def _here(context: Context) -> Top:
    from fleet.cli.screen.app import Top
    from fleet.cli.screen.desk import Desk

    return Top(Desk(context.home))


def _away(context: Context) -> Top:
    from fleet.cli.screen.app import Top
    from fleet.cli.screen.away import POLL_SECONDS, AwayDesk

    front = context.away
    front.supervisors()  # a server that cannot be asked is told of here, and not on a screen
    desk = AwayDesk(front, context.away_flags)
    return Top(desk, clock=desk.clock, poll_seconds=POLL_SECONDS)
