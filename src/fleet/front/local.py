"""A fleet whose home is here: looks at it, and verbs, which go to control."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING

from fleet.errors import REFUSED, FleetError
from fleet.front.local_looks import LocalLooks

if TYPE_CHECKING:
    from fleet.config.home import Home
    from fleet.config.settings import Settings
    from fleet.config.specs.document import Document
    from fleet.control.control import Control
    from fleet.control.landing import Landing
    from fleet.control.specs import Coders
    from fleet.front.views import Add, Created, Decided
    from fleet.hosts.pool_worker import PoolWorker
    from fleet.model.intent import Intent
    from fleet.model.task import Task
    from fleet.policy.allocation import Member
    from fleet.projections.queue import TaskDetail
    from fleet.store.reads import Reads


class LocalFront(LocalLooks):
    """The looks, and the verbs."""

    def __init__(
        self,
        home: Home,
        *,
        settings: Callable[[], Settings],
        reads: Callable[[], Reads],
        control: Callable[[str], Control],
        landing: Callable[[], Landing],
        pool_worker: Callable[[Settings, Member], PoolWorker],
        coders: Callable[[Settings, str | None], Coders],
        base: Callable[[], str],
        by: str = "",
        close: Callable[[], None] = lambda: None,
    ) -> None:
        super().__init__(home, settings=settings, reads=reads, landing=landing, pool_worker=pool_worker)
        self._open_control = control  # in somebody's name; "": of whoever runs this
        self._coders = coders
        self._base = base  # where the relative directories of a spec begin
        self._by = by
        self._close = close

    def named(self, by: str) -> LocalFront:
        """The same, in somebody's name."""
        return LocalFront(
            self._home,
            settings=self._settings,
            reads=self._reads,
            control=self._open_control,
            landing=self._landing,
            pool_worker=self._pool_worker,
            coders=self._coders,
            base=self._base,
            by=by,
        )

    def close(self) -> None:
        """Let go of what was opened for it."""
        self._close()

    def add(self, new: Add) -> TaskDetail:
        """Put a task in the queue."""
        from fleet.model.task import NewTask
        from fleet.model.terms import Terms

        control = self._control()
        task = control.add(
            NewTask(
                title=new.title,
                description=new.description,
                coder=new.coder,
                model=new.model,
                cwd=new.cwd,
                priority=new.priority,
                needs=tuple(new.needs),
                labels=new.labels,
                terms=Terms(isolation=new.isolation),
            )
        )
        return self._detail(control.reads, task)

    def submit(
        self, document: Document, max_workers: int, *, coder: str | None = None, model: str | None = None
    ) -> Created:
        """Put the tasks of a spec in the queue, as one run; `coder` and `model` are for tasks that name none."""
        from fleet.control.specs import take_spec, with_defaults
        from fleet.front.views import Created
        from fleet.projections.runs import run_view

        control, settings, base = self._control(), self._settings(), self._base()
        hosts = {host.name: host for host in settings.hosts}
        coders = self._coders(settings, coder)
        read = take_spec(document, base=base, coders=coders, hosts=hosts)
        made = control.submit(
            with_defaults(read.spec, coder, model, coders.default), max_workers=max_workers, base=base
        )
        return Created(
            run=run_view(control.reads, made.run.id),
            tasks={task.task_id: task.uid for task in made.tasks},
            warnings=read.warnings,
            supervisors=[one.id for one in control.reads.supervisors()],
        )

    def answer(self, word: str, text: str) -> TaskDetail:
        """Answer what a task waits for; it is queued again."""
        control = self._control()
        return self._detail(control.reads, control.answer(word, text))

    def answer_each(self, words: Sequence[str], text: str) -> Iterator[TaskDetail | FleetError]:
        """The same answer to many; where one of them is not there, to none."""
        control = self._control()
        for one in control.answer_each(words, text):
            yield one if isinstance(one, FleetError) else self._detail(control.reads, one)

    def ask(self, word: str, text: str) -> TaskDetail:
        """Hold a task until a person has answered a question about it."""
        control = self._control()
        return self._detail(control.reads, control.block(word, "question", text))

    def interrupt(self, word: str, reason: str) -> Intent:
        """End the session of a task; it waits for a person then."""
        return self._control().steer.interrupt(word, reason)

    def interrupt_each(self, words: Sequence[str], reason: str) -> Iterator[Intent | FleetError]:
        """The same of many."""
        return self._control().steer.interrupt_each(words, reason)

    def restart(self, word: str, reason: str, *, force: bool = False, abandon: bool = False) -> Decided:
        """Run a task again; also by the name of a worker that is at no task any more."""
        from fleet.projections.inspect import found

        control = self._control()
        task, _ = found(control.reads, word)
        again = control.steer.abandon if abandon else control.steer.restart
        return self._decided(control, again(task.uid, reason, force=force))

    def restart_each(
        self, words: Sequence[str], reason: str, *, force: bool = False, abandon: bool = False
    ) -> Iterator[Decided | FleetError]:
        """The same of many."""
        control = self._control()
        named = [_uid(control.reads, word) for word in words]
        uids = [uid for uid in named if isinstance(uid, str)]
        done = control.steer.restart_each(uids, reason, force=force, abandon=abandon)
        for one in (next(done) if isinstance(uid, str) else uid for uid in named):
            yield one if isinstance(one, FleetError) else self._decided(control, one)

    def stop(self, word: str, reason: str) -> list[Decided]:
        """Cancel a task; what needs it is skipped."""
        control = self._control()
        return [self._decided(control, one) for one in control.steer.stop(word, reason)]

    def stop_each(self, words: Sequence[str], reason: str) -> Iterator[list[Decided] | FleetError]:
        """The same of many."""
        control = self._control()
        for one in control.steer.stop_each(words, reason):
            yield one if isinstance(one, FleetError) else [self._decided(control, each) for each in one]

    def stop_run(self, word: str, reason: str) -> Iterator[Decided]:
        """Cancel what has not ended of a run."""
        control = self._control()
        return (self._decided(control, one) for one in control.steer.stop_run(word, reason))

    def stop_all(self, reason: str) -> Iterator[Decided]:
        """Cancel everything that has not ended."""
        control = self._control()
        return (self._decided(control, one) for one in control.steer.stop_all(reason))

    def verify(self, word: str) -> TaskDetail:
        """Have the verifier of a task run, for the first time or again."""
        control = self._control()
        return self._detail(control.reads, control.verify(word))

    def judge(self, word: str, *, passed: bool, note: str) -> TaskDetail:
        """A person's verdict on a result."""
        control = self._control()
        return self._detail(control.reads, control.judge(word, passed=passed, note=note))

    def _control(self) -> Control:
        return self._open_control(self._by)

    def _decided(self, control: Control, decided: Task | Intent) -> Decided:
        from fleet.model.intent import Intent

        return decided if isinstance(decided, Intent) else self._detail(control.reads, decided)


def _uid(reads: Reads, word: str) -> str | FleetError:
    """The task that a word stands for; also by the name of a worker that is at no task any more."""
    from fleet.projections.inspect import found

    try:
        return found(reads, word)[0].uid
    except REFUSED as exc:
        return exc
