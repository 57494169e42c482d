"""What the commands that steer share: whom they concern, and how what was decided is told."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING, TypeVar

from fleet.errors import FleetError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

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


def each(given: Iterable[T | FleetError], context: Context, tell: Callable[[T], object]) -> tuple[list[T], int]:
    """Tell of each as it is done, and of what is refused. What was done, and the exit code."""
    from fleet.cli.app import report

    done: list[T] = []
    code = 0
    for one in given:
        if isinstance(one, FleetError):
            report(one, context)
            code = code or one.exit_code
            continue
        done.append(one)
        if not context.json:
            tell(one)
    return done, code


def print_each(done: list[T], context: Context, asked: list[str]) -> None:
    """What was done as JSON: a list, or what one id was asked for; nothing where that was refused."""
    if len(asked) > 1:
        context.print_json(done)
    elif done:
        context.print_json(done[0])


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
