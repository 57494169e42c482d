"""A home with something in every part of `fleet top`, at a time that stands still; and the screen as text."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from textual.pilot import Pilot

from fleet.config.home import Home
from fleet.model.alert import Alert, AlertKind
from fleet.model.receipt import Awaits, Usage
from fleet.model.session import Progress
from fleet.store.sqlite.writer import SqliteWriter
from fleet.store.store import Store
from fleet.testing.builders import CRASHED, DEFAULTS, EXITED, a_fail, a_partial, a_slot, a_task

NOW = 1_800_000_000_000  # the time at which everything was written
LATER = NOW + 754_000  # and at which it is looked at
SECONDS = 30.0


def still_store(home: Home) -> Store:
    """The store of a home, in which it is always the same time."""
    return Store(SqliteWriter(home.db, bells=home.bells, leases=home.leases, clock=lambda: NOW))


def fill(store: Store) -> None:
    """A question, a request, two failures, of which one was raised, a result to judge, two that run, two that wait."""
    store.join("sup-1", machine="here", pid=1, seconds=600).result()
    tasks = [
        a_task("Move the database", uid="fleet-ask", priority=0),
        a_task("Publish the package", uid="fleet-per", priority=0),
        a_task("Mend the login page", uid="fleet-bad", priority=0),
        a_task("Build the site", uid="fleet-lat", priority=0),
        a_task("Draw a logo", uid="fleet-jud", priority=0),
        a_task("Write the manual", uid="fleet-run", priority=1),
        a_task(
            "翻訳する, and a title that is a good deal longer than any column", uid="fleet-far", priority=1, model="big"
        ),
        a_task("Build", uid="fleet-que", priority=3),
        a_task("Release", uid="fleet-rel", priority=3, needs=("fleet-que",)),
    ]
    store.submit(tasks, by="ana").result()
    slots = [a_slot(f"local#{k}") for k in range(1, 7)]
    claimed = store.claim("sup-1", [*slots, a_slot("box#1", host="builder")], DEFAULTS).result()
    by = {each.task.uid: each.session for each in claimed}
    for session in by.values():
        store.started(session.fence, 100, by="sup-1").result()
    store.pause(by["fleet-ask"].fence, EXITED, "question", "Which host?\nThere are two.", by="sup-1").result()
    store.pause(by["fleet-per"].fence, EXITED, "permission", "May I use npm publish?", by="sup-1").result()
    alert = Alert(AlertKind.NEEDS_HUMAN, "attempt 3 of 3 was the last")
    store.finish(
        by["fleet-bad"].fence, CRASHED, a_fail("3 tests fail"), by="sup-1", charged=True, alerts=[alert]
    ).result()
    store.finish(by["fleet-lat"].fence, CRASHED, a_fail("it ran longer than 60 s"), by="sup-1", charged=True).result()
    judged = a_partial("a person is to look", Awaits(kind="manual"))
    store.finish(by["fleet-jud"].fence, EXITED, judged, by="sup-1").result()
    used = Usage(input_tokens=112_000, output_tokens=2_345, cost_microusd=1_230_000, events=9)
    store.record(
        by["fleet-run"].fence,
        Progress(usage=used, peak_context_tokens=121_000, context_window=200_000, last_output_at=NOW + 700_000),
    ).result()


async def until(pilot: Pilot[None], seen: Callable[[str], bool]) -> str:
    """The screen, as soon as it shows what is waited for."""
    loop = asyncio.get_running_loop()
    deadline = loop.time() + SECONDS
    while not seen(text := screen(pilot)):
        assert loop.time() < deadline, text
        await pilot.pause(0.02)
    return text


def screen(pilot: Pilot[None]) -> str:
    """What a person sees, without its colours."""
    strips = pilot.app.screen._compositor.render_strips(pilot.app.size)
    return "\n".join("".join(segment.text for segment in strip).rstrip() for strip in strips)
