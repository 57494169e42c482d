"""Say why a task is where it is, and what you may do now.

It is read from the ledger: the state, the event that is evidence for it, what the task waits for, how its last session
ended and what helps, how many attempts are left.

Trouble is transient (it passes by itself or with another try), of the task, of its verifier, or needs a person.

Examples:
  fleet why fleet-abc
  fleet why abc --json
"""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from fleet.cli.context import Context
    from fleet.projections.why import Why


def configure(parser: argparse.ArgumentParser) -> None:
    """The options of `fleet why`."""
    parser.add_argument("id", metavar="ID", help="a task, or one of its sessions")


def run(args: argparse.Namespace, context: Context) -> int:
    """The answer, in words or as an object."""
    from fleet.cli.beads_queue import refuse_untaken

    refuse_untaken(args.id, context, f"see it with `fleet bd show {args.id}`")
    found = context.front.why(args.id)
    if context.json:
        context.print_json(found)
    else:
        context.print("\n".join(_lines(found)))
    return 0


def _lines(found: Why) -> list[str]:
    from fleet.cli.words import ago, count, span, when
    from fleet.config.clock import utc_ms

    event = found.evidence
    rows = [
        ("why", found.summary),
        ("since", f"{when(found.since)} ({ago(found.since)})"),
        ("evidence", f"event {event.seq}, {event.kind}, by {event.by}"),
        ("trouble", found.classification or ""),
        ("waits for", ", ".join(f"{need.id} ({need.state})" for need in found.waits_for)),
        *(("worker", f"{each.worker}: {each.reason}") for each in found.workers),
        ("asked", ", ".join(found.asked)),
        ("next", f"{when(found.next_at)} (in {span(found.next_at - utc_ms())})" if found.next_at else ""),
        ("paused", f"{found.paused_coder}, until then" if found.paused_coder else ""),
        ("last", f"{found.last.session} ended as {found.last.outcome}" if found.last else ""),
        ("remedy", found.last.remedy if found.last and _is_in_trouble(found) else ""),
        (
            "attempts",
            f"{found.attempts_used} used, {found.attempts_left} left, {count(found.sessions, 'session')}"
            + ("" if found.retry_safe else "; not safe to run twice")
            if found.sessions
            else "",
        ),
        ("you may", found.action),
    ]
    head = f"{found.id} is {found.state.value}: {found.title}"
    return [head, *(f"  {name + ':':<10} {value}" for name, value in rows if value)]


def _is_in_trouble(found: Why) -> bool:
    """Whether the end of its last session is what is wrong; not while another is at work."""
    well = found.last is None or found.last.outcome == "ok"
    return bool(found.classification) and not well and found.state.value not in ("running", "verifying")
