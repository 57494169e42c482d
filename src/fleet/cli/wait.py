"""Wait until a run is over: it has ended, or what is left of it waits for a person.

The exit code says what came of it: 0 all passed, 1 something failed, 3 not finished (also when the time is up).

Examples:
  fleet wait nightly-abc
  fleet wait nightly-abc --timeout 600 --json
"""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from fleet.cli.parsing import positive

if TYPE_CHECKING:
    from fleet.cli.context import Context

NOT_FINISHED = 3
LOOK_SECONDS = 1.0  # the safety net; the bell wakes us at once


def configure(parser: argparse.ArgumentParser) -> None:
    """The options of `fleet wait`."""
    parser.add_argument("run", metavar="RUN", help="the run to wait for")
    parser.add_argument("--timeout", metavar="S", type=positive, help="wait at most S seconds")
    parser.add_argument("-q", "--quiet", action="store_true", help="print nothing; the exit code tells")


def run(args: argparse.Namespace, context: Context) -> int:
    """Look until it is over."""
    import time

    from fleet.cli.contact import Contact
    from fleet.cli.run_spec import conclude

    front = context.front
    found = front.run(args.run, 0).run
    run_id = found.id
    deadline = time.monotonic() + args.timeout if args.timeout else None
    if not found.over and not front.supervisors() and not args.quiet:
        context.note(f"no supervisor is running; to begin: fleet run --run {run_id}")
    contact = Contact(context, quiet=args.quiet)
    bell = front.listen()
    try:
        while not contact.attempt(lambda: front.run(run_id, 0).run.over, otherwise=False):
            left = LOOK_SECONDS if deadline is None else min(LOOK_SECONDS, deadline - time.monotonic())
            if left <= 0:
                if not args.quiet:
                    context.note(f"{run_id} is not over after {args.timeout} s")
                conclude(run_id, context, quiet=args.quiet)
                return NOT_FINISHED
            bell.wait(left)
    finally:
        bell.close()
    return contact.insist(lambda: conclude(run_id, context, quiet=args.quiet))
