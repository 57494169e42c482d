"""Supervise the queue, or run a spec: claim ready tasks, run each with its coder, and end each in a receipt.

With a SPEC (a .json, .toml or .yaml file) its tasks are submitted as one run and seen through to their end; where no
supervisor is up, this process runs them, and them alone. The exit code says what came of the run: 0 all passed,
1 something failed, 2 the spec cannot be used, 3 results wait for a verifier or a person.

Agents outlive the supervisor: Ctrl-C or `fleet run stop` leaves them running, and the next `fleet run` takes them over.

Examples:
  fleet run tasks.json --max-workers 4
  fleet run --detach && fleet run status
"""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from fleet.cli.parsing import positive
from fleet.errors import UsageError

if TYPE_CHECKING:
    from fleet.cli.context import Context
    from fleet.cli.live import Live
    from fleet.supervisor.house import House
    from fleet.supervisor.supervisor import Supervised, Supervisor

NOT_STARTED = NOT_FINISHED = 3
LOOK_SECONDS = 0.2  # between two looks at what happened, to print it


def configure(parser: argparse.ArgumentParser) -> None:
    """The options of `fleet run`."""
    parser.add_argument(
        "verb",
        metavar="SPEC|status|stop",
        nargs="?",
        help="a file of tasks to run (./status for one of that name); or ask who supervises, or end them",
    )
    parser.add_argument(
        "--max-workers", metavar="N", type=positive, help="of a SPEC: how many at once (4 if not given)"
    )
    parser.add_argument("--alerts", metavar="FILE", help="of a SPEC: who is told what, in the place of its alerts")
    parser.add_argument("--dry-run", action="store_true", help="of a SPEC: print the plan, and submit nothing")
    parser.add_argument("--run", metavar="R", help="go on with a run that was submitted before")
    parser.add_argument("--coder", metavar="C", help="for tasks that name none, instead of supervisor.coder")
    parser.add_argument("--model", metavar="M", help="for tasks that name none, instead of supervisor.model")
    parser.add_argument("--pools", action="store_true", help="take only the tasks of pools, and no others")
    parser.add_argument("--drain", action="store_true", help="end when nothing is left to do")
    parser.add_argument("--detach", action="store_true", help="run in the background")
    parser.add_argument("--supervisor", metavar="NAME", help="with stop: only this one, of several")
    parser.add_argument("--stop-agents", action="store_true", help="end the agents too, when it ends")
    parser.add_argument("--serve", action="store_true", help="serve the API too, where [api] says")
    parser.add_argument("-q", "--quiet", action="store_true", help="print nothing while it runs")


def run(args: argparse.Namespace, context: Context) -> int:
    """Run until told to stop, or answer about one that runs."""
    if context.url and args.run is None and args.verb in (None, "stop"):
        context.here("supervising")
    if args.verb in ("status", "stop"):
        from fleet.cli import supervisors

        return supervisors.status(context) if args.verb == "status" else supervisors.stop(args, context)
    if args.verb is not None or args.run is not None:
        return _spec(args, context)
    if args.dry_run or args.max_workers or args.alerts:
        raise UsageError(
            "--dry-run, --max-workers and --alerts belong to a SPEC", hint="fleet run tasks.json --dry-run"
        )
    if args.coder:
        from fleet.plugins import check_coder

        check_coder(args.coder, context.settings.own_coders)
    if args.serve and args.detach:
        raise UsageError("--serve goes with a supervisor that stays", hint="fleet serve, beside fleet run --detach")
    return _detach(args, context) if args.detach else _supervise(args, context)


def _spec(args: argparse.Namespace, context: Context) -> int:
    from fleet.cli import run_away, run_spec

    if args.drain or args.stop_agents or args.serve:
        raise UsageError("--drain, --stop-agents and --serve are for supervising the whole queue; a run ends by itself")
    if args.run is None:
        return run_away.submit(args, context) if context.url else run_spec.run(args, context)
    if args.verb is not None or args.dry_run or args.max_workers or args.coder or args.model:
        raise UsageError("--run goes on with a run as it was submitted; it takes nothing else")
    return run_away.go_on(args, context) if context.url else run_spec.go_on(args, context)


def _supervise(args: argparse.Namespace, context: Context) -> int:
    import asyncio

    from fleet import wiring
    from fleet.cli.live import Live
    from fleet.cli.words import count
    from fleet.config.home import require
    from fleet.supervisor.guard import guard
    from fleet.supervisor.house import OnlyPools

    home = require(context.home)
    live = Live(context, quiet=args.quiet)
    only = OnlyPools() if args.pools else None
    house = wiring.open_house(home, context.settings, coder=args.coder, model=args.model, echo=live.heard, only=only)
    try:
        with guard(home.path, house.name, alone=house.alone):
            live.begin(house)
            done = asyncio.run(_alive(house, live, args, context))
        live.conclude(done)
    finally:
        house.store.close()
    if context.json:
        _print_sum(done, context, quiet=args.quiet)
    if done.left_running and not context.json:
        context.note(f"{count(done.left_running, 'session')} left running; the next `fleet run` takes over")
    if not args.drain:
        return 0
    return 1 if done.failed else NOT_FINISHED if done.waiting else 0


def _print_sum(done: Supervised, context: Context, *, quiet: bool) -> None:
    """An object; after the lines of events, one more line."""
    import msgspec

    if quiet:
        context.print_json(done)
    else:
        context.out.write(msgspec.json.encode({"summary": done}).decode() + "\n")


async def _alive(house: House, live: Live, args: argparse.Namespace, context: Context) -> Supervised:
    import asyncio
    import signal

    from fleet.supervisor.supervisor import Supervisor

    supervisor = Supervisor(house, drain=args.drain)
    loop = asyncio.get_running_loop()
    for sign in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(sign, lambda: supervisor.stop(agents=args.stop_agents))
    loop.add_signal_handler(signal.SIGUSR1, lambda: supervisor.stop(agents=True))

    async def watch() -> None:
        while True:
            await asyncio.sleep(LOOK_SECONDS)
            live.step()

    watching = loop.create_task(watch())
    try:
        if not args.serve:
            return await supervisor.run()
        return await _served(supervisor, context)
    finally:
        watching.cancel()
        await asyncio.gather(watching, return_exceptions=True)
        live.step()


async def _served(supervisor: Supervisor, context: Context) -> Supervised:
    """Supervise, and serve the API as long as that goes on."""
    import asyncio

    from fleet.cli.serve import serving
    from fleet.config.serving import Api

    api: Api = context.settings.api
    stop = asyncio.Event()
    async with asyncio.TaskGroup() as group:
        group.create_task(serving(api, context, stop))
        try:
            return await supervisor.run()
        finally:
            stop.set()


def _detach(args: argparse.Namespace, context: Context) -> int:
    """Start another process that supervises, and wait until it has taken the home."""
    from fleet.cli.background import start
    from fleet.config.home import require
    from fleet.supervisor.guard import guard

    home = require(context.home)
    if not context.settings.store.url:
        with guard(home.path, "", alone=True):
            pass  # raises where one is running
    words = [f"--{name}={value}" for name in ("coder", "model") if (value := getattr(args, name))]
    words += [f"--{name}" for name in ("drain", "pools", "stop-agents") if getattr(args, name.replace("-", "_"))]
    pid = start(home, words)
    if pid is None:
        context.note(f"error: the supervisor did not start; see {home.logs / 'supervisor.err'}")
        return NOT_STARTED
    context.print_json({"pid": pid}) if context.json else context.print(f"Supervisor {pid} started")
    return 0
