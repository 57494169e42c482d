"""Steering: what people decide about work that is there. Each decision stands in the ledger, with who asked."""

from __future__ import annotations

import contextlib
from collections.abc import Callable

from fleet.config.settings import Supervisor
from fleet.errors import Conflict
from fleet.model.intent import Intent
from fleet.model.states import IN_PROGRESS, OPEN, RunState
from fleet.model.task import BLOCKS, Task
from fleet.policy.ending import allowance_of
from fleet.policy.limits import limits_of, used_by, used_up
from fleet.policy.restarting import Refusal, refusal, without_budget
from fleet.store.store import Store


class Steering:
    """Interrupt, restart and stop, in one person's name.

    What concerns a live session is asked of its supervisor: it is recorded as an intent, and carried out there.
    """

    def __init__(
        self,
        store: Store,
        configured: Supervisor,
        *,
        by: str,
        written: Callable[[Task], Task],
        after: Callable[[], object],
    ) -> None:
        self._store = store
        self._configured = configured
        self._by = by
        self._written = written
        self._after = after

    def interrupt(self, word: str, reason: str) -> Intent:
        """End the session of a task; the task waits for a person. No attempt is used."""
        found = self._store.find(word)
        if found.state not in IN_PROGRESS:
            raise Conflict(f"task {found.uid} is {found.state.value}; it has no session to interrupt")
        return self._ask("interrupt", found, reason)

    def restart(self, word: str, reason: str, *, force: bool = False) -> Task | Intent:
        """Run a task again: end its session if it has one, else take back its end. `force` overrides what is refused
        of a task that has passed, has no attempt left, or is not safe to run twice."""
        found = self._store.find(word)
        if found.state not in IN_PROGRESS:
            self.require_budget(found)
            check = None if force else self._may_restart
            try:
                return self._written(self._store.requeue(found.uid, reason, by=self._by, check=check).result())
            except Conflict:
                found = self._store.task(found.uid)
                if found.state not in IN_PROGRESS:
                    raise
        if not force:
            self._may_restart(found)
        return self._ask("restart", found, reason)

    def abandon(self, word: str, reason: str, *, force: bool = False) -> Task:
        """Give up the session of a task whose host does not answer, by this person's word; another may start."""
        found = self._store.find(word)
        if not force:
            self._may_restart(found)
        return self._written(self._store.abandon(found.uid, reason, by=self._by).result())

    def stop(self, word: str, reason: str) -> list[Task | Intent]:
        """Cancel a task; returns it and all that is skipped for its sake."""
        found = self._store.find(word)
        if found.state not in IN_PROGRESS:
            try:
                task = self._store.cancel(found.uid, reason, by=self._by).result()
                return [self._written(task), *self._skipped_for(task.uid)]
            except Conflict:
                found = self._store.task(found.uid)
                if found.state not in IN_PROGRESS:
                    raise
        return [self._ask("stop", found, reason)]

    def stop_all(self, reason: str) -> list[Task | Intent]:
        """Cancel everything that has not ended."""
        return self._stop_each(self._store.tasks(OPEN), reason)

    def stop_run(self, word: str, reason: str) -> list[Task | Intent]:
        """Cancel what has not ended of a run; the run is then stopped, not completed."""
        run = self._store.find_run(word)
        if run.state is not RunState.ACTIVE:
            return []
        self._store.stop_run(run.id, reason, by=self._by).result()
        return self._stop_each(self._store.tasks(OPEN, run=run.id), reason)

    def require_budget(self, task: Task) -> None:
        """Raise where a session would have nothing to run on: it would end at once."""
        used = used_by(self._store.sessions(task=task.uid))
        gone = used_up(limits_of(task.terms, self._configured).budget, used)
        if gone is not None:
            _raise(without_budget(task, gone))

    def _may_restart(self, task: Task) -> None:
        _raise(refusal(task, allowance_of(task.terms, self._configured)))

    def _ask(self, verb: str, task: Task, reason: str) -> Intent:
        intent = self._store.intend(verb, task.uid, args={"reason": reason}, by=self._by).result()
        self._after()
        return intent

    def _stop_each(self, tasks: list[Task], reason: str) -> list[Task | Intent]:
        """What has not begun goes first, all of it at once: a slot that comes free must find nothing more to start."""
        waiting = [task.uid for task in tasks if task.state not in IN_PROGRESS]
        asked = [self._store.cancel(uid, reason, by=self._by) for uid in waiting]
        stopped: list[Task | Intent] = []
        for pending in asked:
            with contextlib.suppress(Conflict):  # it began meanwhile, or was skipped for another's sake
                task = pending.result()
                stopped += [self._written(task), *self._skipped_for(task.uid)]
        for task in tasks:
            if self._store.task(task.uid).state in OPEN:
                stopped += self.stop(task.uid, reason)
        return stopped

    def _skipped_for(self, uid: str) -> list[Task]:
        """The tasks that were skipped because this one will not be completed, however far down."""
        skipped: dict[str, Task] = {}
        ended = [uid]
        while ended:
            needed = ended.pop()
            for name, kind in self._store.dependents(needed):
                task = self._store.task(name)
                if kind == BLOCKS and task.skipped_for == needed and name not in skipped:
                    skipped[name] = task
                    ended.append(name)
        return list(skipped.values())


def _raise(refused: Refusal | None) -> None:
    if refused is not None:
        raise Conflict(refused.reason, hint=refused.hint)
