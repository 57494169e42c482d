"""What the commands that steer share: whom they concern, and how what was decided is told."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING, TypeVar

from fleet.errors import Ambiguous, Conflict, NotFound

if TYPE_CHECKING:
    from collections.abc import Callable

    from fleet.cli.context import Context
    from fleet.model.intent import Intent

T = TypeVar("T")
DOING = {"interrupt": "Interrupting", "restart": "Restarting", "stop": "Stopping"}


def add_target(parser: argparse.ArgumentParser, reason: str) -> None:
    """Whom it concerns, and why."""
    parser.add_argument("ids", metavar="ID", nargs="+", help="a task, its session, or the worker that has it")
    add_reason(parser, reason)


def add_reason(parser: argparse.ArgumentParser, reason: str) -> None:
    """Why; it stands in the ledger."""
    parser.add_argument("--reason", metavar="TEXT", default=reason, help="stands in the ledger, with who asked")


def each(words: list[str], verb: Callable[[str], T], context: Context) -> tuple[list[T], int]:
    """Do it to each by itself: what is refused is told, and the others are done. What was done, and the exit code."""
    from fleet.cli.app import report

    if len(words) == 1:
        return [verb(words[0])], 0
    done, code = [], 0
    for word in words:
        try:
            done.append(verb(word))
        except (Ambiguous, Conflict, NotFound) as exc:  # of this one; anything else is in the way of all
            report(exc, context)
            code = code or exc.exit_code
    return done, code


def asked_words(intent: Intent) -> str:
    """That its supervisor was asked."""
    return f"{DOING[intent.verb]} {intent.target}: its supervisor has been asked"


def tell_asked(context: Context, intent: Intent) -> None:
    """The same, printed."""
    context.print(asked_words(intent))


def note_absence(context: Context) -> None:
    """After a supervisor was asked: that none is there to do it yet. One that ends with its work may have done it."""
    from fleet.model.states import IN_PROGRESS

    front = context.front
    if not front.supervisors() and any(front.counts().get(state.value) for state in IN_PROGRESS):
        context.note("no supervisor is running: it is done as soon as one is, `fleet run`")
