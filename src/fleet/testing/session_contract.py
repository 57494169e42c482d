"""SessionContract: the life of a session, and that only its holder writes about it. Part of StoreContract."""

from __future__ import annotations

import pytest

from fleet.errors import Conflict, Fenced, LeaseLost
from fleet.model.event import kind_of
from fleet.model.receipt import Usage
from fleet.model.session import Fence, Progress
from fleet.model.states import Result, SessionState, TaskState
from fleet.model.task import TaskEdit
from fleet.store.store import Store
from fleet.testing.audit import audit
from fleet.testing.builders import CRASHED, EXITED, LOST, a_fail, a_partial, a_pass, a_verifier
from fleet.testing.store_suite import ME, SUP, Stores, StoreSuite

DAY_SECONDS = 86_400


class SessionContract(StoreSuite):
    """The life of a session, and that only its holder writes about it."""

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

    def test_ended_sessions_are_told_in_order(self, store: Store) -> None:
        """What has ended is given piece by piece as it is told of each alone: finished, never begun, or stopped."""
        for name in ("done", "unbegun", "stopped", "goes on"):
            self.add(store, name)
        done, unbegun, stopped, goes_on = [self.claim_one(store).session.fence for _ in range(4)]
        for fence in (done, stopped, goes_on):
            store.started(fence, 7, by=SUP).result()
        store.finish(done, EXITED, a_pass(), by=SUP).result()
        store.stopping(stopped, "enough", by=SUP).result()
        store.retry(unbegun, CRASHED, reason="no launch", charged=False, by=SUP).result()
        store.finish(stopped, EXITED, a_fail(), by=SUP).result()
        names = [fence.session for fence in (done, unbegun, stopped)]
        found = store.ended(0, limit=10)
        assert [session for _, session in found] == [store.session(name) for name in names]
        assert [session.started_at is None for _, session in found] == [False, True, False]
        assert store.ended(0, limit=1) == found[:1]
        assert store.ended(found[0][0], limit=10) == found[1:]
        assert store.ended(found[-1][0], limit=10) == []

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

    def test_a_wait_lasts_as_long_as_was_meant_when_the_clock_is_set_back(self, stores: Stores) -> None:
        """A retry does not wait for days because the clock had been ahead by them, nor is it made at once. What a
        person put off stays put off; said again, it changes nothing."""
        store = stores.open()
        store.join(SUP, machine="here", pid=1, seconds=60).result()
        stores.tick(3 * DAY_SECONDS)  # and it was wrong
        later = store.now() + 9 * DAY_SECONDS * 1000
        retried, deferred = self.add(store, "retried", "deferred")
        store.edit(deferred.uid, TaskEdit(not_before=later), by=ME).result()
        (claimed,) = self.claim(store, 1)
        wait_ms = 60_000
        store.retry(claimed.session.fence, CRASHED, reason="again", not_before=store.now() + wait_ms, by=SUP).result()
        assert store.mend_waits(by=SUP).result() == []
        stores.tick(-3 * DAY_SECONDS)
        (mended,) = store.mend_waits(by=SUP).result()
        assert mended.uid == retried.uid
        assert 0 < (mended.not_before or 0) - store.now() <= wait_ms
        assert (store.ready(), store.mend_waits(by=SUP).result()) == ([], [])
        stores.tick(wait_ms / 1000)
        assert [ready.uid for ready in store.ready()] == [retried.uid]
        assert store.task(deferred.uid).not_before == later
        audit(store)

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
