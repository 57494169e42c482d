"""Taking in: what an outside queue has ready becomes a task, under the id that it has there."""

from __future__ import annotations

from typing import Any

import msgspec

from fleet.errors import UsageError
from fleet.model.ids import TOKEN
from fleet.model.states import ENDED, IN_PROGRESS, TaskState
from fleet.model.task import MAX_TITLE, PRIORITIES, Bead, NewTask, Task, TaskEdit
from fleet.sources.source import Issue, Source
from fleet.store import taskfile
from fleet.supervisor.house import House
from fleet.supervisor.reporter import BY, Reporter

SAME_ID = "a task of Fleet's own queue has the same id"


class Intake:
    """Takes from one source as much as could begin at once."""

    def __init__(self, house: House, source: Source, reporter: Reporter) -> None:
        self._house = house
        self._source = source
        self._reporter = reporter
        self._ask = reporter.ask
        self._refused: set[str] = set()

    async def take_ready(self) -> tuple[int, int]:
        """Claim there and take in what is ready; how many, and how many are left for want of room."""
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
                taken += await self.enter(claimed)
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
        if not self._reporter.has_told(task.uid):
            return False  # it ended while we looked; that it is open there does not mean: once more
        return task.state in ENDED or task.state is TaskState.BLOCKED

    async def enter(self, issue: Issue) -> bool:
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
                await self.edit(task, issue)
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

    async def edit(self, task: Task, issue: Issue) -> bool:
        """Take what was edited there."""
        wanted = _fields(issue)
        differing = {name: value for name, value in wanted.items() if getattr(task, name) != value}
        if not differing:
            return False
        try:
            after = await self._house.store.edit(task.uid, TaskEdit(**differing), by=BY)
        except UsageError as exc:
            self._house.log("issue_edit_refused", task=task.uid, error=str(exc))
            return False
        taskfile.write(self._house.home, after)
        return True


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
