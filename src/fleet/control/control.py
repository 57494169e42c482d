"""The verbs. Each is one transition of the store, then the files that people and agents read are brought up with it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import TYPE_CHECKING

import msgspec
from msgspec.structs import replace

from fleet.config.home import Home
from fleet.config.settings import Supervisor
from fleet.control.many import Later, each
from fleet.control.steering import Steering
from fleet.errors import Conflict, FleetError, UsageError
from fleet.model.receipt import Verdict
from fleet.model.run import Run
from fleet.model.states import Result
from fleet.model.task import BLOCKS, KEPT, Comment, NewTask, Task, TaskEdit
from fleet.policy.redaction import redacted
from fleet.store import qafile, taskfile
from fleet.store.store import Store

if TYPE_CHECKING:
    from fleet.model.spec import RunSpec


class Submitted(msgspec.Struct, frozen=True):
    """A run that entered the queue, with its tasks in the order of the spec."""

    run: Run
    tasks: list[Task]


class Control:
    """Verbs, in one person's name. What raises has changed nothing."""

    def __init__(
        self,
        store: Store,
        home: Home,
        *,
        by: str,
        machine: str,
        configured: Supervisor,
        check_coder: Callable[[str], str],
        after: Callable[[], object],
    ) -> None:
        self.reads = store
        self._store = store
        self._home = home
        self._by = by
        self._machine = machine
        self._check_coder = check_coder
        self._after = after
        self.steer = Steering(store, configured, by=by, written=self._kept, after=after)

    def close(self) -> None:
        """Let go of the store."""
        self._store.close()

    def add(self, new: NewTask) -> Task:
        """Put a task in the queue. A directory binds it to this machine."""
        if new.coder:
            self._check_coder(new.coder)
        if new.coder == "command" and new.model:
            raise UsageError(f"a command has no model, and `{new.model}` is given", hint="leave the model out")
        needs = tuple(self._store.find(word).uid for word in new.needs)
        bound = replace(redacted(new), needs=needs, host=new.host or (self._machine if new.cwd else None))
        (task,) = self._store.submit([bound], by=self._by).result()
        return self._written(task)

    def submit(self, spec: RunSpec, *, max_workers: int | None = None, base: str | None = None) -> Submitted:
        """Put the tasks of a spec in the queue, as one run. A task has the labels of its run too.

        Where workers are elsewhere, a task without a directory is bound to no machine, and `base` goes with it.
        """
        asks = [task.new() for task in spec.tasks]
        for name in {asked.coder for asked in asks if asked.coder}:
            self._check_coder(name)
        new = []
        for asked in asks:
            labels = {**spec.labels, **asked.labels}
            bound = self._machine if asked.cwd and not spec.away else None
            terms = replace(asked.terms, base=base) if bound is None and base else asked.terms
            new.append(redacted(replace(asked, labels=labels, host=bound, terms=terms)))
        run = redacted(spec.new(max_workers=max_workers))
        made = self._store.submit(new, run=run, by=self._by).result()
        for submitted in made:
            taskfile.write(self._home, submitted)
        self._after()
        return Submitted(run=self._store.run(str(made[0].run)), tasks=made)

    def edit(self, word: str, change: TaskEdit) -> Task:
        """Change a task's own fields."""
        fields = change.changes()
        if fields.get("coder"):
            self._check_coder(str(fields["coder"]))
        if "cwd" in fields and "host" not in fields:
            change = replace(change, host=self._machine if fields["cwd"] else None)
        task = self._store.edit(self._store.find(word).uid, change, by=self._by).result()
        return self._written(task)

    def amend(self, word: str, change: Callable[[Task], TaskEdit]) -> Task:
        """Change a task by what stands in it, such as adding a label; it is read and written in one step."""
        task = self._store.amend(self._store.find(word).uid, change, by=self._by).result()
        return self._written(task)

    def link(self, word: str, other: str, kind: str = BLOCKS) -> Task:
        """Make a task need another, or relate them."""
        task = self._store.link(
            self._store.find(word).uid, self._store.find(other).uid, kind=kind, by=self._by
        ).result()
        return self._written(task)

    def unlink(self, word: str, other: str) -> Task:
        """Take a relation away."""
        task = self._store.unlink(self._store.find(word).uid, self._store.find(other).uid, by=self._by).result()
        return self._written(task)

    def comment(self, word: str, text: str) -> Comment:
        """Remark on a task."""
        made = self._store.comment(self._store.find(word).uid, text, by=self._by).result()
        self._after()
        return made

    def block(self, word: str, kind: str, text: str) -> Task:
        """Hold a task until a person lets it go."""
        task = self._store.block(self._store.find(word).uid, kind, text, by=self._by).result()
        return self._written(task)

    def take(self, word: str) -> Task:
        """Take a queued task for oneself: no supervisor runs it until it is put back."""
        task = self._store.take(self._store.find(word).uid, by=self._by).result()
        return self._written(task)

    def answer(self, word: str, text: str) -> Task:
        """Answer what a task waits for; it is queued again, and the answer stands in its Q&A.md."""
        done = self._answer(self._store, word, text)()
        self._after()
        return done

    def answer_each(self, words: Sequence[str], text: str) -> Iterator[Task | FleetError]:
        """The same answer to many. Where one of them is not found nothing is answered: a word of the text that was
        taken for an id must not have the rest of it sent to the others."""
        found = [self._store.find(word).uid for word in words]
        return each(self._store, list(dict.fromkeys(found)), partial(self._answer, text=text), self._after)

    def _answer(self, store: Store, word: str, text: str) -> Later[Task]:
        asked = self._store.find(word)
        if asked.block and asked.block.kind in KEPT:
            raise Conflict(
                f"task {asked.uid} asks nothing: it is {asked.block.kind} by {asked.block.by}",
                hint=f"to put it back in the queue: fleet bd update {asked.uid} --status open",
            )
        if asked.block and asked.block.kind == "budget":
            self.steer.require_budget(asked)
        pending = store.answer(asked.uid, text, by=self._by)
        return lambda: self._noted(self._kept(pending.result()), asked, text)

    def _noted(self, task: Task, asked: Task, text: str) -> Task:
        try:
            qafile.answer(self._home, task.uid, asked.block.text if asked.block else "", text, at=task.updated_at)
        except OSError as exc:
            raise FleetError(
                f"{task.uid} is answered, but {qafile.path(self._home, task.uid)} cannot be written: {exc.strerror}",
                hint="the answer is kept in the ledger; add it to the file by hand",
            ) from exc
        return task

    def close_task(self, word: str, reason: str) -> Task:
        """A person says that a task is done. The receipt says that a person said it."""
        found = self._store.find(word)
        verdict = Verdict(result=Result.PASS, reason=reason, scorer="manual", evidence=(f"closed by {self._by}",))
        task = self._store.settle(found.uid, verdict, by=self._by).result()
        return self._written(task)

    def verify(self, word: str) -> Task:
        """Have the verifier of a task run, for the first time or again."""
        from fleet.control.judging import verify_again

        return self._written(verify_again(self._store, self._store.find(word), by=self._by))

    def judge(self, word: str, *, passed: bool, note: str) -> Task:
        """A person's verdict on a result."""
        from fleet.control.judging import settle_by_hand

        task = self._store.find(word)
        return self._written(settle_by_hand(self._store, task, passed=passed, note=note, by=self._by))

    def requeue(self, word: str, reason: str) -> Task:
        """Put a task that ended or is held back into the queue."""
        task = self._store.requeue(self._store.find(word).uid, reason, by=self._by).result()
        return self._written(task)

    def _written(self, task: Task) -> Task:
        self._kept(task)
        self._after()
        return task

    def _kept(self, task: Task) -> Task:
        taskfile.write(self._home, task)
        return task
