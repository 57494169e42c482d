"""List tasks: those in progress, or those in the states that you name.

A coder or model that a task names itself is bold; one that it inherits from fleet.toml is dim.

Examples:
  fleet tasks
  fleet tasks --status queued,blocked --limit 20
"""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from fleet.cli.parsing import positive
from fleet.errors import UsageError

if TYPE_CHECKING:
    from fleet.cli.context import Context
    from fleet.model.states import TaskState
    from fleet.projections.queue import TaskLine


def configure(parser: argparse.ArgumentParser) -> None:
    """The options of `fleet tasks`."""
    parser.add_argument("--limit", metavar="N", type=positive, default=100, help="at most N (100 if not given)")
    parser.add_argument(
        "--status", metavar="S", help="states, with commas between; `all` for any (else those in progress)"
    )


def run(args: argparse.Namespace, context: Context) -> int:
    """A table, or the lines as objects."""
    from fleet.cli import beads_queue
    from fleet.cli.words import now_ms
    from fleet.projections.queue import lines

    if beads_queue.keeps_the_queue(context):
        return beads_queue.tasks(args, context)
    states = parse_states(args.status)
    found = lines(context.reads, context.settings, states=states, limit=args.limit, now=now_ms())
    if context.json:
        context.print_json(found)
        return 0
    if not found:
        context.note(_nothing(args.status, context))
        return 0
    print_table(found, context)
    return 0


def _nothing(asked: str | None, context: Context) -> str:
    if asked is not None:
        return f"no task is {asked.replace(',', ' or ')}"
    queued = context.reads.counts().get("queued", 0)
    return "no task is in progress" + (f"; {queued} queued: fleet tasks --status queued" if queued else "")


def parse_states(word: str | None) -> frozenset[TaskState] | None:
    """`queued,blocked` as states; None: any."""
    from fleet.model.states import IN_PROGRESS, TaskState

    if word is None:
        return IN_PROGRESS
    if word == "all":
        return None
    known = {state.value: state for state in TaskState}
    names = [name.strip() for name in word.split(",")]
    for name in names:
        if name not in known:
            raise UsageError(f"unknown state `{name}`", hint=f"states: {', '.join(known)}, all")
    return frozenset(known[name] for name in names)


def print_table(found: list[TaskLine], context: Context) -> None:
    """The table of tasks; the columns of a session only when one is shown."""
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    from fleet.cli.words import span, when

    live = any(line.started_at for line in found)
    table = Table(box=None, pad_edge=False, header_style="bold")
    session = ("Started", "Elapsed", "Idle", "Context", "Events") if live else ()
    for name in ("ID", "Status", *session, "Coder", "Model", "Title", "cwd"):
        table.add_column(name, no_wrap=name not in ("Title", "cwd"), overflow="fold")
    for line in found:
        facts = []
        if live and line.started_at:
            facts = [when(line.started_at)[11:], span(line.elapsed_ms or 0), span(line.idle_ms or 0)]
            facts += [f"{line.peak_context_tokens or 0:,}", str(line.events or 0)]
        elif live:
            facts = ["", "", "", "", ""]
        table.add_row(
            line.id,
            line.state.value,
            *facts,
            Text(line.coder, style="dim" if line.coder_inherited else "bold"),
            Text(line.model or "-", style="dim" if line.model_inherited else "bold"),
            Text(line.title),
            Text(line.cwd or "-"),
        )
    width = None if context.out.isatty() else 250
    console = Console(
        file=context.out,
        color_system="auto" if context.colour else None,  # None: no escape codes at all, not even bold
        highlight=False,
        width=width,
    )
    console.print(table)
