"""List the runs, the newest first: how each stands, or what came of it. `fleet status --run R` tells more of one.

Examples:
  fleet runs
  fleet runs --limit 5 --json
"""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from fleet.cli.parsing import positive

if TYPE_CHECKING:
    from fleet.cli.context import Context
    from fleet.projections.runs import RunView

COLUMNS = ("RUN", "STATE", "SUBMITTED", "TOOK", "TASKS", "NAME")


def configure(parser: argparse.ArgumentParser) -> None:
    """The options of `fleet runs`."""
    parser.add_argument("--limit", metavar="N", type=positive, default=20, help="at most N (20 if not given)")


def run(args: argparse.Namespace, context: Context) -> int:
    """A line for each; with --json also the counts of all tasks, as the API gives them."""
    from msgspec.structs import replace

    from fleet.cli.words import aligned, shown

    found = context.front.runs(args.limit + 1)  # one more than is shown: whether there is more
    listed = found.runs[: args.limit]
    if context.json:
        context.print_json(replace(found, runs=listed))
        return 0
    if not listed:
        context.note("there are no runs yet; `fleet run SPEC` makes one")
        return 0
    for line in aligned([COLUMNS, *(_row(each) for each in listed)]):
        context.print(line)
    if len(found.runs) > args.limit:
        context.note(shown(args.limit))
    if any(not each.over for each in listed) and not context.front.supervisors():
        context.note("no supervisor is running: fleet run")
    return 0


def _row(run: RunView) -> tuple[str, ...]:
    from fleet.cli.words import printable, span, when
    from fleet.config.clock import utc_ms

    waits = run.over and run.ended_at is None  # nothing of it goes on by itself
    counted = [f"{run.counts[name]} {name}" for name in ("completed", "failed", "cancelled") if run.counts[name]]
    if run.left:
        counted.append(f"{run.left} left")
    return (
        run.id,
        "waits for you" if waits else run.state.value,
        when(run.created_at),
        span((run.ended_at or utc_ms()) - run.created_at),
        ", ".join(counted) or "none",
        printable(run.name),
    )
