"""VerifyContract: results that wait for a verdict, and how they get one. Part of StoreContract."""

from __future__ import annotations

import pytest

from fleet.errors import Conflict
from fleet.model.receipt import Awaits
from fleet.model.run import NewRun
from fleet.model.states import Result, RunState, Source, TaskState
from fleet.model.task import Task
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
)
from fleet.testing.store_suite import ME, SUP, Stores, StoreSuite


class VerifyContract(StoreSuite):
    """Results that wait for a verdict, and how they get one."""

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
