"""Wait until a run or a task is over: it has ended, or what is left of it waits for a person.

The exit code says what came of it: 0 all passed, 1 something failed, 3 not finished (also when the time is up).

Examples:
  fleet wait nightly-abc
  fleet wait fleet-abc --timeout 600 --json
"""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING, NamedTuple

from fleet.cli.parsing import positive
from fleet.errors import NotFound

if TYPE_CHECKING:
    from collections.abc import Callable

    from fleet.cli.context import Context
    from fleet.projections.queue import TaskDetail

PASSED, FAILED, NOT_FINISHED = 0, 1, 3
LOOK_SECONDS = 1.0  # the safety net; the bell wakes us at once


class Awaited(NamedTuple):
    """A run or a task: whether it is over, how what came of it is told, and what begins it."""

    id: str
    over: Callable[[], bool]
    conclude: Callable[[], int]
    begin: str


def configure(parser: argparse.ArgumentParser) -> None:
    """The options of `fleet wait`."""
    parser.add_argument("id", metavar="ID", help="the run or the task to wait for")
    parser.add_argument("--timeout", metavar="S", type=positive, help="wait at most S seconds")
    parser.add_argument("-q", "--quiet", action="store_true", help="print nothing; the exit code tells")


def run(args: argparse.Namespace, context: Context) -> int:
    """Look until it is over."""
    import time

    from fleet.cli.contact import Contact

    front, awaited = context.front, _awaited(args, context)
    deadline = time.monotonic() + args.timeout if args.timeout else None
    if not args.quiet and not awaited.over() and not front.supervisors():
        context.note(f"no supervisor is running; to begin: {awaited.begin}")
    contact = Contact(context, quiet=args.quiet)
    bell = front.listen()
    try:
        while not contact.attempt(awaited.over, otherwise=False):
            left = LOOK_SECONDS if deadline is None else min(LOOK_SECONDS, deadline - time.monotonic())
            if left <= 0:
                if not args.quiet:
                    context.note(f"{awaited.id} is not over after {args.timeout} s")
                awaited.conclude()
                return NOT_FINISHED
            bell.wait(left)
    finally:
        bell.close()
    return contact.insist(awaited.conclude)


def _awaited(args: argparse.Namespace, context: Context) -> Awaited:
    from fleet.cli.run_spec import conclude

    front, word, quiet = context.front, args.id, args.quiet
    try:
        run = front.run(word, 0).run.id
    except NotFound:
        return _awaited_task(word, context, quiet=quiet)
    return Awaited(
        run,
        over=lambda: front.run(run, 0).run.over,
        conclude=lambda: conclude(run, context, quiet=quiet),
        begin=f"fleet run --run {run}",
    )


def _awaited_task(word: str, context: Context, *, quiet: bool) -> Awaited:
    front = context.front
    try:
        task = front.task(word).id
    except NotFound:
        hint = "`fleet runs` and `fleet tasks --status all` list them"
        raise NotFound(f"no run or task `{word}`", hint=hint) from None
    return Awaited(
        task,
        over=lambda: _over(front.task(task)),
        conclude=lambda: _conclude(front.task(task), context, quiet=quiet),
        begin="fleet run",
    )


def _over(task: TaskDetail) -> bool:
    """Whether it has ended, or only a person can let it go on."""
    from fleet.model.states import ENDED, TaskState

    return task.state in (*ENDED, TaskState.BLOCKED) or (task.state is TaskState.PARTIAL and task.awaits == "manual")


def _conclude(task: TaskDetail, context: Context, *, quiet: bool) -> int:
    """What came of a task, and the exit code that says it."""
    from fleet.model.states import ENDED, TaskState

    if context.json:
        context.print_json(task)
    elif not quiet:
        reason = task.question or task.reason
        context.print(f"{task.id} is {task.state.value}" + (f": {reason}" if reason else ""))
        if task.state is not TaskState.COMPLETED:
            context.note(f"what may be done: fleet why {task.id}")
    if task.state is TaskState.COMPLETED:
        return PASSED
    return FAILED if task.state in ENDED else NOT_FINISHED
