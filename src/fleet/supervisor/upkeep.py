"""Upkeep: a task that came from an outside queue goes on as long as, and as, its issue there says.

What an issue says and where it stands is theirs to change at any time; where a task stands while it runs is ours.
"""

from __future__ import annotations

import contextlib
from collections.abc import Mapping

from fleet.errors import Conflict
from fleet.model.states import IN_PROGRESS, TaskState
from fleet.model.task import BLOCKS, Task
from fleet.sources.source import Issue, Source
from fleet.supervisor.house import House
from fleet.supervisor.intake import Intake
from fleet.supervisor.reporter import BY, HELD, Reporter


class Upkeep:
    """Follows what people change in one source."""

    def __init__(self, house: House, source: Source, reporter: Reporter, intake: Intake) -> None:
        self._house = house
        self._source = source
        self._ask = reporter.ask
        self._intake = intake

    async def follow(self, task: Task, listed: Mapping[str, Issue]) -> bool:
        """Bring a task that has not ended up with its issue."""
        issue = listed.get(task.uid) or await self._ask(self._source.find, task.uid)
        if issue is None:
            return await self._lose(task, "it was deleted in bd")
        if issue.status == "closed":
            return await self._lose(task, f"it was closed in bd: {issue.close_reason or 'no reason given'}")
        changed = await self._intake.edit(task, issue)
        if task.state is TaskState.BLOCKED:
            taken = f"it was taken in bd by {issue.assignee}"
            return await self._lose(task, taken) if self._is_taken(issue) else changed
        needs = [one.depends_on_id for one in issue.dependencies if one.type == BLOCKS and one.depends_on_id in listed]
        if issue.is_claimed_by(self._source.name) and not needs:
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
            return self._is_taken(issue) and await self._lose(task, f"it was taken in bd by {issue.assignee}")
        text = f"it was set to {issue.status} in bd"
        return await self._intend("interrupt", task, text) if runs else await self._block(task, text)

    def _is_taken(self, issue: Issue) -> bool:
        return issue.status == "in_progress" and not issue.is_claimed_by(self._source.name)

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
