"""`fleet top` at a real store: what the screen shows in narrow and wide terminals, and what each key does."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import re
import shutil
import threading
from collections.abc import AsyncIterator, Callable, Coroutine, Iterator
from pathlib import Path
from typing import Any

import pytest
from textual.events import Unmount
from textual.message import Message
from textual.pilot import Pilot

from fleet.cli.screen.app import Top
from fleet.cli.screen.desk import Desk
from fleet.cli.screen.looking import POLL_SECONDS
from fleet.cli.screen.rows import Rows
from fleet.config.home import Home
from fleet.model.event import IntentRecorded, TaskAnswered
from fleet.model.states import TaskState
from fleet.projections.board import Board
from fleet.store.store import Store
from fleet.testing.builders import DEFAULTS, a_slot, a_task
from tests.support.boards import LATER, fill, screen, still_store, until
from tests.support.homes import make
from tests.support.stores import PostgresStores

NEVER = 3600.0  # longer than any test
SCREENS = Path(__file__).parent / "screens"
REDRAW = bool(os.environ.get("FLEET_REDRAW"))  # write the pictures anew, to be looked at in the diff


@pytest.fixture
def home(tmp_path: Path) -> Home:
    """A home of its own."""
    return make(tmp_path / "home")


@pytest.fixture
def store(home: Home) -> Iterator[Store]:
    """Its store, with something in every part of the screen."""
    with contextlib.closing(still_store(home)) as opened:
        fill(opened)
        yield opened


@contextlib.asynccontextmanager
async def top(
    home: Home, *, size: tuple[int, int] = (80, 24), poll_seconds: float = POLL_SECONDS
) -> AsyncIterator[Pilot[None]]:
    """The screen, as soon as it has looked once."""
    app = Top(Desk(home, machine="local@here"), clock=lambda: LATER, poll_seconds=poll_seconds)
    async with app.run_test(size=size) as pilot:
        await until(pilot, lambda text: "NEEDS YOU" in text)
        yield pilot


def do(scene: Callable[[], Coroutine[Any, Any, None]]) -> None:
    """Play it."""
    asyncio.run(scene())


async def choose(pilot: Pilot[None], uid: str) -> None:
    """Go down to a task."""
    rows = pilot.app.screen_stack[0].query_one(Rows)
    await pilot.press("home")
    for _ in range(20):
        if rows.chosen and rows.chosen.task == uid:
            return
        await pilot.press("down")
    raise AssertionError(f"{uid} cannot be chosen:\n{screen(pilot)}")


def picture(text: str) -> str:
    """The screen without its title, which names the home."""
    return text.partition("\n")[2] + "\n"


@pytest.mark.parametrize(("name", "size"), [("narrow", (80, 24)), ("wide", (140, 40)), ("tiny", (40, 10))])
def test_what_is_seen(home: Home, store: Store, name: str, size: tuple[int, int]) -> None:
    """What needs a person comes first, then what runs, is queued, and the hosts; drawn as it was looked at before."""

    async def scene() -> None:
        async with top(home, size=size) as pilot:
            file = SCREENS / f"{name}.txt"
            if REDRAW:
                await pilot.pause(2)
                file.write_text(picture(screen(pilot)))
            wanted = file.read_text()
            shown = await until(pilot, lambda text: picture(text) == wanted)
            assert shown.startswith("fleet top 1 supervisor | 0 completed")
            if size[0] > 40:
                await until(pilot, lambda text: bool(re.match(r"fleet top .* \| today (?!unknown *\|)", text)))

    do(scene)


class Late(Desk):
    """A desk that does not answer until it is let."""

    def __init__(self, home: Home) -> None:
        super().__init__(home)
        self.let = threading.Event()

    def look(self, now: int) -> Board:
        """When it is let."""
        assert self.let.wait(60)
        return super().look(now)


def test_a_look_that_is_late_is_told_of(home: Home, store: Store) -> None:
    """Where nothing answers the screen says so while it waits, and goes on as soon as there is an answer."""

    async def scene() -> None:
        desk = Late(home)
        async with Top(desk, clock=lambda: LATER).run_test(size=(80, 24)) as pilot:
            await until(pilot, lambda text: "the store cannot be read: it is waited for" in text)
            desk.let.set()
            assert "waited" not in await until(pilot, lambda text: "NEEDS YOU (5)" in text)

    do(scene)


def test_the_keys_are_explained(home: Home, store: Store) -> None:
    """? shows every key, and any of the usual keys takes it away."""

    async def scene() -> None:
        async with top(home) as pilot:
            await pilot.press("question_mark")
            shown = await until(pilot, lambda text: "esc back" in text)
            for word in ("peek", "attach", "answer", "interrupt", "restart", "stop", "filter", "quit"):
                assert word in shown
            await pilot.press("escape")
            assert "esc back" not in await until(pilot, lambda text: "esc back" not in text)

    do(scene)


def test_answering(home: Home, store: Store) -> None:
    """a shows the question; what is written goes through control, with the same record as the command's."""

    async def scene() -> None:
        async with top(home) as pilot:
            await choose(pilot, "fleet-ask")
            await pilot.press("a")
            await until(pilot, lambda text: "There are two." in text)
            await pilot.press("enter")  # an empty line is no answer
            await pilot.press(*"box", "enter")
            await until(pilot, lambda text: "Answered fleet-ask: it is queued again" in text)
            await until(pilot, lambda text: "Which host?" not in text)  # the bell rang
            assert pilot.app.query_one(Rows).chosen.task == "fleet-per"  # type: ignore[union-attr]  # the next in line

    do(scene)
    (said,) = [entry.event for entry in store.chain("fleet-ask") if isinstance(entry.event, TaskAnswered)]
    assert (said.text, store.task("fleet-ask").state) == ("box", TaskState.QUEUED)
    assert "box" in (home.task_dir("fleet-ask") / "artifacts" / "Q&A.md").read_text()


def test_what_asks_nothing_cannot_be_answered(home: Home, store: Store) -> None:
    """a on a task that runs, or has failed, or is to be judged, says what to do instead."""

    async def scene() -> None:
        async with top(home) as pilot:
            for uid, words in (("fleet-run", "fleet why fleet-run"), ("fleet-jud", "fleet verify fleet-jud --pass")):
                await choose(pilot, uid)
                await pilot.press("a")
                await until(pilot, lambda text, words=words: words in text)  # type: ignore[misc]

    do(scene)


@pytest.mark.parametrize(
    "steered",
    [
        ("i", "fleet-run", "End the session of fleet-run?", "Interrupting fleet-run: its supervisor has been asked"),
        ("r", "fleet-run", "Run fleet-run again?", "Restarting fleet-run: its supervisor has been asked"),
        ("s", "fleet-run", "Cancel fleet-run?", "Stopping fleet-run: its supervisor has been asked"),
        ("s", "fleet-que", "Cancel fleet-que?", "Stopped fleet-que, and skipped 1 that need it"),
        ("r", "fleet-bad", "Run fleet-bad again?", "Restarted fleet-bad: it is queued again"),
        ("i", "fleet-que", "End the session of fleet-que?", "error: task fleet-que is queued"),
    ],
    ids=lambda steered: f"{steered[0]}-{steered[1]}",
)
def test_steering(home: Home, store: Store, steered: tuple[str, str, str, str]) -> None:
    """Nothing is done without a yes; with it, what control says is told, and stands in the ledger with who asked."""
    key, uid, asked, said = steered

    async def scene() -> None:
        async with top(home, size=(100, 40)) as pilot:
            await choose(pilot, uid)
            before = store.newest(uid)
            for refusal in ("n", "escape", "enter"):
                await pilot.press(key)
                await until(pilot, lambda text: asked in text)
                await pilot.press(refusal)
                await until(pilot, lambda text: asked not in text)
            assert store.newest(uid) == before
            await pilot.press(key)
            await until(pilot, lambda text: asked in text)
            await pilot.press("y")
            await until(pilot, lambda text: said in text)
            if "supervisor has been asked" in said:
                (event,) = [each.event for each in store.chain(uid) if isinstance(each.event, IntentRecorded)]
                assert event.intent.args["reason"].endswith("by a person")
            elif not said.startswith("error"):
                assert store.newest(uid) > before

    do(scene)


def test_peeking(home: Home, store: Store) -> None:
    """p shows the head of the task and the end of its log; what is said meanwhile comes by itself."""
    file = home.task_dir("fleet-run") / "log.jsonl"
    file.parent.mkdir(parents=True)

    def say(text: str) -> None:
        record = {"session": "fleet-run.1", "offset": file.stat().st_size if file.exists() else 0, "at": LATER}
        with file.open("a") as opened:
            opened.write(json.dumps({**record, "said": {"kind": "text", "text": text}}) + "\n")
        store.comment("fleet-que", "rings", by="ana").result()

    async def scene() -> None:
        say("first \x1b[2Jwords")
        async with top(home) as pilot:
            await choose(pilot, "fleet-run")
            await pilot.press("enter")
            shown = await until(pilot, lambda text: "first" in text)
            assert shown.startswith("fleet-run  running  Write the manual")
            assert "\x1b" not in shown
            say("second words")
            await until(pilot, lambda text: "second words" in text)
            await pilot.press("escape")
            await until(pilot, lambda text: "NEEDS YOU" in text)

    do(scene)


def test_attaching_without_a_terminal_of_its_own(home: Home, store: Store) -> None:
    """Where the screen cannot give its terminal away, t says what to type in another one: a log, or a pool's worker."""
    home.toml.write_text('[pools.kite]\nrepo = "https://example.com/kite.git"\n')
    store.claim("sup-1", [a_slot("kite-1#1")], DEFAULTS).result()

    async def scene() -> None:
        async with top(home, size=(300, 24)) as pilot:
            for uid, words in (("fleet-run", "logs fleet-run -f"), ("fleet-que", "pool attach kite-1")):
                await choose(pilot, uid)
                await pilot.press("t")
                await until(pilot, lambda text, words=words: f"fleet --home {home.path} {words}" in text)  # type: ignore[misc]

    do(scene)


def test_what_comes_while_it_ends_is_not_drawn(home: Home, store: Store) -> None:
    """A look, or the answer to a deed, that comes while the screen goes is no error: nobody sees it any more."""
    app = Top(Desk(home, machine="local@here"), clock=lambda: LATER)
    came: list[str] = []

    def late(message: Message) -> None:
        if isinstance(message, Unmount) and not app.is_running:
            came.append(type(message).__name__)
            app.say("too late")

    async def scene() -> None:
        async with app.run_test(message_hook=late) as pilot:
            await until(pilot, lambda text: "NEEDS YOU" in text)

    do(scene)
    assert came


def test_filtering(home: Home, store: Store) -> None:
    """/ narrows every part down while it is written, enter keeps it, esc shows all again."""

    async def scene() -> None:
        async with top(home) as pilot:
            await pilot.press("slash", *"MANUAL write")
            shown = await until(pilot, lambda text: "NEEDS YOU (0 of 5)" in text)
            assert "Write the manual" in shown
            await pilot.press("enter", "down")
            await until(pilot, lambda text: "filter: MANUAL write" in text)
            await pilot.press("escape")
            await until(pilot, lambda text: "NEEDS YOU (5)" in text)

    do(scene)


def test_it_follows_by_the_bell(home: Home, store: Store) -> None:
    """What another process does is seen although nobody would look again by himself."""

    async def scene() -> None:
        async with top(home, poll_seconds=NEVER) as pilot:
            for n in range(3):
                store.block("fleet-que", "question", f"number {n}?", by="ana").result()
                await until(pilot, lambda text, n=n: f"number {n}?" in text)  # type: ignore[misc]
                store.answer("fleet-que", "yes", by="ana").result()

    do(scene)


def test_it_follows_on_postgresql(tmp_path: Path, postgres_stores: PostgresStores) -> None:
    """The same screen, the same bell, where several machines share a store."""
    store = postgres_stores.open()
    store.submit([a_task("Build", uid="fleet-que")], by="ana").result()
    home = Home(tmp_path / "home")
    home.path.mkdir(mode=0o700)
    home.toml.write_text(f'[store]\nurl = "{postgres_stores.url}"\nschema = "{postgres_stores.schema}"\n')

    async def scene() -> None:
        async with top(home, poll_seconds=NEVER) as pilot:
            for n in range(2):
                store.block("fleet-que", "question", f"number {n}?", by="ana").result()
                await until(pilot, lambda text, n=n: f"number {n}?" in text)  # type: ignore[misc]
                await pilot.press("a", *"yes", "enter")
                await until(
                    pilot, lambda text: "Answered fleet-que: it is queued again" in text and "QUEUED (1)" in text
                )

    do(scene)


def test_a_store_that_vanishes(home: Home, store: Store) -> None:
    """The screen says so, keeps what it saw last, and goes on when the store is there again."""
    aside = home.path.with_name("aside")

    async def scene() -> None:
        async with top(home, size=(200, 40)) as pilot:
            store.close()
            shutil.move(home.path, aside)
            pilot.app._looking.wake()  # type: ignore[attr-defined]
            shown = await until(pilot, lambda text: "the store cannot be read (shown as of" in text)
            assert "Which host?" in shown
            await pilot.press("s", "y")
            await until(pilot, lambda text: "cannot be read" in text)
            shutil.move(aside, home.path)
            pilot.app._looking.wake()  # type: ignore[attr-defined]
            shown = await until(pilot, lambda text: "cannot be read" not in text)
            assert "no supervisor is running: fleet run" in shown  # its lease went with the store that was closed
            assert "(stale) Write the manual" in shown

    do(scene)


def test_quitting(home: Home, store: Store) -> None:
    """q leaves, and nothing is left behind: no bell, no thread."""

    async def scene() -> None:
        async with top(home) as pilot:
            assert len(list(home.bells.iterdir())) == 1
            await pilot.press("q")
        assert list(home.bells.iterdir()) == []

    do(scene)
