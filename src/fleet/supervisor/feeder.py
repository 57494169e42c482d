"""The feeder: takes what an outside queue has ready into Fleet's own, and what people change there.

An issue is claimed there first, under our name, and enters Fleet's queue under its own id. So after a crash between
the two the claim is found again, and nobody else can have begun it. What an issue says and where it stands is theirs
to change at any time; where a task stands while it runs is ours.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import msgspec

from fleet.errors import Conflict, Fenced, FleetError, ProgramError, UsageError
from fleet.model.ids import TOKEN
from fleet.model.states import ENDED, IN_PROGRESS, OPEN, TaskState
from fleet.model.task import BLOCKS, MAX_TITLE, PRIORITIES, Bead, NewTask, Task, TaskEdit
from fleet.sources.source import Issue, Source
from fleet.store import feedfile, taskfile
from fleet.supervisor.guard import Guard
from fleet.supervisor.house import House
from fleet.supervisor.reporter import BY, HELD, Reporter

LOOK_SECONDS = 0.5  # between two cheap looks: has something been touched?
POLL_SECONDS = 10.0  # between two real ones, where the cheap look says nothing
LONGEST_WAIT = 60.0  # after failures, and for how long a drain puts up with them
SAME_ID = "a task of Fleet's own queue has the same id"


class Fed(msgspec.Struct, frozen=True):
    """What one round did."""

    told: int = 0
    changed: int = 0
    taken: int = 0
    left: int = 0  # ready there, and no room here
    waits: int = 0  # of ours, that moved while we looked: their turn is the next round


class Feeder:
    """Feeds one supervisor from one source. Of several supervisors of a home one feeds at a time."""

    def __init__(self, house: House, source: Source) -> None:
        self._house = house
        self._source = source
        self._pool = ThreadPoolExecutor(1, thread_name_prefix="fleet-source")
        self._reporter = Reporter(house, source, self._pool)
        self._ask = self._reporter.ask
        self.wake = asyncio.Event()
        self._idle = False  # the last round had nothing to do
        self._other_feeds = False
        self._failing_since = 0.0
        self._failures = 0
        self._error = ""
        self._refused: set[str] = set()
        self._newest = 0  # the newest event when the last round began

    async def run(self) -> None:
        """Feed until cancelled; while another supervisor of this home does, wait."""
        try:
            while True:
                guard = Guard(self._house.home.path / "feeder.lock")
                try:
                    guard.__enter__()
                except Conflict:
                    self._other_feeds = True
                    await asyncio.sleep(POLL_SECONDS)
                    continue
                self._other_feeds = False
                try:
                    await self._feed()
                finally:
                    guard.__exit__(None, None, None)
        finally:
            self._source.stop()
            self._pool.shutdown(wait=False, cancel_futures=True)

    def quiet(self) -> bool:
        """Whether nothing is to be had or told, or somebody else sees to it.

        Raises when the source has failed for too long to know.
        """
        if self._other_feeds:
            return True
        if self._failures and asyncio.get_running_loop().time() - self._failing_since > LONGEST_WAIT:
            raise ProgramError(f"the queue of bd cannot be read: {self._error}", hint="run `fleet doctor`")
        return self._idle and self._newest == self._newest_event()

    async def _feed(self) -> None:
        loop = asyncio.get_running_loop()
        look_at, seen = 0.0, None
        while True:
            self.wake.clear()
            try:
                touched = self._source.touched()
                if loop.time() >= look_at or touched != seen or self._reporter.news().told:
                    seen, self._idle = touched, False
                    look_at = loop.time() + (POLL_SECONDS if await self._round() else 0)
            except (FleetError, OSError) as exc:
                self._fail(exc)
                await asyncio.sleep(min(LONGEST_WAIT, 0.5 * 2**self._failures))
                look_at = 0.0
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(LOOK_SECONDS):
                    await self.wake.wait()

    async def _round(self) -> bool:
        """One round, and what follows from it. True: there is nothing more to do for now."""
        newest = self._newest_event()
        fed = await self.run_once()
        if self._failures:
            self._house.log("queue_back", after=self._failures)
        self._failures = 0
        feedfile.write(self._house.home, left=fed.left)
        if fed.taken or fed.changed:
            self._house.wake.set()
        busy = bool(fed.told or fed.changed or fed.waits)
        self._newest, self._idle = newest, not (busy or fed.taken or fed.left)
        return not busy

    def _fail(self, exc: FleetError | OSError) -> None:
        """A failure of the source, or one of ours that may pass, is shown and tried again; any other ends us."""
        ours = isinstance(exc, FleetError) and not isinstance(exc, ProgramError) and not exc.retryable
        if ours and (isinstance(exc, Fenced) or not isinstance(exc, Conflict)):
            raise exc
        self._failing_since = self._failing_since if self._failures else asyncio.get_running_loop().time()
        self._failures = min(10, self._failures + 1)
        self._error = str(exc)
        self._house.log("queue_failed", error=self._error, times=self._failures)
        feedfile.write(self._house.home, error=self._error)

    def _newest_event(self) -> int:
        newest = self._house.store.last(1)
        return newest[-1].seq if newest else 0

    async def run_once(self) -> Fed:
        """Tell, then look, then take."""
        told = await self._reporter.run_once()
        listed = {issue.id: issue for issue in await self._ask(self._source.listed)}
        ours = [task for task in self._house.store.tasks(OPEN) if self._reporter.is_ours(task)]
        claimed = [issue for issue in listed.values() if self._is_mine(issue)]  # one of them may be cut off from us
        changed = waits = 0
        for task in ours:
            if self._is_told(task.uid):
                changed += await self._follow(task, listed)
            else:
                waits += 1
        for issue in claimed:
            if self._is_told(issue.id):  # not one that was held just now
                changed += await self._enter(issue)
        taken, left = await self._take_ready()
        return Fed(told=told, changed=changed, taken=taken, left=left, waits=waits)

    def _is_told(self, uid: str) -> bool:
        """Whether the source knows all that happened to a task; else what stands there is not what people mean."""
        return self._house.store.is_told(uid, self._reporter.position)

    # what is ready there

    async def _take_ready(self) -> tuple[int, int]:
        room = self._room()
        if room <= 0:
            return 0, 0
        taken = 0
        found = [issue for issue in await self._ask(self._source.ready) if self._may_enter(issue)]
        for place, issue in enumerate(found):
            if taken == room:
                return taken, len(found) - place
            claimed = await self._ask(self._source.claim, issue.id)
            self._house.at("fed")
            if claimed is not None:
                taken += await self._enter(claimed)
        return taken, 0

    def _room(self) -> int:
        """How many more could begin at once. What waits for a coder that is paused takes no room."""
        house = self._house
        wanted = house.settings.supervisor.max_concurrent * max(1, len(house.store.supervisors()))
        busy = sum(house.store.counts().get(state.value, 0) for state in IN_PROGRESS)
        paused = house.paused()
        ready = [task for task in house.store.ready(limit=wanted + len(paused) * wanted) if not self._waits(task.coder)]
        return wanted - busy - len(ready)

    def _waits(self, coder: str | None) -> bool:
        return (coder or self._house.defaults.coder) in self._house.paused()

    def _may_enter(self, issue: Issue) -> bool:
        """Whether a ready issue can become a task now. One whose task goes on already is dealt with elsewhere."""
        if not TOKEN.fullmatch(issue.id):
            return self._refuse(issue.id, "its id cannot name a directory")
        if issue.id in self._refused or self._waits(taskfile.beside(self._house.home, issue.id).coder):
            return False
        task = self._house.store.tasks_by_uid([issue.id]).get(issue.id)
        if task is not None and not self._reporter.is_ours(task):
            return self._refuse(issue.id, SAME_ID)
        if task is None:
            return True
        if not self._is_told(task.uid):  # it ended while we looked; that it is open there does not mean: once more
            return False
        return task.state in ENDED or task.state is TaskState.BLOCKED

    async def _enter(self, issue: Issue) -> bool:
        """An issue that we have claimed enters the queue, or comes back to it. False: it is there already."""
        house, store = self._house, self._house.store
        task = store.tasks_by_uid([issue.id]).get(issue.id)
        try:
            if task is None:
                beside = taskfile.beside(house.home, issue.id)
                host = house.machine if beside.cwd else None
                fields = _fields(issue) | msgspec.structs.asdict(beside) | {"uid": issue.id, "host": host}
                (task,) = await store.submit([NewTask(**fields)], by=self._source.name)
            elif not self._reporter.is_ours(task):
                return self._refuse(issue.id, SAME_ID)
            elif task.state in ENDED or task.state is TaskState.BLOCKED:
                await self._edit(task, issue)
                task = await store.requeue(task.uid, "it is open again in bd", by=BY)
            else:
                return False
        except UsageError as exc:
            self._refuse(issue.id, str(exc))
            await self._ask(self._source.hold, issue.id, f"Fleet cannot take it: {exc}")
            return False
        taskfile.write(house.home, task)
        house.log("issue_taken", task=task.uid, title=task.title)
        return True

    def _refuse(self, issue: str, why: str) -> bool:
        if issue not in self._refused:
            self._refused.add(issue)
            self._house.log("issue_refused", issue=issue, reason=why)
        return False

    # what changed there

    async def _follow(self, task: Task, listed: Mapping[str, Issue]) -> bool:
        """Bring a task that has not ended up with its issue."""
        issue = listed.get(task.uid) or await self._ask(self._source.find, task.uid)
        if issue is None:
            return await self._lose(task, "it was deleted in bd")
        if issue.status == "closed":
            return await self._lose(task, f"it was closed in bd: {issue.close_reason or 'no reason given'}")
        changed = await self._edit(task, issue)
        if task.state is TaskState.BLOCKED:
            taken = issue.status == "in_progress" and not self._is_mine(issue)
            return await self._lose(task, f"it was taken in bd by {issue.assignee}") if taken else changed
        needs = [one.depends_on_id for one in issue.dependencies if one.type == BLOCKS and one.depends_on_id in listed]
        if self._is_mine(issue) and not needs:
            return changed
        return await self._keep_or_leave(task, issue, needs) or changed

    async def _keep_or_leave(self, task: Task, issue: Issue, needs: list[str]) -> bool:
        """A task that goes on here, of an issue that is not simply ours any more."""
        runs = task.state in IN_PROGRESS
        if needs and not runs:
            return await self._block(task, f"it needs {', '.join(needs)} in bd")
        if issue.status == "open":  # let go by somebody, or by a lease of bd's: it is worked on all the same
            back = await self._ask(self._source.resume, task.uid)
            return back is None and await self._lose(task, "it was taken in bd by somebody else")
        if issue.status == "in_progress":
            return not self._is_mine(issue) and await self._lose(task, f"it was taken in bd by {issue.assignee}")
        text = f"it was set to {issue.status} in bd"
        return await self._intend("interrupt", task, text) if runs else await self._block(task, text)

    async def _block(self, task: Task, text: str) -> bool:
        with contextlib.suppress(Conflict):  # it was claimed in between: the next round sees it run
            await self._house.store.block(task.uid, HELD, text, by=BY)
            self._house.log("issue_held", task=task.uid, reason=text)
            return True
        return False

    async def _lose(self, task: Task, reason: str) -> bool:
        """The issue is not ours any more: a session is ended, and the task with it."""
        store = self._house.store
        if task.state not in IN_PROGRESS:
            with contextlib.suppress(Conflict):  # it was claimed in between
                await store.cancel(task.uid, reason, by=BY)
                self._house.log("issue_lost", task=task.uid, reason=reason)
                return True
        return await self._intend("stop", task, reason)

    async def _intend(self, verb: str, task: Task, reason: str) -> bool:
        """Ask for it once, as a person would: whichever supervisor has the session carries it out."""
        if any(asked.verb == verb and asked.outcome is None for asked in self._house.store.intents(target=task.uid)):
            return False
        await self._house.store.intend(verb, task.uid, by=BY, args={"reason": reason})
        self._house.log("issue_lost", task=task.uid, reason=reason)
        return True

    async def _edit(self, task: Task, issue: Issue) -> bool:
        """Take what was edited there."""
        wanted = _fields(issue)
        differing = {name: value for name, value in wanted.items() if getattr(task, name) != value}
        if not differing:
            return False
        try:
            after = await self._house.store.edit(task.uid, TaskEdit(**differing), by=BY)
        except FleetError as exc:
            if not isinstance(exc, UsageError):
                raise
            self._house.log("issue_edit_refused", task=task.uid, error=str(exc))
            return False
        taskfile.write(self._house.home, after)
        return True

    def _is_mine(self, issue: Issue) -> bool:
        return issue.status == "in_progress" and issue.assignee == self._source.name


def _fields(issue: Issue) -> dict[str, Any]:
    """What an issue says, in the fields of a task."""
    title = " ".join("".join(c if c.isprintable() else " " for c in issue.title).split())[:MAX_TITLE]
    pairs = (word.partition("=") for word in issue.labels)
    return {
        "title": title or issue.id,
        "description": issue.description,
        "priority": issue.priority if issue.priority in PRIORITIES else max(PRIORITIES),
        "labels": {name.strip(): value.strip() for name, _, value in pairs if name.strip()},
        "bead": Bead(
            issue_type=issue.issue_type,
            notes=issue.notes,
            design=issue.design,
            acceptance_criteria=issue.acceptance_criteria,
            external_ref=issue.external_ref,
            metadata=issue.metadata,
        ),
    }
