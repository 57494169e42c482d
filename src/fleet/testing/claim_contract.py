"""ClaimContract: what is ready, who gets it, and that nobody gets it twice. Part of StoreContract."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor

import pytest
from msgspec.structs import replace

from fleet.errors import LeaseLost
from fleet.model.run import NewRun, RunWorker
from fleet.model.session import Claimed, Fence, name_there, seal_of, task_of
from fleet.model.states import SessionState, TaskState
from fleet.model.task import TaskEdit
from fleet.model.terms import Terms
from fleet.store.store import Store
from fleet.testing.audit import audit
from fleet.testing.builders import DEFAULTS, EXITED, a_pass, a_slot, a_task, slots
from fleet.testing.store_suite import ME, SUP, Stores, StoreSuite


class ClaimContract(StoreSuite):
    """What is ready, who gets it, and that nobody gets it twice."""

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

    def test_a_session_elsewhere_has_a_name_that_no_other_home_gives(self, store: Store) -> None:
        """All sessions of a task elsewhere have the same seal, others have others, and those here have none."""
        here, one, other = self.add(store, "here", "one", "other")
        (plain,) = self.claim(store)
        away = [a_slot(f"b#{n}", host="builder", here=False) for n in (1, 2)]
        first, second = store.claim(SUP, away, DEFAULTS).result()
        assert plain.session.id == f"{here.uid}.1"
        assert (name_there(plain.session.id), seal_of(plain.session.id)) == (here.uid, "")
        assert first.session.id == f"{one.uid}.1_{seal_of(first.session.id)}"
        assert len({seal_of(found.session.id) for found in (plain, first, second)}) == 3
        assert (task_of(second.session.id), store.session(second.session.id)) == (other.uid, second.session)
        for found in (plain, first):
            store.retry(found.session.fence, EXITED, reason="again", charged=False, by=SUP).result()
        again, moved = store.claim(SUP, [replace(away[0], worker=f"c#{n}") for n in (1, 2)], DEFAULTS).result()
        assert (again.task.uid, bool(seal_of(again.session.id))) == (here.uid, True)
        assert name_there(moved.session.id) == name_there(first.session.id)
        assert moved.session.id != first.session.id
        for word in (moved.session.id, f"{one.uid}.2"):  # people may leave the seal out
            assert store.find(word).uid == one.uid

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

    def test_a_directory_is_that_of_a_machine(self, store: Store) -> None:
        """Tasks that any machine may take have it to themselves on each; one that is bound there is in their way."""
        self.add(store, "one", "two", "three", cwd="shop")
        self.add(store, "bound", cwd="shop", host="red")
        away = [a_slot(f"{host}#{n}", host=host, here=False, shares=False) for host in ("red", "blue") for n in (1, 2)]
        claimed = store.claim(SUP, away, DEFAULTS).result()
        assert sorted(found.session.host for found in claimed) == ["blue", "red"]
        assert store.claim(SUP, [slot for slot in away if slot.worker[-1] == "2"], DEFAULTS).result() == []
        self.complete(store, next(found for found in claimed if found.session.host == "red"))
        (again,) = store.claim(SUP, [slot for slot in away if slot.worker[-1] == "2"], DEFAULTS).result()
        assert again.session.host == "red"

    def test_a_claim_needs_a_lease(self, store: Store) -> None:
        """A supervisor that never joined, or has left, claims nothing."""
        self.add(store, "task")
        with pytest.raises(LeaseLost):
            self.claim(store, 1, "nobody")
        store.leave(SUP, reason="stopped").result()
        with pytest.raises(LeaseLost):
            self.claim(store)
        assert len(store.ready()) == 1
