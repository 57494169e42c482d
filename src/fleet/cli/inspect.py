"""One worker at its task: its state and the evidence for it, the latest event, artifacts, receipt, error and alert.

W is a worker (`nightly-abc-local-1`), a task or a session; for a worker that is idle, what it did last is shown.

Examples:
  fleet inspect nightly-abc-local-1
  fleet inspect fleet-abc --json
"""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

    from fleet.cli.context import Context
    from fleet.projections.inspect import Inspection

MOST_ARTIFACTS = 24
LONGEST = 500  # characters of a line


def configure(parser: argparse.ArgumentParser) -> None:
    """The options of `fleet inspect`."""
    parser.add_argument("id", metavar="W", help="a worker, a task or a session")


def run(args: argparse.Namespace, context: Context) -> int:
    """A line for each thing that is known."""
    from fleet.cli.transcript import one_line
    from fleet.cli.words import printable

    found = context.front.inspect(args.id)
    if context.json:
        context.print_json(found)
        return 0
    rows = list(_rows(found))
    width = max(len(name) for name, _ in rows)
    for name, text in rows:
        context.print(f"{name:<{width}}  {printable(one_line(text, LONGEST))}")
    return 0


def _rows(found: Inspection) -> Iterator[tuple[str, str]]:
    from fleet.cli.run_view import dollars
    from fleet.cli.words import ago

    stale = f"; stale: {found.stale_reason}" if found.stale else ""
    yield "worker", found.worker or "-"
    yield "state", found.state + stale
    yield "run", found.run or "-"
    yield (
        "task",
        f"{found.task} ({found.task_id}): {found.title}"
        if found.task_id != found.task
        else (f"{found.task}: {found.title}"),
    )
    yield "task state", f"{found.task_state}: {found.reason}" if found.reason else found.task_state
    yield "objective", found.objective or "-"
    yield "role", found.role or "-"
    yield "host", found.host or "-"
    coder = f"{found.coder}/{found.model}" if found.model else found.coder or "-"
    kind = "verifier of attempt" if found.kind == "verify" else "attempt"
    yield "session", f"{found.session}, {kind} {found.attempt}, {coder}" if found.session else "-"
    beat = found.heartbeat
    yield "heartbeat", f"{ago(beat.at)}: {beat.evidence}" if beat else "-"
    event = found.latest_event
    yield "latest event", f"#{event.seq} {event.kind}, {ago(event.at)}, by {event.by}" if event else "-"
    yield "used", f"{found.tokens:,} tokens, {dollars(found.cost_microusd)}"
    for ref in found.artifacts[:MOST_ARTIFACTS]:
        yield "artifact", f"{ref.kind}  {ref.path}  {ref.size} bytes  sha256 {ref.sha256[:12]}"
    receipt = found.receipt
    if receipt is not None:
        source = f" ({receipt.source.value})" if receipt.source else ""
        yield "receipt", f"{receipt.id}: {receipt.result.value}{source}: {receipt.reason}"
    else:
        yield "receipt", "-"
    yield "latest error", found.latest_error or "-"
    yield "alert", f"{found.alert.kind}, {ago(found.alert.at)}: {found.alert.reason}" if found.alert else "-"
