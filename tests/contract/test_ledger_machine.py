"""Random transitions, by hypothesis: after any of them, folding the events gives the rows, on both stores.

The machine knows only what it asked for. It calls verbs in any order, legal or not; a verb that is refused must leave
nothing behind, and one that is taken must leave a ledger that the audit agrees with.
"""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any, ClassVar

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    Bundle,
    RuleBasedStateMachine,
    initialize,
    invariant,
    multiple,
    rule,
    run_state_machine_as_test,
)

from fleet.errors import Conflict, NotFound, UsageError
from fleet.model.alert import Alert, AlertKind
from fleet.model.receipt import Verdict
from fleet.model.run import NewRun
from fleet.model.session import Ending, Fence, Progress
from fleet.model.states import Result, SessionState, Source, TaskState
from fleet.model.task import NewTask, TaskEdit
from fleet.store.pending import Pending
from fleet.store.store import Store
from fleet.testing.audit import audit
from fleet.testing.builders import DEFAULTS, a_verifier, slots
from tests.support.stores import PostgresStores, SqliteStores

ENDINGS = [Ending(outcome="ok"), Ending(outcome="crashed"), Ending(outcome="transient", state=SessionState.LOST)]
verdicts = st.builds(
    Verdict,
    result=st.sampled_from(Result),
    reason=st.just("because"),
    source=st.one_of(st.none(), st.sampled_from(Source)),
    awaits=st.sampled_from([None, a_verifier("manual"), a_verifier("command"), a_verifier("verifier_prompt")]),
)

alerts = st.lists(st.builds(Alert, kind=st.sampled_from(AlertKind), reason=st.just("look")), max_size=2)


class LedgerMachine(RuleBasedStateMachine):
    """Any verb, in any order, by two supervisors and a person."""

    make_stores: ClassVar[Any]
    tasks: Bundle[str] = Bundle("tasks")
    fences: Bundle[Fence] = Bundle("fences")

    def __init__(self) -> None:
        super().__init__()
        self.stores = type(self).make_stores()
        self.store: Store = self.stores.open()
        self.supervisors: dict[str, Store] = {}
        self.changed = True

    def teardown(self) -> None:
        self.stores.close()
        if isinstance(self.stores, SqliteStores):
            shutil.rmtree(self.stores.home)

    def said(self, verb: Callable[..., Pending[Any]], *args: Any, **named: Any) -> Any:
        """The answer, or None when the rules refused the verb; a refusal leaves no event."""
        before = self.store.last(1)
        try:
            answer = verb(*args, **named).result()
        except (Conflict, UsageError, NotFound):
            assert self.store.last(1) == before
            return None
        self.changed = True
        return answer

    @initialize()
    def first_supervisor(self) -> None:
        self.join("sup-0")

    def join(self, name: str) -> None:
        handle = self.stores.open()
        handle.join(name, machine="here", pid=1, seconds=3600).result()
        self.supervisors[name] = handle
        self.changed = True

    @rule()
    def another_supervisor(self) -> None:
        if len(self.supervisors) < 3:
            self.join(f"sup-{len(self.supervisors)}")

    @rule(target=tasks, n=st.integers(1, 3), priority=st.integers(0, 4), chained=st.booleans(), in_run=st.booleans())
    def submit(self, n: int, priority: int, chained: bool, in_run: bool) -> Any:
        new = [
            NewTask(
                title=f"task {k}", task_id=f"t{k}", priority=priority, needs=(f"t{k - 1}",) if chained and k else ()
            )
            for k in range(n)
        ]
        made = self.said(self.store.submit, new, run=NewRun(name="batch") if in_run else None, by="ana")
        return multiple(*(task.uid for task in made or []))

    @rule(target=tasks, needs=st.lists(tasks, min_size=1, max_size=3, unique=True))
    def submit_dependent(self, needs: list[str]) -> Any:
        made = self.said(self.store.submit, [NewTask(title="dependent", needs=tuple(needs))], by="ana")
        return multiple(*(task.uid for task in made or []))

    @rule(target=fences, n=st.integers(1, 4), who=st.integers(0, 2))
    def claim(self, n: int, who: int) -> Any:
        name = f"sup-{who}"
        handle = self.supervisors.get(name, self.store)
        claimed = self.said(handle.claim, name, slots(n), DEFAULTS) or []
        order = [(c.session.kind != "verify", c.task.priority) for c in claimed]
        assert order == sorted(order)
        return multiple(*(c.session.fence for c in claimed))

    @rule(fence=fences, pid=st.integers(1, 9))
    def started(self, fence: Fence, pid: int) -> None:
        self.said(self.store.started, fence, pid, by="sup")

    @rule(fence=fences)
    def stopping(self, fence: Fence) -> None:
        self.said(self.store.stopping, fence, "enough", by="sup")

    @rule(fence=fences, cursor=st.integers(0, 1000))
    def record(self, fence: Fence, cursor: int) -> None:
        self.said(self.store.record, fence, Progress(cursor=cursor))

    @rule(fence=fences, ending=st.sampled_from(ENDINGS), verdict=verdicts, alerts=alerts)
    def finish(self, fence: Fence, ending: Ending, verdict: Verdict, alerts: list[Alert]) -> None:
        charged = verdict.result is Result.FAIL
        self.said(self.store.finish, fence, ending, verdict, charged=charged, alerts=alerts, by="sup")

    @rule(fence=fences, charged=st.booleans(), delay=st.one_of(st.none(), st.integers(0, 10**13)))
    def retry(self, fence: Fence, charged: bool, delay: int | None) -> None:
        verdict = Verdict(result=Result.FAIL, reason="flaky", source=Source.TASK) if charged else None
        self.said(
            self.store.retry,
            fence,
            ENDINGS[1],
            verdict=verdict,
            reason="again",
            charged=charged,
            not_before=delay,
            by="sup",
        )

    @rule(fence=fences, delay=st.one_of(st.none(), st.integers(0, 10**13)))
    def postpone(self, fence: Fence, delay: int | None) -> None:
        self.said(self.store.postpone, fence, ENDINGS[2], a_verifier(), reason="later", not_before=delay, by="sup")

    @rule(fence=fences, kind=st.sampled_from(["question", "needs_human", "interrupted"]))
    def pause(self, fence: Fence, kind: str) -> None:
        self.said(self.store.pause, fence, ENDINGS[0], kind, "what now?", by="sup")

    @rule(task=tasks)
    def abandon(self, task: str) -> None:
        self.said(self.store.abandon, task, "its host is gone", by="ana")

    @rule(task=tasks)
    def stop_run(self, task: str) -> None:
        run = self.store.task(task).run
        if run is not None:
            self.said(self.store.stop_run, run, "enough", by="ana")

    @rule(who=st.integers(0, 2))
    def supervisor_dies(self, who: int) -> None:
        handle = self.supervisors.get(f"sup-{who}")
        if handle is not None and len(self.supervisors) > 1:
            self.stores.end_lease(handle, f"sup-{who}")

    @rule(target=fences)
    def rescue(self) -> Any:
        self.said(self.store.expire, by="sup")
        adopted = []
        for orphan in self.store.orphans():
            for name, handle in self.supervisors.items():
                session = self.said(handle.adopt, orphan.id, name)
                if session is not None:
                    adopted.append(session.fence)
                    break
        return multiple(*adopted)

    @rule(task=tasks, text=st.sampled_from(["yes", ""]))
    def answer(self, task: str, text: str) -> None:
        self.said(self.store.answer, task, text, by="ana")

    @rule(task=tasks)
    def block(self, task: str) -> None:
        self.said(self.store.block, task, "held", "wait", by="ana")

    @rule(task=tasks, verdict=verdicts)
    def settle(self, task: str, verdict: Verdict) -> None:
        self.said(self.store.settle, task, verdict, by="ana")

    @rule(task=tasks, kind=st.sampled_from(["manual", "command"]))
    def unsettle(self, task: str, kind: str) -> None:
        self.said(self.store.unsettle, task, a_verifier(kind), "look again", by="ana")

    @rule(task=tasks)
    def requeue(self, task: str) -> None:
        self.said(self.store.requeue, task, "again", by="ana")

    @rule(task=tasks)
    def cancel(self, task: str) -> None:
        self.said(self.store.cancel, task, "not wanted", by="ana")

    @rule(task=tasks, other=tasks, kind=st.sampled_from(["blocks", "blocks", "related"]))
    def link(self, task: str, other: str, kind: str) -> None:
        self.said(self.store.link, task, other, kind=kind, by="ana")

    @rule(task=tasks, other=tasks)
    def unlink(self, task: str, other: str) -> None:
        self.said(self.store.unlink, task, other, by="ana")

    @rule(task=tasks, priority=st.integers(-1, 5), coder=st.one_of(st.none(), st.just("codex")))
    def edit(self, task: str, priority: int, coder: str | None) -> None:
        self.said(self.store.edit, task, TaskEdit(priority=priority, coder=coder), by="ana")

    @rule(task=tasks)
    def comment(self, task: str) -> None:
        self.said(self.store.comment, task, "hm", by="ana")

    @rule(task=tasks)
    def intend(self, task: str) -> None:
        intent = self.said(self.store.intend, "stop", task, by="ana")
        if intent is not None and len(task) % 2:
            self.said(self.store.fulfil, intent.id, "done", by="sup")

    @invariant()
    def the_ledger_is_the_rows(self) -> None:
        if self.changed:
            audit(self.store)
            self.changed = False

    @invariant()
    def runs_end_with_their_last_task(self) -> None:
        for run in self.store.runs():
            states = {task.state for task in self.store.tasks(run=run.id)}
            ended = states <= {TaskState.COMPLETED, TaskState.FAILED, TaskState.CANCELLED}
            assert (run.state.value in ("completed", "stopped")) == ended


def explore(make_stores: Any, examples: int) -> None:
    """Let hypothesis drive the machine; FLEET_EXAMPLES asks for more."""
    machine = type("Machine", (LedgerMachine,), {"make_stores": staticmethod(make_stores)})
    run_state_machine_as_test(
        machine,
        settings=settings(
            max_examples=int(os.environ.get("FLEET_EXAMPLES", examples)),
            stateful_step_count=40,
            deadline=None,
            suppress_health_check=list(HealthCheck),
            database=None,
        ),
    )


@pytest.mark.timeout(600)
def test_random_transitions_on_sqlite() -> None:
    """After any sequence of verbs on SQLite the fold of the events is what the rows say."""
    explore(lambda: SqliteStores(Path(tempfile.mkdtemp(prefix="fleet-machine-"))), 60)


@pytest.mark.timeout(600)
def test_random_transitions_on_postgres(postgres_url: str) -> None:
    """After any sequence of verbs on PostgreSQL the fold of the events is what the rows say."""
    explore(lambda: PostgresStores(postgres_url), 25)
