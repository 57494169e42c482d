"""StoreContract: what every store must do. Subclass it in a test module and give it a `stores` fixture.

class TestMine(StoreContract):
    @pytest.fixture
    def stores(self): yield MyStores(...)
"""

from __future__ import annotations

import asyncio
import threading
from concurrent.futures import ThreadPoolExecutor
from typing import Protocol

import pytest

from fleet.errors import (
    Ambiguous,
    Conflict,
    CycleError,
    Fenced,
    IllegalMove,
    LeaseLost,
    NotFound,
    StoreError,
    UsageError,
)
from fleet.model.event import kind_of
from fleet.model.host import Host
from fleet.model.receipt import Awaits, Usage
from fleet.model.run import NewRun, RunWorker
from fleet.model.session import Claimed, Fence, Progress, Slot
from fleet.model.states import Result, RunState, SessionState, Source, TaskState
from fleet.model.task import NewTask, Task, TaskEdit
from fleet.model.terms import Terms
from fleet.projections.verify import verify
from fleet.store.store import Store
from fleet.testing.audit import audit
from fleet.testing.builders import (
    CRASHED,
    DEFAULTS,
    EXITED,
    LOST,
    a_fail,
    a_partial,
    a_pass,
    a_slot,
    a_task,
    a_verifier,
    slots,
)

ME = "ana"
SUP = "sup-1"


class Stores(Protocol):
    """How a suite gets at an implementation: several handles on one database, a clock, and a way to end a lease."""

    def open(self, *, grouped: bool = False) -> Store:
        """One more handle, as another process would have."""

    def tick(self, seconds: float) -> None:
        """Let time pass on the clock that the stores use."""

    def end_lease(self, store: Store, supervisor: str) -> None:
        """As if the process that holds the lease through this handle were gone."""


class StoreContract:
    """One suite over every implementation."""

    @pytest.fixture
    def stores(self) -> Stores:
        raise NotImplementedError

    @pytest.fixture
    def store(self, stores: Stores) -> Store:
        store = stores.open()
        store.join(SUP, machine="here", pid=1, seconds=60).result()
        return store

    # helpers

    def add(self, store: Store, *titles: str, **fields: object) -> list[Task]:
        return store.submit([a_task(title, **fields) for title in titles], by=ME).result()

    def claim(self, store: Store, n: int = 1, supervisor: str = SUP) -> list[Claimed]:
        return store.claim(supervisor, slots(n), DEFAULTS).result()

    def claim_one(self, store: Store) -> Claimed:
        (claimed,) = self.claim(store)
        return claimed

    def complete(self, store: Store, claimed: Claimed) -> Task:
        store.started(claimed.session.fence, 42, by=SUP).result()
        return store.finish(claimed.session.fence, EXITED, a_pass(), by=SUP).result()

    # submit

    def test_a_submitted_task_is_queued_and_ready(self, store: Store) -> None:
        """What was submitted can be read back as it was given, queued, with a short id."""
        (task,) = self.add(store, "Fix it", description="all of it", labels={"area": "web"}, cwd="/srv", coder="codex")
        found = store.task(task.uid)
        assert found == task
        assert found.state is TaskState.QUEUED
        assert (found.title, found.description, found.cwd, found.coder) == ("Fix it", "all of it", "/srv", "codex")
        assert found.uid.startswith("fleet-")
        assert len(found.uid) == len("fleet-abc")
        assert [ready.uid for ready in store.ready()] == [task.uid]

    def test_a_given_id_is_kept_and_given_once(self, store: Store) -> None:
        """A task of an outside queue keeps the id that it has there; a second of that id is refused."""
        (task,) = self.add(store, "Fix it", uid="shop-7mp.1")
        assert (task.uid, task.task_id) == ("shop-7mp.1", "shop-7mp.1")
        assert store.find("shop-7mp.1") == task
        for uid, error in (("shop-7mp.1", Conflict), ("../etc", UsageError)):
            with pytest.raises(error):
                self.add(store, "Fix it again", uid=uid)
        assert store.tasks() == [task]

    def test_a_reader_of_the_feed_knows_whether_it_was_told_all(self, store: Store) -> None:
        """A task is told once the reader's position has passed its newest event, and not any more after the next."""
        (task,) = self.add(store, "Fix it")
        assert not store.is_told(task.uid, "")
        position = store.feed().position
        assert store.is_told(task.uid, position)
        store.edit(task.uid, TaskEdit(priority=0), by=ME).result()
        assert not store.is_told(task.uid, position)
        assert store.is_told("fleet-none", "")

    def test_a_submission_is_all_or_nothing(self, store: Store) -> None:
        """One bad task in a submission leaves none of it behind, not even an event."""
        before = store.last(1000)
        with pytest.raises(UsageError):
            store.submit([a_task("good"), a_task("  ")], by=ME).result()
        with pytest.raises(NotFound):
            store.submit([a_task("good"), a_task("needs a ghost", needs=("fleet-zzz",))], by=ME).result()
        assert store.tasks() == []
        assert store.last(1000) == before

    def test_a_run_holds_the_tasks_submitted_together(self, store: Store) -> None:
        """Tasks of a run carry its id, and their needs may name each other by task_id."""
        new = [NewTask(title="build", task_id="build"), NewTask(title="test", task_id="test", needs=("build",))]
        build, test = store.submit(new, run=NewRun(name="Nightly build"), by=ME).result()
        assert build.run is not None
        assert build.run.startswith("nightly-build-")
        assert build.run == test.run
        assert test.needs == (build.uid,)
        assert (build.task_id, test.task_id) == ("build", "test")
        assert store.run(build.run).tasks == 2
        assert [task.uid for task in store.ready()] == [build.uid]

    def test_circles_are_refused(self, store: Store) -> None:
        """Tasks that need each other in a circle are refused, at submission and later, and nothing is written."""
        ring = [NewTask(title=name, task_id=name, needs=(need,)) for name, need in ("ab", "bc", "ca")]
        with pytest.raises(CycleError, match="a -> b -> c -> a"):
            store.submit(ring, run=NewRun(name="ring"), by=ME).result()
        one, two, three = self.add(store, "one", "two", "three")
        store.link(two.uid, one.uid, by=ME).result()
        store.link(three.uid, two.uid, by=ME).result()
        with pytest.raises(CycleError):
            store.link(one.uid, three.uid, by=ME).result()
        with pytest.raises(CycleError):
            store.link(one.uid, one.uid, by=ME).result()
        assert store.task(one.uid).needs == ()
        audit(store)

    def test_duplicate_task_ids_are_refused(self, store: Store) -> None:
        """Two tasks of a run cannot have one id."""
        with pytest.raises(UsageError, match="two tasks have the id"):
            store.submit([NewTask(title="a", task_id="x"), NewTask(title="b", task_id="x")], by=ME).result()

    def test_needing_a_failed_task_is_refused(self, store: Store) -> None:
        """A task that could never start is refused when it is submitted."""
        self.add(store, "doomed")
        claimed = self.claim_one(store)
        store.finish(claimed.session.fence, CRASHED, a_fail(), by=SUP).result()
        with pytest.raises(UsageError, match="could never start"):
            self.add(store, "late", needs=(claimed.task.uid,))

    # ready and claim

    def test_ready_is_ordered_by_priority_then_age(self, store: Store) -> None:
        """The most urgent come first, and of those the oldest."""
        self.add(store, "second", priority=2)
        self.add(store, "first", priority=0)
        self.add(store, "third", priority=2)
        assert [task.title for task in store.ready()] == ["first", "second", "third"]
        assert [task.title for task in store.ready(limit=2)] == ["first", "second"]
        assert [claimed.task.title for claimed in self.claim(store, 2)] == ["first", "second"]

    def test_a_task_waits_for_its_needs(self, store: Store) -> None:
        """A task becomes ready when the last of its needs is completed, and not before."""
        one, two = self.add(store, "one", "two")
        (three,) = self.add(store, "three", needs=(one.uid, two.uid))
        assert store.unmet(three.uid) == [(one.uid, "queued"), (two.uid, "queued")]
        for claimed in self.claim(store, 5):
            assert three.uid not in [task.uid for task in store.ready()]
            self.complete(store, claimed)
        assert [task.uid for task in store.ready()] == [three.uid]

    def test_not_before_holds_a_task_back(self, store: Store, stores: Stores) -> None:
        """A task is not ready before its time, and is after it."""
        (task,) = self.add(store, "later")
        store.edit(task.uid, TaskEdit(not_before=task.created_at + 10_000), by=ME).result()
        assert store.ready() == []
        assert self.claim(store) == []
        stores.tick(11)
        assert [found.uid for found in store.ready()] == [task.uid]
        assert len(self.claim(store)) == 1

    def test_a_claim_fills_all_slots_at_once(self, store: Store) -> None:
        """n free slots take n tasks in one claim, each in a slot of its own, with a session that has begun."""
        self.add(store, *(f"task {n}" for n in range(10)))
        claimed = self.claim(store, 4)
        assert len(claimed) == 4
        assert len({found.session.worker for found in claimed}) == 4
        assert {found.session.state for found in claimed} == {SessionState.STARTING}
        assert {found.task.state for found in claimed} == {TaskState.RUNNING}
        assert all(found.session.fence == Fence(f"{found.task.uid}.1", 1) for found in claimed)
        assert len(store.ready()) == 6

    def test_a_claim_matches_capabilities(self, store: Store) -> None:
        """A slot takes only what it can do; what nobody can do stays queued and holds up nothing behind it."""
        self.add(store, "needs a gpu", capabilities=("gpu", "linux"), priority=0)
        self.add(store, "needs linux", capabilities=("linux",))
        self.add(store, "needs nothing")
        plain = a_slot("plain#1", capabilities=frozenset())
        linux = a_slot("linux#1", capabilities=frozenset({"linux", "git"}))
        claimed = store.claim(SUP, [plain, linux, a_slot("plain#2", capabilities=frozenset())], DEFAULTS).result()
        assert {(found.session.worker, found.task.title) for found in claimed} == {
            ("linux#1", "needs linux"),
            ("plain#1", "needs nothing"),
        }
        assert [task.title for task in store.ready()] == ["needs a gpu"]

    def test_no_slot_stays_empty_while_it_has_work(self, store: Store) -> None:
        """Many urgent tasks that only one slot can take do not keep the other slots from their own work."""
        self.add(store, *(f"gpu {n}" for n in range(5)), capabilities=("gpu",), priority=0)
        self.add(store, "plain 1", "plain 2")
        offered = [a_slot("gpu#1", capabilities=frozenset({"gpu"}))]
        offered += [a_slot(f"plain#{n}", capabilities=frozenset()) for n in (1, 2)]
        claimed = store.claim(SUP, offered, DEFAULTS).result()
        assert [found.task.title for found in claimed] == ["gpu 0", "plain 1", "plain 2"]

    def test_a_claim_respects_host_run_and_paused_coders(self, store: Store) -> None:
        """A task bound to a machine, a slot bound to a run, and a paused coder are each respected."""
        (here,) = self.add(store, "bound", host="local@here", cwd="/srv")
        (codex,) = self.add(store, "codex", coder="codex")
        (of_run,) = store.submit([a_task("of a run")], run=NewRun(name="r"), by=ME).result()
        there = a_slot("there#1", host="local@there", paused_coders=frozenset({"codex"}))
        only_run = a_slot("run#1", runs=frozenset({str(of_run.run)}))
        claimed = store.claim(SUP, [there, only_run], DEFAULTS).result()
        assert [found.task.uid for found in claimed] == [of_run.uid]
        claimed = store.claim(SUP, [a_slot(), a_slot("local#2")], DEFAULTS).result()
        assert {found.task.uid for found in claimed} == {here.uid, codex.uid}

    def test_one_agent_at_a_time_changes_a_directory_in_place(self, store: Store) -> None:
        """The next waits for it; worktrees, readers, commands and other machines are no danger. Slots may share."""
        self.add(store, "first", "second", host="local@here", cwd="/srv")
        self.add(store, "apart", host="local@here", cwd="/srv", terms=Terms(isolation="worktree"))
        self.add(store, "reader", host="local@here", cwd="/srv", terms=Terms(tool_profile="read-only"))
        self.add(store, "command", host="local@here", cwd="/srv", coder="command")
        self.add(store, "elsewhere", host="local@here", cwd="/opt")
        self.add(store, "third", host="local@here", cwd="/srv")
        claimed = store.claim(SUP, slots(7, shares=False), DEFAULTS).result()
        titles = [found.task.title for found in claimed]
        assert titles == ["first", "apart", "reader", "command", "elsewhere"]
        assert store.claim(SUP, slots(7, shares=False), DEFAULTS).result() == []
        store.finish(claimed[0].session.fence, EXITED, a_pass(), by=SUP).result()
        assert [found.task.title for found in store.claim(SUP, slots(2, shares=False), DEFAULTS).result()] == ["second"]
        assert [found.task.title for found in store.claim(SUP, slots(2), DEFAULTS).result()] == ["third"]

    def test_a_run_keeps_to_its_own_cap(self, store: Store) -> None:
        """No more tasks of a run run at once than it asks for, and each is named for its place in the run."""
        new = [a_task(f"t{n}", task_id=f"t{n}") for n in range(4)]
        (first, *_) = store.submit(new, run=NewRun(name="small", max_workers=2), by=ME).result()
        (other,) = self.add(store, "of no run")
        claimed = self.claim(store, 8)
        assert [found.session.worker for found in claimed][:2] == [f"{first.run}-local-1", f"{first.run}-local-2"]
        assert [found.task.uid for found in claimed][2:] == [other.uid]
        assert self.claim(store, 8) == []
        self.complete(store, claimed[0])
        (again,) = self.claim(store, 8)
        assert again.session.worker == f"{first.run}-local-1"
        audit(store)

    def test_a_run_is_done_by_its_own_workers(self, store: Store) -> None:
        """Where a run declares workers, a task goes to one that can do it and has room; the others wait."""
        workers = (RunWorker(name="plain", max_tasks=2), RunWorker(name="big", capabilities=("gpu", "rust")))
        new = [a_task(f"gpu {n}", task_id=f"g{n}", capabilities=("gpu",)) for n in range(2)]
        new += [a_task(f"any {n}", task_id=f"a{n}") for n in range(3)]
        store.submit(new, run=NewRun(name="mixed", workers=workers), by=ME).result()
        claimed = self.claim(store, 8)
        assert {found.task.title: found.session.worker for found in claimed} == {
            "gpu 0": "big#1",
            "any 0": "plain#1",
            "any 1": "plain#2",
        }
        self.complete(store, claimed[0])
        (again,) = self.claim(store, 1)
        assert (again.task.title, again.session.worker) == ("gpu 1", "big#1")

    def test_whether_a_run_goes_on_by_itself(self, store: Store) -> None:
        """A run moves while something of it is ready or runs; not when all that is left waits for a person."""
        new = [a_task("a", task_id="a"), a_task("b", task_id="b", needs=("a",))]
        a, _ = store.submit(new, run=NewRun(name="asks"), by=ME).result()
        run = str(a.run)
        assert store.moving(run)
        claimed = self.claim_one(store)
        assert store.moving(run)
        store.pause(claimed.session.fence, EXITED, "question", "which?", by=SUP).result()
        assert not store.moving(run)
        store.answer(a.uid, "that one", by=ME).result()
        assert store.moving(run)

    def test_a_task_is_found_by_other_names(self, store: Store) -> None:
        """A session, a worker that is busy, and the id that a spec gave stand for their task; unless two have it."""
        (a,) = store.submit([a_task("a", task_id="lint")], run=NewRun(name="one", max_workers=1), by=ME).result()
        claimed = self.claim_one(store)
        for word in (claimed.session.id, claimed.session.worker, "lint", f"{a.run}/lint"):
            assert store.find(word).uid == a.uid
        (short,) = store.submit([a_task("s", task_id=a.uid[-1])], run=NewRun(name="short"), by=ME).result()
        assert store.find(short.task_id).uid == short.uid  # and not the task whose id ends with it
        (b,) = store.submit([a_task("b", task_id="lint")], run=NewRun(name="two"), by=ME).result()
        assert store.find(f"{b.run}/lint").uid == b.uid
        with pytest.raises(Ambiguous):
            store.find("lint")
        with pytest.raises(NotFound):
            store.find("nothing/lint")

    def test_a_session_knows_its_effective_coder_and_model(self, store: Store) -> None:
        """The task's own choice comes first; a configured model belongs to the configured coder only."""
        self.add(store, "plain")
        self.add(store, "own model", model="large")
        self.add(store, "other coder", coder="codex")
        pairs = [(found.session.coder, found.session.model) for found in self.claim(store, 3)]
        assert pairs == [("scripted", "small"), ("scripted", "large"), ("codex", None)]

    def test_no_task_is_claimed_twice(self, stores: Stores) -> None:
        """Eight claimers at once share out the queue: every task to exactly one of them."""
        opened = [stores.open() for _ in range(8)]
        for n, store in enumerate(opened):
            store.join(f"sup-{n}", machine="here", pid=n, seconds=60).result()
        self.add(opened[0], *(f"task {n}" for n in range(80)))
        barrier = threading.Barrier(8)

        def drain(n: int) -> list[str]:
            barrier.wait()
            mine: list[str] = []
            for _ in range(200):
                got = self.claim(opened[n], 3, f"sup-{n}")
                if not got and not opened[n].ready():
                    break
                mine += [found.task.uid for found in got]
            return mine

        with ThreadPoolExecutor(8) as pool:
            taken = [uid for mine in pool.map(drain, range(8)) for uid in mine]
        assert len(taken) == 80
        assert len(set(taken)) == 80
        audit(opened[0])

    def test_a_slot_of_a_declared_worker_is_filled_once(self, stores: Stores) -> None:
        """However many supervisors offer it at once: its number of tasks counts over all of them."""
        opened = [stores.open() for _ in range(4)]
        for n, store in enumerate(opened):
            store.join(f"sup-{n}", machine="here", pid=n, seconds=60).result()
        self.add(opened[0], *(f"task {n}" for n in range(12)))
        offered = [a_slot(f"builder#{n}", host="builder", here=False, declared=True) for n in (1, 2)]
        barrier = threading.Barrier(4)

        def fill(n: int) -> list[Claimed]:
            barrier.wait()
            return opened[n].claim(f"sup-{n}", offered, DEFAULTS).result()

        with ThreadPoolExecutor(4) as pool:
            taken = [found for mine in pool.map(fill, range(4)) for found in mine]
        assert sorted(found.session.worker for found in taken) == ["builder#1", "builder#2"]
        self.complete(opened[0], taken[0])
        (again,) = opened[3].claim("sup-3", offered, DEFAULTS).result()
        assert again.session.worker == taken[0].session.worker
        audit(opened[0])

    def test_a_claim_needs_a_lease(self, store: Store) -> None:
        """A supervisor that never joined, or has left, claims nothing."""
        self.add(store, "task")
        with pytest.raises(LeaseLost):
            self.claim(store, 1, "nobody")
        store.leave(SUP, reason="stopped").result()
        with pytest.raises(LeaseLost):
            self.claim(store)
        assert len(store.ready()) == 1

    # a session's life

    def test_started_record_finish(self, store: Store) -> None:
        """A session starts, its progress is kept, and its end brings the receipt and the task's end in one step."""
        self.add(store, "work")
        claimed = self.claim_one(store)
        fence = claimed.session.fence
        assert store.started(fence, 4242, by=SUP).result().state is SessionState.RUNNING
        store.record(fence, Progress(cursor=128, usage=Usage(output_tokens=7))).result()
        assert store.progress(fence.session).cursor == 128
        task = store.finish(fence, EXITED, a_pass("green"), by=SUP).result()
        assert (task.state, task.result, task.session) == (TaskState.COMPLETED, Result.PASS, None)
        (receipt,) = store.receipts(task=task.uid)
        assert (receipt.id, receipt.session, receipt.reason) == (task.receipt, fence.session, "green")
        assert store.session(fence.session).state is SessionState.EXITED
        assert store.sessions(live=True) == []

    def test_started_and_stopping_may_be_said_twice(self, store: Store) -> None:
        """A verb that is repeated after a crash changes nothing the second time."""
        self.add(store, "work")
        fence = self.claim_one(store).session.fence
        assert store.started(fence, 7, by=SUP).result() == store.started(fence, 7, by=SUP).result()
        assert store.stopping(fence, "enough", by=SUP).result() == store.stopping(fence, "again", by=SUP).result()
        kinds = [kind_of(entry.event) for entry in store.chain(fence.session.split(".")[0])]
        assert kinds == ["task.submitted", "task.claimed", "session.started", "session.stopping"]

    def test_a_lost_session_cannot_pass(self, store: Store) -> None:
        """A session that its host has lost never carries a pass."""
        self.add(store, "work")
        fence = self.claim_one(store).session.fence
        with pytest.raises(Conflict, match="cannot pass"):
            store.finish(fence, LOST, a_pass(), by=SUP).result()

    def test_retry_is_charged_and_our_own_stop_is_not(self, store: Store, stores: Stores) -> None:
        """A charged retry counts an attempt and waits for its time; an uncharged one costs nothing."""
        self.add(store, "flaky")
        first = self.claim_one(store)
        later = first.task.updated_at + 5000
        task = store.retry(
            first.session.fence, CRASHED, verdict=a_fail(), reason="again", not_before=later, by=SUP
        ).result()
        assert (task.state, task.charged, task.not_before) == (TaskState.QUEUED, 1, later)
        assert self.claim(store) == []
        stores.tick(6)
        second = self.claim_one(store)
        assert second.session.id == f"{task.uid}.2"
        task = store.retry(second.session.fence, EXITED, reason="shutdown", charged=False, by=SUP).result()
        assert (task.charged, task.epoch, task.receipts) == (1, 2, 1)
        assert [receipt.result for receipt in store.receipts(task=task.uid)] == [Result.FAIL]

    def test_a_question_blocks_and_the_first_answer_wins(self, store: Store) -> None:
        """A question ends the session and blocks the task; one answer queues it again, a second finds nothing."""
        self.add(store, "unclear")
        fence = self.claim_one(store).session.fence
        task = store.pause(fence, EXITED, "question", "Which database?", by=SUP).result()
        assert task.block is not None
        assert (task.state, task.block.kind, task.block.text) == (TaskState.BLOCKED, "question", "Which database?")
        assert (task.charged, task.session) == (0, None)
        assert store.answer(task.uid, "PostgreSQL", by=ME).result().state is TaskState.QUEUED
        with pytest.raises(Conflict, match="waits for no answer"):
            store.answer(task.uid, "SQLite", by="bob").result()

    def test_a_partial_receipt_is_settled_by_a_later_one(self, store: Store) -> None:
        """A settling receipt refers to the partial one; the task's receipt in force is the settling one."""
        self.add(store, "check me")
        task = store.finish(self.claim_one(store).session.fence, EXITED, a_partial(), by=SUP).result()
        assert task.state is TaskState.PARTIAL
        done = store.settle(task.uid, a_pass("looked at it"), by=ME).result()
        partial, final = store.receipts(task=task.uid)
        assert (done.state, done.receipt) == (TaskState.COMPLETED, final.id)
        assert final.supersedes == partial.id

    # verification

    def unverified(self, store: Store, *titles: str, awaits: Awaits | None = None) -> list[Task]:
        """Tasks whose work is done, and whose verifier has yet to run."""
        self.add(store, *titles)
        partial = a_partial(awaits=awaits or a_verifier())
        return [
            store.finish(claimed.session.fence, EXITED, partial, by=SUP).result()
            for claimed in self.claim(store, len(titles))
        ]

    def test_a_verifier_takes_a_slot_and_settles_a_partial_receipt(self, store: Store) -> None:
        """A result that waits for a verifier is claimed by a session of its own kind; its receipt supersedes the
        partial one and tells of the same work."""
        (task,) = self.unverified(store, "check me")
        assert (task.state, store.counts()) == (TaskState.PARTIAL, {"partial": 1})
        assert [found.uid for found in store.tasks(frozenset({TaskState.PARTIAL}))] == [task.uid]
        claimed = self.claim_one(store)
        assert (claimed.session.kind, claimed.session.coder) == ("verify", "command")
        assert (claimed.task.state, claimed.task.receipt) == (TaskState.VERIFYING, task.receipt)
        assert self.claim(store) == []
        audit(store)
        done = self.complete(store, claimed)
        partial, final = store.receipts(task=task.uid)
        assert (done.state, done.receipt, done.awaits) == (TaskState.COMPLETED, final.id, None)
        assert (final.supersedes, final.session) == (partial.id, claimed.session.id)
        work = (partial.coder, partial.model, partial.host, partial.attempt, partial.duration_ms)
        assert (final.coder, final.model, final.host, final.attempt, final.duration_ms) == work
        assert work == ("scripted", "small", "local@here", 1, 1000)
        audit(store)

    def test_verifiers_come_before_new_work(self, store: Store) -> None:
        """What is nearly done is finished first, however urgent the rest is."""
        (task,) = self.unverified(store, "check me")
        self.add(store, "urgent", priority=0)
        assert [found.task.uid for found in self.claim(store, 1)] == [task.uid]

    def test_a_verifier_runs_where_the_files_are(self, store: Store) -> None:
        """A slot of another machine, or for a paused coder, does not take a verification."""
        self.unverified(store, "check me")
        elsewhere = a_slot("there#1", host="local@there")
        paused = a_slot("here#1", paused_coders=frozenset({"command"}))
        assert store.claim(SUP, [elsewhere, paused], DEFAULTS).result() == []
        assert len(self.claim(store)) == 1

    def test_a_result_that_waits_for_a_person_is_not_claimed(self, store: Store) -> None:
        """A manual scorer leaves the task partial: no session takes it, and what needs it waits."""
        (task,) = self.unverified(store, "look at me", awaits=a_verifier("manual"))
        self.add(store, "next", needs=(task.uid,))
        assert self.claim(store, 4) == []
        assert store.unmet(store.waiting()[0].uid) == [(task.uid, "partial")]
        store.settle(task.uid, a_pass(), by=ME).result()
        assert [found.task.title for found in self.claim(store, 4)] == ["next"]

    def test_a_verifier_that_ends_without_a_verdict_runs_again(self, store: Store, stores: Stores) -> None:
        """A verification that was cut short costs no attempt and no receipt; it is claimed again once it is due."""
        (task,) = self.unverified(store, "check me")
        claimed = self.claim_one(store)
        later = claimed.session.claimed_at + 10_000
        back = store.postpone(
            claimed.session.fence, LOST, a_verifier(), reason="its host was restarted", not_before=later, by=SUP
        ).result()
        assert (back.state, back.charged, back.receipt) == (TaskState.PARTIAL, 0, task.receipt)
        assert self.claim(store) == []
        stores.tick(11)
        again = self.claim_one(store)
        assert (again.session.kind, again.session.id) == ("verify", f"{task.uid}.3")
        self.complete(store, again)
        assert len(store.receipts(task=task.uid)) == 2
        audit(store)

    def test_work_cannot_be_postponed_as_a_verification(self, store: Store) -> None:
        """Only a verifier's session goes back to partial."""
        self.add(store, "work")
        with pytest.raises(Conflict, match="verifies nothing"):
            store.postpone(self.claim_one(store).session.fence, LOST, a_verifier(), reason="x", by=SUP).result()

    def test_a_failed_verification_is_tried_again_with_its_receipt(self, store: Store) -> None:
        """A verifier that says no, with attempts left: the task is queued, charged, its partial receipt settled."""
        (task,) = self.unverified(store, "check me")
        claimed = self.claim_one(store)
        queued = store.retry(claimed.session.fence, EXITED, reason="the tests fail", verdict=a_fail(), by=SUP).result()
        assert (queued.state, queued.charged, queued.receipt, queued.awaits) == (TaskState.QUEUED, 1, None, None)
        partial, failed = store.receipts(task=task.uid)
        assert (failed.result, failed.supersedes) == (Result.FAIL, partial.id)
        assert self.claim_one(store).session.kind == "work"
        audit(store)

    def test_one_task_is_claimed_for_its_verifier(self, store: Store) -> None:
        """A named task is taken for its verifier if it waits for one, and else not."""
        one, _two = self.unverified(store, "one", "two")
        (queued,) = self.add(store, "queued")
        claimed = store.claim_verify(SUP, one.uid, a_slot(), DEFAULTS).result()
        assert claimed is not None
        assert claimed.session.task == one.uid
        for uid in (one.uid, queued.uid):
            assert store.claim_verify(SUP, uid, a_slot(), DEFAULTS).result() is None

    def test_a_run_goes_on_while_a_verifier_is_awaited(self, store: Store) -> None:
        """A run whose last result waits for a verifier has not ended; it ends when the verifier has settled it."""
        new = [a_task("check me", task_id="a"), a_task("do me", task_id="b")]
        first, second = store.submit(new, run=NewRun(name="checked"), by=ME).result()
        run = str(first.run)
        checked, done = self.claim(store, 2)
        store.finish(checked.session.fence, EXITED, a_partial(awaits=a_verifier()), by=SUP).result()
        self.complete(store, done)
        assert (store.run(run).state, store.moving(run)) == (RunState.ACTIVE, True)
        self.complete(store, self.claim_one(store))
        assert (store.run(run).state, store.moving(run)) == (RunState.COMPLETED, False)
        assert second.run == run
        audit(store)

    def test_a_verdict_is_opened_again(self, store: Store) -> None:
        """A task whose verifier failed is verified again: what was skipped for it is revived, and the new receipt
        supersedes the one before."""
        (task,) = self.unverified(store, "check me")
        (dependent,) = self.add(store, "next", needs=(task.uid,))
        failed = a_fail("the verifier broke", Source.VERIFIER)
        store.finish(self.claim_one(store).session.fence, CRASHED, failed, by=SUP).result()
        assert store.task(dependent.uid).state is TaskState.CANCELLED
        opened = store.unsettle(task.uid, a_verifier(), "verify again", by=ME).result()
        assert (opened.state, opened.result, opened.source) == (TaskState.PARTIAL, Result.PARTIAL, None)
        assert store.task(dependent.uid).state is TaskState.QUEUED
        audit(store)
        self.complete(store, self.claim_one(store))
        first, second, third = store.receipts(task=task.uid)
        assert (first.supersedes, second.supersedes, third.supersedes) == (None, first.id, second.id)
        assert [found.uid for found in store.ready()] == [dependent.uid]
        audit(store)

    def test_failed_work_cannot_be_verified(self, store: Store) -> None:
        """A task whose session failed has nothing to verify, and an ended task is not settled a second time."""
        self.add(store, "work")
        failed = store.finish(self.claim_one(store).session.fence, CRASHED, a_fail(), by=SUP).result()
        with pytest.raises(Conflict, match="no result that a verifier could judge"):
            store.unsettle(failed.uid, a_verifier(), "verify", by=ME).result()
        for verdict in (a_pass(), a_partial()):
            with pytest.raises(Conflict, match="has ended already"):
                store.settle(failed.uid, verdict, by=ME).result()

    def test_a_failed_session_never_passes(self, store: Store) -> None:
        """A session that did not end well, or that was lost, cannot carry a pass."""
        self.add(store, "work")
        fence = self.claim_one(store).session.fence
        for ending in (CRASHED, LOST):
            with pytest.raises(Conflict, match="it cannot pass"):
                store.finish(fence, ending, a_pass(), by=SUP).result()
        assert store.receipts() == []

    # fencing and takeover

    def test_every_verb_of_a_session_is_fenced(self, store: Store) -> None:
        """With an old epoch, or after the end, nothing can be written about a session."""
        self.add(store, "work")
        fence = self.claim_one(store).session.fence
        stale = Fence(fence.session, fence.epoch - 1)
        for act in (
            lambda f: store.started(f, 1, by=SUP),
            lambda f: store.stopping(f, "x", by=SUP),
            lambda f: store.record(f, Progress(cursor=1)),
            lambda f: store.finish(f, EXITED, a_pass(), by=SUP),
            lambda f: store.retry(f, EXITED, reason="x", by=SUP),
            lambda f: store.pause(f, EXITED, "question", "x", by=SUP),
            lambda f: store.postpone(f, EXITED, a_verifier(), reason="x", by=SUP),
        ):
            before = store.last(1000)
            with pytest.raises(Fenced):
                act(stale).result()
            assert store.last(1000) == before
        store.finish(fence, EXITED, a_pass(), by=SUP).result()
        with pytest.raises(Fenced):
            store.finish(fence, EXITED, a_pass(), by=SUP).result()
        with pytest.raises(Fenced):
            store.record(fence, Progress(cursor=9)).result()

    def test_a_session_is_adopted_only_from_one_who_is_gone(self, stores: Stores) -> None:
        """While its holder's lease holds a session cannot be taken; then it can, and the old holder is fenced."""
        old, new = stores.open(), stores.open()
        old.join("old", machine="here", pid=1, seconds=60).result()
        new.join("new", machine="here", pid=2, seconds=60).result()
        self.add(old, "long work")
        (claimed,) = self.claim(old, 1, "old")
        with pytest.raises(Conflict, match="whose lease holds"):
            new.adopt(claimed.session.id, "new").result()
        assert new.expire(by="new").result() == []
        stores.end_lease(old, "old")
        assert [gone.id for gone in new.expire(by="new").result()] == ["old"]
        assert [orphan.id for orphan in new.orphans()] == [claimed.session.id]
        adopted = new.adopt(claimed.session.id, "new").result()
        assert (adopted.epoch, adopted.supervisor) == (claimed.session.epoch + 1, "new")
        with pytest.raises(Fenced):
            old.finish(claimed.session.fence, EXITED, a_pass(), by="old").result()
        assert new.finish(adopted.fence, EXITED, a_pass(), by="new").result().state is TaskState.COMPLETED
        assert new.orphans() == []
        audit(new)

    def test_a_lost_lease_cannot_be_renewed(self, stores: Stores) -> None:
        """A lease is renewed while it holds; once it has ended its holder is told so."""
        one, two = stores.open(), stores.open()
        one.join("one", machine="here", pid=1, seconds=60).result()
        one.renew("one", seconds=60).result()
        assert [present.id for present in two.supervisors()] == ["one"]
        stores.end_lease(one, "one")
        two.expire(by="two").result()
        with pytest.raises(LeaseLost):
            two.renew("one", seconds=60).result()
        assert two.supervisors() == []

    # what follows

    def test_a_failed_need_skips_its_dependents_and_a_restart_revives_them(self, store: Store) -> None:
        """All that needs a failed task, however far down, gets a skip receipt; restarting it revives them all."""
        (one,) = self.add(store, "one")
        (two,) = self.add(store, "two", needs=(one.uid,))
        (three,) = self.add(store, "three", needs=(two.uid,))
        store.finish(self.claim_one(store).session.fence, CRASHED, a_fail(), by=SUP).result()
        for task in (two, three):
            found = store.task(task.uid)
            assert (found.state, found.result) == (TaskState.CANCELLED, Result.SKIP)
        assert "needs " + one.uid in store.task(two.uid).reason
        audit(store)
        store.requeue(one.uid, "try again", by=ME).result()
        assert [store.task(task.uid).state for task in (one, two, three)] == [TaskState.QUEUED] * 3
        assert store.task(one.uid).restarts == 1
        assert [task.uid for task in store.ready()] == [one.uid]
        for expected in (one, two, three):
            claimed = self.claim_one(store)
            assert claimed.task.uid == expected.uid
            self.complete(store, claimed)
        audit(store)

    def test_what_a_person_cancelled_is_not_revived(self, store: Store) -> None:
        """A restart revives what was skipped for its sake, not what a person cancelled."""
        (one,) = self.add(store, "one")
        (two,) = self.add(store, "two", needs=(one.uid,))
        store.cancel(two.uid, "no longer wanted", by=ME).result()
        store.cancel(one.uid, "nor this", by=ME).result()
        store.requeue(one.uid, "but this is", by=ME).result()
        assert store.task(two.uid).state is TaskState.CANCELLED

    def test_reopening_a_need_makes_its_dependents_wait_again(self, store: Store) -> None:
        """A completed task that is queued again holds back those that need it."""
        (one,) = self.add(store, "one")
        (two,) = self.add(store, "two", needs=(one.uid,))
        store.settle(one.uid, a_pass(), by=ME).result()
        assert [task.uid for task in store.ready()] == [two.uid]
        store.requeue(one.uid, "not good enough", by=ME).result()
        assert [task.uid for task in store.ready()] == [one.uid]
        audit(store)

    def test_links_come_and_go(self, store: Store) -> None:
        """A need holds a task back until it is taken away; other relations hold back nothing."""
        one, two = self.add(store, "one", "two")
        store.link(two.uid, one.uid, kind="related", by=ME).result()
        assert len(store.ready()) == 2
        store.link(two.uid, one.uid, by=ME).result()
        assert store.task(two.uid).needs == (one.uid,)
        assert len(store.ready()) == 1
        assert store.dependents(one.uid) == [(two.uid, "blocks")]
        store.unlink(two.uid, one.uid, by=ME).result()
        assert len(store.ready()) == 2
        with pytest.raises(NotFound):
            store.unlink(two.uid, one.uid, by=ME).result()
        audit(store)

    def test_a_run_ends_with_its_last_task_and_names_their_heads(self, store: Store) -> None:
        """The end of a run is an event that carries the heads of its tasks' chains; a restart re-opens the run."""
        new = [NewTask(title="a", task_id="a"), NewTask(title="b", task_id="b", needs=("a",))]
        a, b = store.submit(new, run=NewRun(name="pair"), by=ME).result()
        run = str(a.run)
        self.complete(store, self.claim_one(store))
        assert store.run(run).state is RunState.ACTIVE
        store.finish(self.claim_one(store).session.fence, CRASHED, a_fail(), by=SUP).result()
        assert store.run(run).state is RunState.COMPLETED
        ended = store.chain(f"run/{run}")[-2].event
        assert getattr(ended, "heads") == {task.uid: store.chain(task.uid)[-1].hash.hex() for task in (a, b)}  # noqa: B009
        store.requeue(b.uid, "again", by=ME).result()
        assert store.run(run).state is RunState.ACTIVE
        assert store.counts(run) == {"completed": 1, "queued": 1, "restarted": 1}
        audit(store)

    # people

    def test_a_person_settles_cancels_and_blocks(self, store: Store) -> None:
        """A person may close, cancel or hold a task that is not in progress; one in progress is refused."""
        one, two, three, four = self.add(store, "one", "two", "three", "four")
        assert store.settle(one.uid, a_pass("done by hand"), by=ME).result().state is TaskState.COMPLETED
        assert store.cancel(two.uid, "not wanted", by=ME).result().state is TaskState.CANCELLED
        assert store.block(three.uid, "held", "wait for May", by=ME).result().state is TaskState.BLOCKED
        assert store.requeue(three.uid, "May is here", by=ME).result().state is TaskState.QUEUED
        running = self.claim(store, 2)
        assert {found.task.uid for found in running} == {three.uid, four.uid}
        for act in (store.cancel, store.requeue):
            with pytest.raises(Conflict):
                act(four.uid, "x", by=ME).result()
        with pytest.raises(IllegalMove):
            store.settle(one.uid, a_pass(), by=ME).result()
        with pytest.raises(Conflict):
            store.cancel(two.uid, "twice", by=ME).result()

    def test_edits_are_typed_and_quiet_when_they_change_nothing(self, store: Store) -> None:
        """An edit changes what it names; one that changes nothing leaves no event; a wrong value leaves none either."""
        (task,) = self.add(store, "edit me")
        changed = store.edit(task.uid, TaskEdit(coder="codex", priority=0), by=ME).result()
        assert (changed.coder, changed.priority, changed.title) == ("codex", 0, "edit me")
        count = len(store.chain(task.uid))
        store.edit(task.uid, TaskEdit(coder="codex"), by=ME).result()
        with pytest.raises(UsageError):
            store.edit(task.uid, TaskEdit(priority=9), by=ME).result()
        assert len(store.chain(task.uid)) == count

    def test_comments_are_kept_in_order(self, store: Store) -> None:
        """Remarks stay, in the order they were made, and change nothing else."""
        (task,) = self.add(store, "discuss")
        store.comment(task.uid, "first", by=ME).result()
        store.comment(task.uid, "second", by="bob").result()
        assert [(found.by, found.text) for found in store.comments(task.uid)] == [(ME, "first"), ("bob", "second")]
        assert store.task(task.uid).comments == 2

    def test_intents_are_recorded_and_settled_once(self, store: Store) -> None:
        """A wish stays pending until a supervisor settles it; the same wish is not recorded twice."""
        self.add(store, "work")
        uid = self.claim_one(store).task.uid
        intent = store.intend("stop", uid, by=ME).result()
        assert store.intend("stop", uid, by="bob").result() == intent
        assert [pending.id for pending in store.intents()] == [intent.id]
        done = store.fulfil(intent.id, "done", detail="stopped", by=SUP).result()
        assert done == store.fulfil(intent.id, "refused", by=SUP).result()
        assert (done.outcome, store.intents()) == ("done", [])
        assert [found.outcome for found in store.intents(target=uid)] == ["done"]
        audit(store)

    def test_hosts_speak_up_only_when_they_change(self, store: Store, stores: Stores) -> None:
        """Every probe is kept, but only a change of state is an event; `since` is when it last changed."""
        host = Host(name="builder-1", kind="ssh", state="up", since=0, latency_ms=12)
        first = store.probed(host, by=SUP).result()
        stores.tick(5)
        second = store.probed(host, by=SUP).result()
        assert second.since == first.since
        down = store.probed(Host(name="builder-1", kind="ssh", state="down", since=0, evidence="timeout"), by=SUP)
        assert down.result().since > first.since
        kinds = [kind_of(entry.event) for entry in store.chain("host/builder-1")]
        assert kinds == ["host.changed", "host.changed", "alert.raised"]
        assert [(found.name, found.state) for found in store.hosts()] == [("builder-1", "down")]

    def test_people_hear_of_a_host_after_so_many_probes(self, store: Store) -> None:
        """That it is down is raised once, when that many in a row found it so; that it is up again, once, at once."""
        states = ["up", "down", "up", "down", "down", "down", "unknown", "down", "up", "up"]
        heard = []
        for state in states:
            store.probed(Host(name="b", kind="ssh", state=state, since=0), by=SUP, alert_after=2).result()
            heard.append(sum(kind_of(entry.event) == "alert.raised" for entry in store.chain("host/b")))
        assert heard == [0, 0, 0, 0, 1, 1, 1, 1, 2, 2]
        audit(store)

    def test_what_a_probe_did_not_ask_for_stays(self, store: Store) -> None:
        """Facts are as the last probe that asked for them had them; the last good answer is remembered."""
        full = Host(
            name="b", kind="ssh", state="up", since=0, answered_at=7, coder=False, warnings=("full",), status="warm"
        )
        store.probed(full, by=SUP).result()
        store.probed(Host(name="b", kind="ssh", state="down", since=0), by=SUP).result()
        (known,) = store.hosts()
        assert (known.answered_at, known.coder, known.warnings, known.failures) == (7, False, ("full",), 1)
        store.probed(Host(name="b", kind="ssh", state="up", since=0, answered_at=9, coder=True), by=SUP).result()
        (known,) = store.hosts()
        assert (known.answered_at, known.coder, known.warnings, known.failures) == (9, True, (), 0)

    def test_probes_are_counted_and_forgotten(self, store: Store, stores: Stores) -> None:
        """Probes of a few minutes are one row: how many found it up, and how fast; what is old is gone."""
        for state, ms in (("up", 10), ("up", 30), ("down", None), ("unknown", None)):
            store.probed(Host(name="b", kind="ssh", state=state, since=0, latency_ms=ms), by=SUP).result()
        store.probed(Host(name="c", kind="ssh", state="down", since=0), by=SUP).result()
        found = store.probes("b", since=0)
        assert sum(each.up for each in found) == 2
        assert (sum(each.down for each in found), sum(each.unknown for each in found)) == (1, 1)
        assert (sum(each.ms_total for each in found), max(each.ms_most for each in found)) == (40, 30)
        totals = store.probe_totals(since=0)
        assert (totals["b"].up, totals["b"].ms_most, totals["c"].down) == (2, 30, 1)
        assert store.probes("b", since=found[-1].at + 86_400_000) == []
        stores.tick(2 * 86_400)
        store.probed(Host(name="b", kind="ssh", state="up", since=0, latency_ms=5), by=SUP, keep_days=1).result()
        (left,) = store.probes("b", since=0)
        assert (left.up, left.ms_total) == (1, 5)

    def test_a_host_drains_by_a_persons_word(self, store: Store) -> None:
        """No probe takes the word back; saying it twice is told once; it may be said of a host that is not known."""
        store.drain("builder-1", "ssh", draining=True, by=ME).result()
        store.drain("builder-1", "ssh", draining=True, by=ME).result()
        up = store.probed(Host(name="builder-1", kind="ssh", state="up", since=0), by=SUP).result()
        assert (up.state, up.draining) == ("up", True)
        again = store.drain("builder-1", "ssh", draining=False, by=ME).result()
        assert (again.state, again.draining, again.since) == ("up", False, up.since)
        assert [kind_of(entry.event) for entry in store.chain("host/builder-1")] == ["host.changed"] * 3
        audit(store)

    def test_cursors_remember(self, store: Store) -> None:
        """A reader finds its place again."""
        assert store.cursor("alerts") == ""
        store.advance("alerts", "12").result()
        store.advance("alerts", "15").result()
        assert store.cursor("alerts") == "15"

    # finding and counting

    def test_short_ids_find_the_whole(self, store: Store) -> None:
        """The id, what follows its prefix, or any unique beginning or end of it finds a task; nothing else does."""
        (task,) = self.add(store, "find me")
        tail = task.uid.removeprefix("fleet-")
        assert store.find(task.uid) == store.find(tail) == store.find(tail[-2:]) == store.find(task.uid[:-1]) == task
        with pytest.raises(NotFound):
            store.find("fleet-0000")

    def test_counts_are_what_is_there(self, store: Store) -> None:
        """Counts by state, and failures by who failed."""
        self.add(store, "a", "b", "c", "d")
        running = self.claim(store, 3)
        store.finish(running[0].session.fence, EXITED, a_pass(), by=SUP).result()
        lost = a_fail("the host vanished", Source.TRANSPORT)
        store.finish(running[1].session.fence, LOST, lost, by=SUP).result()
        assert store.counts() == {"queued": 1, "running": 1, "completed": 1, "failed": 1, "transport_failed": 1}

    # the ledger and the feed

    def test_the_feed_gives_every_event_once(self, stores: Stores) -> None:
        """A reader that follows while eight writers commit sees every event exactly once, chains in order."""
        writers = [stores.open() for _ in range(8)]
        reader = stores.open()
        finished = threading.Event()
        seen: list[tuple[str, int]] = []

        def follow() -> None:
            position = ""
            while True:
                last_look = finished.is_set()
                batch = reader.feed(position, limit=50)
                position = batch.position
                seen.extend((entry.event.subject, entry.seq) for entry in batch.entries)
                if last_look and not batch.entries:
                    return

        def write(n: int) -> None:
            for k in range(25):
                self.add(writers[n], f"{n}/{k}", f"{n}/{k} too")

        follower = threading.Thread(target=follow)
        follower.start()
        with ThreadPoolExecutor(8) as pool:
            list(pool.map(write, range(8)))
        finished.set()
        follower.join(30)
        assert not follower.is_alive()
        assert len(seen) == len(set(seen)) == 400
        audit(reader)

    def test_verifying_while_others_write_raises_no_false_alarm(self, stores: Stores) -> None:
        """What is written between two looks of the verifier is not taken for damage."""
        writer, reader = stores.open(), stores.open()
        done = threading.Event()

        def write() -> None:
            writer.join("busy", machine="here", pid=1, seconds=600).result()
            while not done.is_set():
                self.add(writer, "one", "two")
                for claimed in self.claim(writer, 2, "busy"):
                    writer.finish(claimed.session.fence, EXITED, a_pass(), by="busy").result()

        with ThreadPoolExecutor(1) as pool:
            writing = pool.submit(write)
            try:
                for _ in range(15):
                    verify(reader)
            finally:
                done.set()
            writing.result(30)
        audit(reader)

    def test_a_commit_rings(self, stores: Stores) -> None:
        """A listener in another process is woken by a commit, and not without one, nor by one that changed nothing."""
        listener, writer = stores.open(), stores.open()
        bell = listener.listen()
        try:
            assert not bell.wait(0)
            self.add(writer, "ding")
            assert bell.wait(10)
            assert not bell.wait(0.05)
            writer.join("idle", machine="here", pid=1, seconds=60).result()
            assert bell.wait(10)
            writer.claim("idle", [], DEFAULTS).result()
            writer.claim("idle", slots(1, runs=frozenset({"no-such-run"})), DEFAULTS).result()
            assert not bell.wait(0.05)
        finally:
            bell.close()

    def test_grouped_writers_keep_the_errors_of_others_apart(self, stores: Stores) -> None:
        """In one group commit the good verbs are durable and the bad one alone is refused."""
        store = stores.open(grouped=True)
        (task,) = self.add(store, "first")
        made = [store.submit([a_task(f"task {n}")], by=ME) for n in range(50)]
        bad = store.submit([a_task("")], by=ME)
        said = [store.comment(task.uid, f"remark {n}", by=ME) for n in range(50)]
        with pytest.raises(UsageError):
            bad.result(30)
        assert len({pending.result(30)[0].uid for pending in made}) == 50
        assert len({pending.result(30).id for pending in said}) == 50
        other = stores.open()
        assert len(other.tasks()) == 51
        assert len(other.comments(task.uid)) == 50
        audit(other)

    def test_a_closed_store_answers(self, stores: Stores) -> None:
        """A verb that comes after the store was closed is refused, not left waiting."""
        store = stores.open(grouped=True)
        store.close()
        with pytest.raises(StoreError, match="closed"):
            store.submit([a_task("late")], by=ME).result(10)

    def test_verbs_can_be_awaited(self, stores: Stores) -> None:
        """In a loop, many verbs are awaited at once and each gets its own answer."""
        store = stores.open(grouped=True)

        async def submit(n: int) -> str:
            (task,) = await store.submit([a_task(f"task {n}")], by=ME)
            return task.title

        async def everything() -> list[str]:
            return await asyncio.gather(*(submit(n) for n in range(64)))

        assert asyncio.run(everything()) == [f"task {n}" for n in range(64)]

    def test_unknown_things_are_not_found(self, store: Store) -> None:
        """Asking for what does not exist says so."""
        for ask in (store.task, store.session, store.progress, store.run):
            with pytest.raises(NotFound):
                ask("nothing")
        with pytest.raises(NotFound):
            store.fulfil("i-0", "done", by=SUP).result()
        assert store.claim(SUP, [Slot(worker="w#1", host="h")], DEFAULTS).result() == []
