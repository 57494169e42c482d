"""Look at this machine and this home: what is there, what is missing, and the command that mends it.

Nothing is changed. Ends with exit code 1 when something will not work.

Examples:
  fleet doctor
  fleet doctor --json
"""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from fleet.errors import FleetError

if TYPE_CHECKING:
    from fleet.cli.context import Context
    from fleet.config.settings import Settings


def configure(parser: argparse.ArgumentParser) -> None:
    """`fleet doctor` has no options of its own."""


def run(args: argparse.Namespace, context: Context) -> int:
    """A line for each thing that was looked at."""
    from fleet import wiring
    from fleet.cli.words import printable
    from fleet.config.environment import environ
    from fleet.projections.doctor import Level, checkup

    checks = checkup(
        context.home,
        _settings(context),
        open_reads=lambda: wiring.open_reads(context.home, context.settings),
        supervisor=_supervisor(context),
        env=environ(),
    )
    failed = [check for check in checks if check.level is Level.FAIL]
    if context.json:
        context.print_json({"ok": not failed, "checks": checks})
        return int(bool(failed))
    for check in checks:
        context.print(f"{check.level.value:<4}  {check.what}: {printable(check.detail)}")
        if check.hint:
            context.print(f"      mend it with: {check.hint}")
    if failed:
        context.note(f"{', '.join(check.what for check in failed)}: something will not work")
    return int(bool(failed))


def _supervisor(context: Context) -> int | None:
    """The process that supervises, if any. Who may not look is told of that by the check of the home."""
    from fleet.supervisor.guard import holders

    try:
        return next((one.pid for one in holders(context.home.path)), None)
    except PermissionError:
        return None


def _settings(context: Context) -> Settings | FleetError:
    try:
        return context.settings
    except FleetError as exc:
        return exc
