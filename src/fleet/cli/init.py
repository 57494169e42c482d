"""Make the home, or repair it.

Safe to run again: what is there stays. With --here the home is ./.fleet, and goes on your trusted list; a `.fleet/`
that is not on it, such as one in a cloned repository, is never used. With --force what is damaged is repaired:
modes are set, a broken fleet.toml is kept aside, and nothing is deleted.

Examples:
  fleet init
  fleet init --here
"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING

from fleet.errors import HomeError, UsageError

if TYPE_CHECKING:
    from fleet.cli.context import Context
    from fleet.config.home import Home


def configure(parser: argparse.ArgumentParser) -> None:
    """The options of `fleet init`."""
    parser.add_argument("--here", action="store_true", help="make the home ./.fleet, and trust it")
    parser.add_argument("--force", action="store_true", help="repair what is damaged or missing")


def run(args: argparse.Namespace, context: Context) -> int:
    """Prepare the home and say where it is."""
    from fleet import wiring
    from fleet.config.home import untrusted_note
    from fleet.config.load import load
    from fleet.control.home import prepare

    home = _here(context) if args.here else context.home
    prepared = prepare(
        home,
        force=args.force,
        open_store=lambda force: wiring.prepare_store(home, load(home), force=force),
        init_beads=lambda force: wiring.init_beads(home, load(home), force),
        owner=wiring.whoami(),
    )
    notes = list(prepared.notes)
    if args.here:
        notes += _trust(home, created=prepared.created)
    notes += filter(None, [untrusted_note(home)])
    if context.json:
        context.print_json({"home": str(home.path), "created": prepared.created, "notes": notes})
        return 0
    context.print(f"Fleet home initialized at {home.path}")
    for note in notes:
        context.note(f"note: {note}")
    return 0


def _here(context: Context) -> Home:
    from fleet.config.home import NAME, Home

    if context.home_flag is not None:
        raise UsageError("--here and --home name two homes; give one of them")
    try:
        return Home(Path.cwd() / NAME)
    except FileNotFoundError as exc:
        raise HomeError("the current directory no longer exists") from exc


def _trust(home: Home, *, created: bool) -> list[str]:
    from fleet.config.environment import environ
    from fleet.config.trust import trust
    from fleet.control.home import keep_out_of_git

    keep_out_of_git(home)
    notes = []
    if trust(home.path, environ()) and not created:
        notes.append(f"{home.path} was there already and is trusted from now on")
    if environ().get("FLEET_HOME"):
        notes.append("$FLEET_HOME is set and goes before ./.fleet; unset it to use this home")
    return notes
