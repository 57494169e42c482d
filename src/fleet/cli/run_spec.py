"""`fleet run SPEC`: submit a run, then see it through: as its supervisor, or beside one that is up."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING, Any

from fleet.errors import Supervised

if TYPE_CHECKING:
    from fleet.cli.context import Context
    from fleet.cli.run_view import Look, View
    from fleet.control.specs import ReadSpec
    from fleet.front.following import LocalFollowing
    from fleet.projections.plan import Plan
    from fleet.store.engine import Bell
    from fleet.store.reads import Reads

LOOK_SECONDS = 0.25  # between two looks at a run
NOT_STARTED, INTERRUPTED, TERMINATED = 3, 130, 143


def run(args: argparse.Namespace, context: Context) -> int:
    """Read the spec, submit it, and stay with it."""
    from fleet.cli.add import directory
    from fleet.cli.words import count
    from fleet.config.home import require
    from fleet.model.spec import DEFAULT_WORKERS

    most = args.max_workers or DEFAULT_WORKERS
    found = _read(args, context)
    for warning in found.warnings:
        context.note(f"warning: {warning}")
    if args.dry_run:
        return _print_plan(_plan(found, most, args, context), context)
    require(context.home)
    position = context.control.reads.end()
    made = context.control.submit(found.spec, max_workers=most, base=directory(None)).run
    context.close()  # the supervisor opens the store in its own way
    if not context.json:
        context.note(f"Run {made.id}: {made.name}, {count(len(found.spec.tasks), 'task')}, at most {most} at once")
    if args.detach:
        return _detach(made.id, context)
    return see_through(made.id, context, position=position, quiet=args.quiet)


def go_on(args: argparse.Namespace, context: Context) -> int:
    """A run that is there already: supervise it to its end, or follow it."""
    made = context.reads.find_run(args.run)
    position = context.reads.end()
    context.close()
    if args.detach:
        return _detach(made.id, context)
    return see_through(made.id, context, position=position, quiet=args.quiet)


def see_through(run_id: str, context: Context, *, position: str, quiet: bool = False) -> int:
    """Stay until nothing of the run goes on by itself. Whoever supervises may change meanwhile."""
    from fleet.config.home import require
    from fleet.projections.runs import run_view
    from fleet.supervisor.guard import holders

    home = require(context.home)
    while not run_view(context.reads, run_id).over:
        stay = _follow if holders(home.path) else _supervise
        position, code = stay(run_id, context, position, quiet=quiet)
        if code:
            _interrupted(run_id, context)
            return code
    return conclude(run_id, context, quiet=quiet)


def conclude(run_id: str, context: Context, *, quiet: bool = False) -> int:
    """The final table, and the exit code that says what came of the run."""
    from fleet.cli.run_view import summary, table

    detail = context.front.run(run_id)
    view, found = detail.run, detail.tasks
    if context.json:
        context.print_json(detail)
    elif not quiet:
        context.print("\n".join(table(found)))
        context.note(summary(view))
        if view.counts["blocked"] or view.counts["partial"]:
            context.note(f"what waits for you: fleet status --run {run_id}; fleet questions; fleet receipts")
    return view.exit_code


def _read(args: argparse.Namespace, context: Context) -> ReadSpec:
    from msgspec.structs import replace

    from fleet.cli.add import directory
    from fleet.control.specs import read_alerts, read_spec, with_defaults
    from fleet.plugins import check_coder
    from fleet.wiring.named import spec_coders

    settings = context.settings
    if args.coder:
        check_coder(args.coder, settings.own_coders)
    default = args.coder or settings.supervisor.coder
    hosts = {host.name: host for host in settings.hosts}
    found = read_spec(args.verb, base=directory(None), coders=spec_coders(settings, default), hosts=hosts)
    spec = with_defaults(found.spec, args.coder, args.model, default)
    return replace(found, spec=replace(spec, alerts=read_alerts(args.alerts)) if args.alerts else spec)


def _plan(found: ReadSpec, most: int, args: argparse.Namespace, context: Context) -> Plan:
    from fleet.projections.plan import plan
    from fleet.wiring.named import spec_coders

    configured = context.settings.supervisor
    coder = args.coder or configured.coder
    model = args.model or (configured.model if coder == configured.coder else "")
    return plan(
        found.spec,
        max_workers=most,
        default_coder=coder,
        default_model=model,
        permissions=spec_coders(context.settings, coder).permissions,
        shares=configured.share_directories or configured.isolation == "worktree",
    )


def _print_plan(found: Plan, context: Context) -> int:
    from fleet.cli.words import count

    if context.json:
        context.print_json(found)
        return 0
    size = f"{count(len(found.tasks), 'task')} in {count(found.levels, 'level')}"
    context.print(f"{found.name}: {size}, at most {found.max_workers} at once. Nothing was submitted.")
    level = 0
    for task in found.tasks:
        if task.level != level:
            level = task.level
            context.print(f"\nLevel {level}")
        coder = f"{task.coder}/{task.model}" if task.model else task.coder
        context.print(f"  {task.id}: {task.title}")
        needs = f", after {', '.join(task.needs)}" if task.needs else ""
        turns = " (one agent at a time)" if task.waits_for_directory else ""
        context.print(f"    {coder} on {' or '.join(task.workers)}, in {task.cwd}{turns}{needs}")
        for each in task.enforces:
            context.print(f"    {each.field}: {each.how}")
    return 0


def _supervise(run_id: str, context: Context, position: str, *, quiet: bool) -> tuple[str, int]:
    """Run the tasks of this run in this process; the code is not 0 when we were told to stop.

    Nothing happens where somebody else was first to supervise: then there is somebody to follow.
    """
    import asyncio
    from contextlib import ExitStack, closing

    from fleet import wiring
    from fleet.cli.run_view import view_of
    from fleet.model.spec import DEFAULT_WORKERS
    from fleet.supervisor.guard import guard
    from fleet.supervisor.house import Only

    slots = context.reads.run(run_id).max_workers or DEFAULT_WORKERS
    context.close()
    only = Only(run_id, slots)
    house = wiring.open_house(context.home, context.settings, coder=None, model=None, echo=None, only=only)
    with closing(house.store), ExitStack() as stack:
        try:
            stack.enter_context(guard(context.home.path, house.name, alone=house.alone))
        except Supervised:
            return position, 0
        following = _following(house.store, run_id, position, None)
        view = stack.enter_context(closing(view_of(context, _look(house.store, run_id), following, quiet=quiet)))
        code = asyncio.run(_alive(house, view))
        position = house.store.end()
    _hand_on(run_id, context)
    return position, code


async def _alive(house: Any, view: View) -> int:
    import asyncio
    import signal

    from fleet.supervisor.supervisor import Supervisor

    supervisor = Supervisor(house, drain=True)
    loop = asyncio.get_running_loop()
    told: list[int] = []

    def stop(code: int, *, agents: bool = False) -> None:
        told.append(code)
        supervisor.stop(agents=agents)

    loop.add_signal_handler(signal.SIGINT, stop, INTERRUPTED)
    loop.add_signal_handler(signal.SIGTERM, stop, TERMINATED)
    loop.add_signal_handler(signal.SIGUSR1, lambda: stop(TERMINATED, agents=True))

    async def watch() -> None:
        while True:
            await asyncio.sleep(LOOK_SECONDS)
            view.step()

    watching = loop.create_task(watch())
    try:
        await supervisor.run()
    finally:
        watching.cancel()
        await asyncio.gather(watching, return_exceptions=True)
    return told[0] if told else 0


def _follow(run_id: str, context: Context, position: str, *, quiet: bool) -> tuple[str, int]:
    """Look on while somebody else supervises, until the run is over or nobody does any more."""
    from fleet.cli.run_view import view_of
    from fleet.projections.runs import run_view
    from fleet.supervisor.guard import holders

    reads = context.reads
    following = _following(reads, run_id, position, reads.listen())
    view = view_of(context, _look(reads, run_id), following, quiet=quiet)
    try:
        while not run_view(reads, run_id).over and holders(context.home.path):
            following.wait(LOOK_SECONDS)
            view.step()
    except KeyboardInterrupt:
        return position, INTERRUPTED
    finally:
        view.close()
        following.close()
    return reads.end(), 0


def _following(reads: Reads, run_id: str, position: str, bell: Bell | None) -> LocalFollowing:
    from fleet.front.following import LocalFollowing
    from fleet.projections.happened import Only

    return LocalFollowing(reads, position, Only(run=run_id), bell=bell)


def _look(reads: Reads, run_id: str) -> Look:
    from fleet.config.clock import utc_ms
    from fleet.front.views import RunLive
    from fleet.projections.runs import live, run_view

    return lambda: RunLive(run=run_view(reads, run_id), live=live(reads, run_id, utc_ms()))


def _interrupted(run_id: str, context: Context) -> None:
    from fleet.projections.runs import live

    running = live(context.reads, run_id, 0)
    runs = "runs" if len(running) == 1 else "run"
    context.note(f"Stopped before the end of {run_id}; {len(running)} of its agents {runs} on.")
    context.note(f"To go on: fleet run --run {run_id}   To end it: fleet stop --run {run_id}")


def _hand_on(run_id: str, context: Context) -> None:
    """Runs that were handed to us while we supervised ours are not left alone when we end."""
    reads: Reads = context.reads
    ours = reads.run(run_id)
    waiting = [run for run in reads.active_runs() if run.max_workers]
    newer = [run for run in waiting if run.created_at >= ours.created_at and run.id != run_id and reads.moving(run.id)]
    if newer:
        _spawn(newer[-1].id, context)


def _detach(run_id: str, context: Context) -> int:
    """Leave the run to a supervisor: to one that is up, or to a new one in the background."""
    from fleet.config.home import require
    from fleet.projections.runs import run_view
    from fleet.supervisor.guard import holders

    home = require(context.home)
    pid = None if holders(home.path) else _spawn(run_id, context)
    pid = next((one.pid for one in holders(home.path)), pid)
    if pid is None and not run_view(context.reads, run_id).over:  # else there was nothing to begin with
        context.note(f"error: the supervisor did not start; see {home.logs / 'supervisor.err'}")
        context.note(f"hint: {run_id} is submitted; go on with it: fleet run --run {run_id}")
        return NOT_STARTED
    if context.json:
        context.print_json({"run": run_id, "pid": pid})
        return 0
    context.print(run_id)
    context.note(f"{f'supervisor {pid} runs it' if pid else 'it is over'}; follow with: fleet wait {run_id}")
    return 0


def _spawn(run_id: str, context: Context) -> int | None:
    from fleet.cli.background import start

    return start(context.home, ["--run", run_id])
