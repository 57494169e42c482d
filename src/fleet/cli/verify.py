"""Run the verifier of a task, for the first time or again; or settle its result yourself with --pass or --fail.

The verifier runs in the supervisor, where one is up, else here and now. The exit code tells: 0 it passed, 1 it did not,
3 it still waits. An agent cannot verify its own work: inside a session this is refused.

Examples:
  fleet verify fleet-abc
  fleet verify fleet-abc --pass --note "looked at the picture"
"""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING, Any

from fleet.errors import Conflict, UsageError

if TYPE_CHECKING:
    from fleet.cli.context import Context
    from fleet.model.task import Task
    from fleet.projections.queue import TaskDetail

NOT_FINISHED = 3
LOOK_SECONDS = 1.0  # the safety net; the bell wakes us at once


def configure(parser: argparse.ArgumentParser) -> None:
    """The options of `fleet verify`."""
    parser.add_argument("id", metavar="ID", help="a task")
    word = parser.add_mutually_exclusive_group()
    word.add_argument("--pass", action="store_true", dest="passed", help="it is as it should be")
    word.add_argument("--fail", action="store_true", help="it is not")
    parser.add_argument("--note", metavar="TEXT", default="", help="why; stands in the receipt")
    parser.add_argument("--detach", action="store_true", help="do not wait for the verifier")


def run(args: argparse.Namespace, context: Context) -> int:
    """Settle it, or see its verifier through."""
    from fleet.config.environment import environ

    if environ().get("FLEET_TASK_ID"):
        raise Conflict("a result cannot be verified from inside a session", hint="a person does it, or a verifier")
    if args.passed or args.fail:
        return _told(context.front.judge(args.id, passed=args.passed, note=args.note), context)
    if args.note:
        raise UsageError("--note goes with --pass or --fail")
    task = context.front.verify(args.id)
    if not args.detach:
        _wait_away(task.id, context) if context.url else _see_through(task.id, context)
    return _told(context.front.task(task.id), context)


def _wait_away(uid: str, context: Context) -> None:
    """Until the verifier has spoken, as long as a supervisor is there that will have it run."""
    from fleet.cli.contact import Contact

    front, contact = context.front, Contact(context)
    bell = front.listen()
    try:
        while contact.insist(front.supervisors):
            task = contact.insist(lambda: front.task(uid))
            if task.state.value != "verifying" and task.awaits in (None, "manual"):
                return
            bell.wait(LOOK_SECONDS)
    finally:
        bell.close()


def _see_through(uid: str, context: Context) -> None:
    """Until the verifier has spoken: here, unless a supervisor is up that will do it."""
    import asyncio
    from contextlib import ExitStack, closing

    from fleet import wiring
    from fleet.hosts.machine import local_host
    from fleet.supervisor.guard import guard
    from fleet.supervisor.house import OnlyVerify

    task = context.control.reads.task(uid)
    if task.awaits and task.awaits.host not in (None, local_host()):
        context.note(f"its files are on {task.awaits.host}: the supervisor that reaches them verifies it")
        return
    if _is_attended(context):
        _wait(uid, context)
        return
    house = wiring.open_house(context.home, context.settings, coder=None, model=None, echo=None, only=OnlyVerify(uid))
    with closing(house.store), ExitStack() as stack:
        try:
            stack.enter_context(guard(context.home.path, house.name, alone=house.alone))
        except Conflict:  # one came up meanwhile
            _wait(uid, context)
            return
        asyncio.run(_alive(house))


async def _alive(house: Any) -> None:
    import asyncio
    import signal

    from fleet.supervisor.supervisor import Supervisor

    supervisor = Supervisor(house, drain=True)
    loop = asyncio.get_running_loop()
    for sign in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(sign, supervisor.stop)
    await supervisor.run()


def _wait(uid: str, context: Context) -> None:
    reads = context.control.reads
    bell = reads.listen()
    try:
        while _is_moving(reads.task(uid)) and _is_attended(context):
            bell.wait(LOOK_SECONDS)
    finally:
        bell.close()


def _is_attended(context: Context) -> bool:
    from fleet.supervisor.guard import holders

    return bool(holders(context.home.path))


def _is_moving(task: Task) -> bool:
    from fleet.model.states import TaskState

    return task.awaits_verifier or task.state is TaskState.VERIFYING


def _told(task: TaskDetail, context: Context) -> int:
    from fleet.model.states import TaskState

    if context.json:
        context.print_json(task)
    else:
        context.print(f"{task.id} is {task.state.value}: {task.reason}")
    return {TaskState.COMPLETED: 0, TaskState.FAILED: 1}.get(task.state, NOT_FINISHED)
