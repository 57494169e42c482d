"""`fleet run SPEC` on a fleet that is served elsewhere: its supervisor runs it, in its directories; we look on."""

from __future__ import annotations

import argparse
import time
from typing import TYPE_CHECKING

from fleet.cli.contact import Contact

if TYPE_CHECKING:
    from fleet.cli.context import Context
    from fleet.front.stream import Stream
    from fleet.projections.feed import Begin

LOOK_SECONDS = 1.0  # between two looks at a run of which nothing is heard: times go on
REST_SECONDS = 0.1  # many events make one look
INTERRUPTED = 130


def submit(args: argparse.Namespace, context: Context) -> int:
    """Have it run there, and see it through."""
    from fleet.cli.words import count
    from fleet.config.specs.document import read
    from fleet.model.spec import DEFAULT_WORKERS
    from fleet.projections.feed import Begin

    if args.dry_run:
        context.here("--dry-run")
    document = read(args.verb)
    if args.alerts and isinstance(document.value, dict):
        document.value["alerts"] = read(args.alerts).value
    most = args.max_workers or DEFAULT_WORKERS
    made = context.front.submit(document, most, coder=args.coder, model=args.model)
    for warning in made.warnings:
        context.note(f"warning: {warning}")
    run_id = made.run.id
    if not context.json:
        context.note(f"Run {run_id}: {made.run.name}, {count(made.run.tasks, 'task')}, at most {most} at once")
    if not made.supervisors:
        context.note("no supervisor is running there: it waits for one")
    if args.detach:
        return _detached(run_id, context)
    return _see_through(run_id, context, Begin(since=made.run.created_at), quiet=args.quiet)


def go_on(args: argparse.Namespace, context: Context) -> int:
    """A run that is there already: follow it to its end."""
    from fleet.projections.feed import Begin

    run_id = context.front.run(args.run, 0).run.id
    if args.detach:
        return _detached(run_id, context)
    if not context.front.supervisors():
        context.note("no supervisor is running there: it waits for one")
    return _see_through(run_id, context, Begin(), quiet=args.quiet)


def _detached(run_id: str, context: Context) -> int:
    if context.json:
        context.print_json({"run": run_id, "pid": None})
    else:
        context.print(run_id)
        context.note(f"follow with: {context.fleet} wait {run_id}")
    return 0


def _see_through(run_id: str, context: Context, begin: Begin, *, quiet: bool) -> int:
    from contextlib import closing

    from fleet.cli.run_spec import conclude
    from fleet.projections.happened import Only

    contact = Contact(
        context, quiet=quiet or (context.redraws(context.err) and not context.json)
    )  # the table tells it too
    try:
        with closing(context.away.follow(begin, Only(run=run_id))) as following:
            _follow(run_id, context, following, contact, quiet=quiet)
        return contact.insist(lambda: conclude(run_id, context, quiet=quiet))
    except KeyboardInterrupt:
        again, end = f"{context.fleet} run --run {run_id}", f"{context.fleet} stop --run {run_id}"
        context.note(f"It runs on there. To follow it again: {again}   To end it: {end}")
        return INTERRUPTED


def _follow(run_id: str, context: Context, following: Stream, contact: Contact, *, quiet: bool) -> None:
    """Until it is over. A server that is away is waited for."""
    from contextlib import closing

    from fleet.cli.run_view import Lines, view_of

    front = context.front
    with closing(view_of(context, lambda: front.live(run_id), following, quiet=quiet)) as view:
        while not contact.attempt(lambda: front.run(run_id, 0).run.over, otherwise=False):
            following.wait(LOOK_SECONDS)
            time.sleep(REST_SECONDS)
            view.step()
            if not isinstance(view, Lines):
                following.more()  # they only wake it
        if isinstance(view, Lines):
            view.tell(contact.insist(following.rest))  # what is on its way yet
