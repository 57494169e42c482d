"""The beads verbs: on Fleet's own queue, or on the real bd where `[queue] source = "beads"`.

The words after `bd` are bd's own. On the real bd they are passed on as they are; on Fleet's own queue the verbs of
daily work are understood: create, list, ready, show, update, close, reopen, dep, comment, label and more.
`create` also takes --coder, --model and --cwd, and keeps the current directory with the task.

Examples:
  fleet bd create "Fix the login page" -p 1 --coder codex --model o3
  fleet bd ready --json
"""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from fleet.errors import FleetError, UsageError

if TYPE_CHECKING:
    from fleet.cli.beads.call import Call
    from fleet.cli.context import Context

VALUED = ("--actor", "--db", "--database", "-C", "--directory", "--dolt-auto-commit", "--mem-profile")


def configure(parser: argparse.ArgumentParser) -> None:
    """For the reference only: the words are bd's."""
    parser.add_argument("words", metavar="...", nargs=argparse.REMAINDER, help="a verb of bd, and what it takes")


def run_raw(argv: list[str], context: Context) -> int:
    """Carry out one call of bd."""
    before, verb, after = split(argv)
    if context.settings.queue.source == "beads":
        from fleet.cli.beads import forward

        return forward.run(before, verb, after, context)
    code = _run(before, verb, after, context)
    context.out.flush()
    return code


def split(argv: list[str]) -> tuple[list[str], str | None, list[str]]:
    """The flags before the verb, the verb, and the rest."""
    place = 0
    while place < len(argv) and argv[place].startswith("-"):
        place += 2 if argv[place] in VALUED else 1
    return argv[:place], argv[place] if place < len(argv) else None, argv[place + 1 :]


def _run(before: list[str], word: str | None, after: list[str], context: Context) -> int:
    """A verb on Fleet's own queue."""
    from fleet.cli.beads import verbs
    from fleet.cli.beads.call import Call
    from fleet.cli.beads.flags import REAL_BD, parse

    if word in (None, "help"):
        asked = verbs.find(after[0]) if word == "help" and after else None
        if word is None and any(flag in before for flag in ("-V", "--version")):
            return _run([], "version", [], context)
        context.out.write(verbs.help_of(asked) if asked else verbs.overview())
        return 0
    verb = verbs.find(str(word))
    if verb is None:
        raise UsageError(f'unknown command "{word}" for "bd"', hint=REAL_BD)
    given = parse([*before, *after], verb.flags, verb.name)
    if given.on("help"):
        context.out.write(verbs.help_of(verb))
        return 0
    call = Call(given, context)
    try:
        return verb.run(call)
    except FleetError as exc:
        return _refuse(call, exc)
    finally:
        call.close()


def _refuse(call: Call, exc: FleetError) -> int:
    """Say why not: in words on stderr, and with --json in bd's envelope too."""
    from fleet.projections.beads import envelope

    call.note(f"Error: {exc}")
    if exc.hint:
        call.note(f"hint: {exc.hint}")
    if call.json:
        call.context.print_json(envelope({"error": str(exc)} | ({"hint": exc.hint} if exc.hint else {})))
    return exc.exit_code
