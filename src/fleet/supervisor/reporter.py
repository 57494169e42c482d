"""The reporter: tells an outside queue what became of its issues.

It follows the ledger with a cursor that is kept. What it says is made from the task as it stands, and only where the
issue is still as we left it: so saying it again after a crash changes nothing, and what a person did there meanwhile
stays.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import Executor
from typing import Any, TypeVar

import msgspec

from fleet.errors import Conflict
from fleet.model import event as ev
from fleet.model.states import ENDED, TaskState
from fleet.model.task import ASKED, Comment, Task
from fleet.sources.source import Source
from fleet.supervisor.house import House

T = TypeVar("T")
BY = "bd"  # who changed it, where that was not said here
HELD = "held"  # the kind of block that says: the outside queue does not let it run now
MOVES = (ev.TaskSettled, ev.TaskBlocked, ev.TaskAnswered, ev.TaskRequeued)


class Told(msgspec.Struct):
    """What happened to a task since the last look, as far as it is to be told."""

    moved: bool = False
    resumed: bool = False  # a person let it go on, here and not there
    comments: list[Comment] = []


class News(msgspec.Struct, frozen=True):
    """A piece of the ledger: what is to be told of it, and where it ends."""

    told: dict[str, Told]
    position: str


class Reporter:
    """Reports to one source, by the name that its tasks were submitted under."""

    def __init__(self, house: House, source: Source, pool: Executor) -> None:
        self._house = house
        self._source = source
        self._pool = pool
        self._cursor = f"source/{source.name}"
        self._position = house.store.cursor(self._cursor)

    @property
    def position(self) -> str:
        """Up to where everything has been told."""
        return self._position

    def has_told(self, uid: str) -> bool:
        """Whether the source knows all that happened to a task; else what stands there is not what people mean."""
        return self._house.store.is_told(uid, self._position)

    async def ask(self, call: Callable[..., T], *words: Any) -> T:
        """One call of the source, in its one thread."""
        return await asyncio.get_running_loop().run_in_executor(self._pool, call, *words)

    async def run_once(self) -> int:
        """Tell all that there is to tell; returns of how many tasks."""
        count = 0
        while (news := self.news()).position != self._position:
            for uid, told in news.told.items():
                await self._tell(uid, told)
                self._house.at("told")
                count += 1
            if news.told:
                await self._house.store.advance(self._cursor, news.position)
            self._position = news.position
        return count

    def news(self) -> News:
        """What is to be told next. A piece without any is not remembered: reading it again costs little."""
        batch = self._house.store.feed(self._position)
        found: dict[str, Told] = {}
        before: dict[str, ev.Event] = {}
        for entry in batch.entries:
            event = entry.event
            told = found.setdefault(event.subject, Told())
            if isinstance(event, MOVES):
                told.moved = True
                told.resumed = told.resumed or _lets_go_on(event, before.get(event.subject))
            elif isinstance(event, ev.TaskCommented):
                told.comments = [*told.comments, event.comment]
            before[event.subject] = event
        wanted = [uid for uid, told in found.items() if told.moved or told.comments]
        ours = {uid for uid, task in self._house.store.tasks_by_uid(wanted).items() if self.is_ours(task)}
        return News({uid: found[uid] for uid in wanted if uid in ours}, batch.position)

    def is_ours(self, task: Task) -> bool:
        """Whether a task came from this source."""
        return task.created_by == self._source.name

    async def _tell(self, uid: str, told: Told) -> None:
        source = self._source
        issue = await self.ask(source.find, uid)
        if issue is None:
            return  # it was deleted there: nobody to tell
        for comment in told.comments:
            await self.ask(source.remark, uid, f"{comment.by}: {comment.text}", comment.id)
        task = self._house.store.task(uid)
        mine = issue.is_claimed_by(source.name)
        if not told.moved or (issue.status == "closed" and task.state in ENDED):
            return
        if not mine and (told.resumed or (task.state is TaskState.COMPLETED and issue.status == "open")):
            # let go on by a person, and perhaps ended again since; or bd gave it back while it was worked on
            mine = await self.ask(source.resume, uid) is not None
        if mine and (task.state in ENDED or task.state is TaskState.BLOCKED):
            await self._tell_end(task)
        self._house.log("issue_told", task=uid, state=task.state.value, ours=mine)

    async def _tell_end(self, task: Task) -> None:
        """It does not run any more, and the issue says that it does."""
        source = self._source
        if task.state is TaskState.COMPLETED:
            try:
                await self.ask(source.close, task.uid, task.reason)
            except Conflict as exc:
                note = f"PASSED, but it cannot be closed: {exc}"
                await self.ask(source.hold, task.uid, note)
        elif task.block is not None and task.block.kind == HELD:
            await self.ask(source.release, task.uid)
        else:
            await self.ask(source.hold, task.uid, note_of(task))


def note_of(task: Task) -> str:
    """Why a task does not go on, as a note on its issue."""
    if task.block is not None:
        kind = "QUESTION" if task.block.kind in ASKED else f"NEEDS YOU ({task.block.kind})"
        return f"{kind}: {task.block.text}"
    verb = "STOPPED" if task.state is TaskState.CANCELLED else "FAILED"
    return f"{verb}: {task.reason} (fleet why {task.uid}; set it to open to run it again)"


def _lets_go_on(event: ev.Event, before: ev.Event | None) -> bool:
    """Whether a person let the task go on here; a retry comes with the end of its session."""
    if isinstance(event, ev.TaskAnswered):
        return True
    return isinstance(event, ev.TaskRequeued) and event.by != BY and not isinstance(before, ev.SessionEnded)
