"""List what agents ask of a person, and every other task that waits for one.

Examples:
  fleet questions
  fleet answer fleet-abc "Use the staging database."
"""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from fleet.cli.context import Context


def configure(parser: argparse.ArgumentParser) -> None:
    """`fleet questions` has no options of its own."""


def run(args: argparse.Namespace, context: Context) -> int:
    """The oldest of the most urgent first."""
    from fleet.cli.words import ago

    found = context.front.questions()
    if context.json:
        context.print_json(found)
        return 0
    for question in found:
        context.print(f"{question.id}  {question.title}")
        context.print(
            f"  {question.kind}, {ago(question.asked_at)}, by {question.asked_by}: {_indented(question.text)}"
        )
    if not found:
        context.note("nothing waits for you")
    return 0


def _indented(text: str) -> str:
    return text.replace("\n", "\n    ")
