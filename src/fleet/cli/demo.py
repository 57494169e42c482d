"""Show a small real run: no key, no network, nothing of yours is touched.

Five tasks of a tiny project are run by real agent processes that follow a script. One crashes and is tried again, one
asks a question, which is answered, and in the middle the supervisor goes away and another one takes over. Everything
happens in a home of its own, which is removed afterwards; --keep leaves it for you to look at.

Examples:
  fleet demo
  fleet demo --keep
"""

from __future__ import annotations

import argparse
import contextlib
from pathlib import Path
from typing import TYPE_CHECKING

from fleet.cli.demo_story import ANSWER, ASKS, TASKS, WRITES
from fleet.errors import FleetError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from rich.console import Console
    from rich.live import Live

    from fleet.cli.context import Context
    from fleet.config.home import Home
    from fleet.config.settings import Settings
    from fleet.model.event import Entry
    from fleet.store.reads import Reads
    from fleet.supervisor.supervisor import Supervisor

SETTINGS = """# The home of `fleet demo`.
[supervisor]
coder = "scripted"
model = "scripted"
max_concurrent = 3
share_directories = true  # its agents only pretend to work there
backoff_seconds = 1
"""
DEADLINE_SECONDS = 60.0
LOOK_SECONDS = 0.05
INTERRUPTED = 130


def configure(parser: argparse.ArgumentParser) -> None:
    """The options of `fleet demo`."""
    parser.add_argument("--keep", action="store_true", help="leave the home for you to look at")


def run(args: argparse.Namespace, context: Context) -> int:
    """Make a home, run the tasks, check the ledger, remove the home."""
    import shutil
    import tempfile

    from fleet.config.home import Home
    from fleet.config.load import load

    path = Path(tempfile.mkdtemp(prefix="fleet-demo-"))
    home = Home(path / "home")
    settled = False
    try:
        _prepare(home, path / "project")
        code = _play(home, load(home), path / "project", context, keep=args.keep)
        settled = True
    finally:
        if settled and not args.keep:
            shutil.rmtree(path, ignore_errors=True)
        elif not settled:
            context.note(f"the demo's home is left at {home.path}")
    return code


def _prepare(home: Home, project: Path) -> None:
    from fleet import wiring
    from fleet.config.load import load
    from fleet.control.home import prepare

    project.mkdir()
    home.path.mkdir(mode=0o700)
    home.toml.write_text(SETTINGS)
    prepare(home, open_store=lambda force: wiring.prepare_store(home, load(home), force=force))


def _play(home: Home, settings: Settings, project: Path, context: Context, *, keep: bool) -> int:
    import asyncio
    import time

    from fleet import wiring
    from fleet.projections.queue import lines
    from fleet.projections.verify import verify

    began = time.monotonic()
    uids = _add(home, settings, project)
    context.note(f"{len(uids)} tasks in {home.path}; three agents at once")
    show = Show(home, settings, context, uids)
    with contextlib.closing(wiring.open_reads(home, settings)) as reads:
        with show.live():
            interrupted = asyncio.run(_supervised(home, settings, show, reads))
        if interrupted:
            return INTERRUPTED
        verified = verify(reads)
        found = lines(reads, settings, states=None, limit=100, now=0)
        receipts = {receipt.task: receipt for receipt in reads.receipts()}
    seconds = time.monotonic() - began
    if context.json:
        tasks = [{"id": line.id, "title": line.title, "state": line.state.value} for line in found]
        where = str(home.path) if keep else None
        context.print_json(
            {"seconds": round(seconds, 2), "tasks": tasks, "events": verified.events, "verified": True, "home": where}
        )
        return 0
    context.print()
    for line in found:
        spent = receipts[line.id].usage if line.id in receipts else None
        cost = f"${spent.cost_microusd / 1_000_000:.4f}" if spent else "-"
        context.print(f"{line.id}  {line.state.value:<10} {cost:>8}  {line.title:<20}  {line.reason}".rstrip())
    context.print()
    context.print(f"fleet ledger verify: OK, {verified.events} events in {verified.chains} chains hold")
    context.print(f"All of it took {seconds:.1f} s." + ("" if keep else " The home is removed; --keep leaves it."))
    if keep:
        context.print(f"Look around: fleet --home {home.path} ledger tail -n 100")
        context.print(f"Then remove it: rm -r {home.path.parent}")
    return 0


def _add(home: Home, settings: Settings, project: Path) -> list[str]:
    import json

    from fleet import wiring
    from fleet.model.task import NewTask

    uids: list[str] = []
    with contextlib.closing(wiring.open_control(home, settings, by="demo")) as control:
        for title, needs, steps in TASKS:
            task = NewTask(
                title=title,
                description=f"@@scripted {json.dumps(steps)}",
                cwd=str(project),
                needs=tuple(uids[need] for need in needs),
            )
            uids.append(control.add(task).uid)
    return uids


async def _supervised(home: Home, settings: Settings, show: Show, reads: Reads) -> bool:
    """Two supervisors, one after the other: the first leaves while agents run. True when a person broke it off."""
    import asyncio
    import signal

    from fleet import wiring
    from fleet.supervisor.guard import Guard
    from fleet.supervisor.supervisor import Supervisor

    interrupted = False
    with Guard(home.path / "supervisor.lock"):
        for shift in (1, 2):
            house = wiring.open_house(home, settings, coder=None, model=None, echo=None)
            supervisor = Supervisor(house, drain=shift == 2)

            def broken_off(supervisor: Supervisor = supervisor) -> None:
                nonlocal interrupted
                interrupted = True
                supervisor.stop(agents=True)

            loop = asyncio.get_running_loop()
            for sign in (signal.SIGINT, signal.SIGTERM):
                loop.add_signal_handler(sign, broken_off)
            try:
                async with asyncio.timeout(DEADLINE_SECONDS), asyncio.TaskGroup() as group:
                    watching = group.create_task(_watch(supervisor, show, reads, leave=shift == 1))
                    await supervisor.run()
                    watching.cancel()
            except* TimeoutError as exc:
                raise FleetError(f"the demo did not end within {DEADLINE_SECONDS:g} s") from exc
            finally:
                house.store.close()
            show.catch_up(reads)
            if interrupted:
                break
            if shift == 1:
                show.say("          the supervisor is gone; its agents work on; another supervisor starts", "bold")
    return interrupted


async def _watch(supervisor: Supervisor, show: Show, reads: Reads, *, leave: bool) -> None:
    """Tell what happens, answer what is asked, and let the first supervisor leave while the manual is written."""
    import asyncio

    from fleet.model.states import TaskState

    while True:
        await asyncio.sleep(LOOK_SECONDS)
        show.catch_up(reads)
        asking = reads.task(show.uids[ASKS])
        if asking.state is TaskState.BLOCKED:
            await asyncio.to_thread(show.answer, asking.uid)
        writing = reads.task(show.uids[WRITES])
        if leave and writing.session and reads.progress(writing.session).usage.events > 2:
            supervisor.stop()
            return


class Show:
    """What is seen of it: a line for each event worth one, and below them, on a terminal, the table of tasks."""

    def __init__(self, home: Home, settings: Settings, context: Context, uids: list[str]) -> None:
        self.uids = uids
        self._home = home
        self._settings = settings
        self._context = context
        self._position = ""
        self._live: Live | None = None
        self._titles = {uid: title for uid, (title, _, _) in zip(uids, TASKS, strict=True)}

    @contextlib.contextmanager
    def live(self) -> Iterator[None]:
        """While this is open, the table is kept below the lines, where there is a terminal for it."""
        if self._context.json or not self._context.redraws(self._context.err):
            yield
            return
        from rich.live import Live

        with Live(console=self._console(), auto_refresh=False, transient=True) as live:
            self._live = live
            yield
        self._live = None

    def catch_up(self, reads: Reads) -> None:
        """Tell the events that came, and draw the table anew."""
        while (batch := reads.feed(self._position)).entries:
            self._position = batch.position
            for entry in batch.entries:
                self._tell(entry)
        if self._live is not None:
            from fleet.cli.tasks import task_table
            from fleet.config.clock import utc_ms
            from fleet.projections.queue import lines

            found = lines(reads, self._settings, states=None, limit=100, now=utc_ms())
            table = task_table(found, min(100, self._live.console.width))
            self._live.update(table, refresh=True)

    def say(self, text: str, style: str = "") -> None:
        """A line of the story."""
        if self._live is not None:
            self._live.console.print(text, style=style, highlight=False, markup=False)
        else:
            self._context.note(text)
            self._context.err.flush()

    def answer(self, uid: str) -> None:
        """As a person would, with `fleet answer`."""
        from fleet import wiring

        with contextlib.closing(wiring.open_control(self._home, self._settings, by="demo")) as control:
            control.answer(uid, ANSWER)

    def _tell(self, entry: Entry) -> None:
        from fleet.model import event as ev

        event = entry.event
        title = self._titles.get(event.subject, "")
        match event:
            case ev.TaskClaimed(session=session):
                self._line(event.at, f"{title}: starts in {session.worker} as {session.id}", "cyan")
            case ev.SessionAdopted(session=name):
                self._line(event.at, f"{title}: {name} is taken over, where it stands", "bold")
            case ev.TaskRequeued(reason=reason):
                self._line(event.at, f"{title}: {reason}; tried again soon", "yellow")
            case ev.TaskBlocked(block=block):
                self._line(event.at, f'{title}: asks "{block.text}"', "magenta")
            case ev.TaskAnswered(text=text):
                self._line(event.at, f'{title}: is answered "{text}"', "magenta")
            case ev.TaskSettled(state=state, receipt=receipt):
                colour = "green" if state.value == "completed" else "red"
                self._line(event.at, f"{title}: {state.value}: {receipt.reason}", colour)
            case _:
                pass

    def _line(self, at: int, text: str, style: str) -> None:
        from fleet.cli.words import when

        self.say(f"{when(at)[11:]}  {text}", style)

    def _console(self) -> Console:
        from rich.console import Console

        return Console(file=self._context.err, highlight=False, no_color=not self._context.colour)
