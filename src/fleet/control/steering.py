"""Steering: what people decide about work that is there. Each decision stands in the ledger, with who asked."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import TypeVar

from fleet.config.settings import Supervisor
from fleet.control.many import Begin, Later, each
from fleet.errors import REFUSED, Conflict, FleetError
from fleet.model.intent import Intent
from fleet.model.states import IN_PROGRESS, OPEN, RunState
from fleet.model.task import BLOCKS, Task
from fleet.policy.ending import allowance_of
from fleet.policy.limits import limits_of, used_by, used_up
from fleet.policy.restarting import Refusal, refusal, without_budget
from fleet.store.store import Store

T = TypeVar("T")


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
        return self._now(self._interrupt(self._store, word, reason))

    def interrupt_each(self, words: Sequence[str], reason: str) -> Iterator[Intent | FleetError]:
        """The same of many."""
        return each(self._store, words, partial(self._interrupt, reason=reason), self._after)

    def restart(self, word: str, reason: str, *, force: bool = False) -> Task | Intent:
        """Run a task again: end its session if it has one, else take back its end. `force` overrides what is refused
        of a task that has passed, has no attempt left, or is not safe to run twice."""
        return self._now(self._restart(self._store, word, reason, force=force))

    def abandon(self, word: str, reason: str, *, force: bool = False) -> Task:
        """Give up the session of a task whose host does not answer, by this person's word; another may start."""
        return self._now(self._abandon(self._store, word, reason, force=force))

    def restart_each(
        self, words: Sequence[str], reason: str, *, force: bool = False, abandon: bool = False
    ) -> Iterator[Task | Intent | FleetError]:
        """Restart many, or abandon them."""
        begin: Begin[Task | Intent] = partial(self._abandon if abandon else self._restart, reason=reason, force=force)
        return each(self._store, words, begin, self._after)

    def stop(self, word: str, reason: str) -> list[Task | Intent]:
        """Cancel a task; returns it and all that is skipped for its sake."""
        return self._now(self._stop(self._store, word, reason, set()))

    def stop_each(self, words: Sequence[str], reason: str) -> Iterator[list[Task | Intent] | FleetError]:
        """The same of many. One that was skipped for the sake of another of them is not refused."""
        return each(self._store, words, partial(self._stop, reason=reason, skipped=set()), self._after)

    def stop_all(self, reason: str) -> Iterator[Task | Intent]:
        """Cancel everything that has not ended."""
        return self._stop_open(self._store.tasks(OPEN), reason)

    def stop_run(self, word: str, reason: str) -> Iterator[Task | Intent]:
        """Cancel what has not ended of a run; the run is then stopped, not completed."""
        run = self._store.find_run(word)
        if run.state is not RunState.ACTIVE:
            return iter(())
        self._store.stop_run(run.id, reason, by=self._by).result()
        return self._stop_open(self._store.tasks(OPEN, run=run.id), reason)

    def require_budget(self, task: Task) -> None:
        """Raise where a session would have nothing to run on: it would end at once."""
        used = used_by(self._store.sessions(task=task.uid))
        gone = used_up(limits_of(task.terms, self._configured).budget, used)
        if gone is not None:
            _raise(without_budget(task, gone))

    def _may_restart(self, task: Task) -> None:
        _raise(refusal(task, allowance_of(task.terms, self._configured)))

    def _now(self, begun: Later[T]) -> T:
        done = begun()
        self._after()
        return done

    def _interrupt(self, store: Store, word: str, reason: str) -> Later[Intent]:
        found = self._store.find(word)
        if found.state not in IN_PROGRESS:
            raise Conflict(f"task {found.uid} is {found.state.value}; it has no session to interrupt")
        return self._ask(store, "interrupt", found, reason)

    def _restart(self, store: Store, word: str, reason: str, *, force: bool) -> Later[Task | Intent]:
        found = self._store.find(word)
        if found.state in IN_PROGRESS:
            return self._restart_live(store, found, reason, force=force)
        self.require_budget(found)
        check = None if force else self._may_restart
        pending = store.requeue(found.uid, reason, by=self._by, check=check)

        def done() -> Task | Intent:
            try:
                return self._written(pending.result())
            except Conflict:
                now = self._store.task(found.uid)
                if now.state not in IN_PROGRESS:
                    raise
            return self._restart_live(self._store, now, reason, force=force)()  # it began meanwhile

        return done

    def _restart_live(self, store: Store, task: Task, reason: str, *, force: bool) -> Later[Task | Intent]:
        if not force:
            self._may_restart(task)
        return self._ask(store, "restart", task, reason)

    def _abandon(self, store: Store, word: str, reason: str, *, force: bool) -> Later[Task]:
        found = self._store.find(word)
        if not force:
            self._may_restart(found)
        pending = store.abandon(found.uid, reason, by=self._by)
        return lambda: self._written(pending.result())

    def _stop(self, store: Store, word: str, reason: str, skipped: set[str]) -> Later[list[Task | Intent]]:
        """Cancel it, or have its session ended. Who was skipped is added to `skipped`, and is stopped by that."""
        found = self._store.find(word)
        if found.state in IN_PROGRESS:
            asked = self._ask(store, "stop", found, reason)
            return lambda: [asked()]
        pending = store.cancel(found.uid, reason, by=self._by)

        def done() -> list[Task | Intent]:
            try:
                task = self._written(pending.result())
            except Conflict:
                if found.uid in skipped:
                    return []
                now = self._store.task(found.uid)
                if now.state not in IN_PROGRESS:
                    raise
                return [self._ask(self._store, "stop", now, reason)()]  # it began meanwhile
            others = self._skipped_for(task.uid)
            skipped.update(other.uid for other in others)
            return [task, *others]

        return done

    def _ask(self, store: Store, verb: str, task: Task, reason: str) -> Later[Intent]:
        return store.intend(verb, task.uid, args={"reason": reason}, by=self._by).result

    def _stop_open(self, tasks: list[Task], reason: str) -> Iterator[Task | Intent]:
        """What has not begun goes first: a slot that comes free must find nothing more to start."""
        waiting = [task.uid for task in tasks if task.state not in IN_PROGRESS]
        begun = [task.uid for task in tasks if task.state in IN_PROGRESS]
        for stopped in self.stop_each([*waiting, *begun], reason):
            if isinstance(stopped, REFUSED):  # it ended meanwhile
                continue
            if isinstance(stopped, FleetError):
                raise stopped
            yield from stopped

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
