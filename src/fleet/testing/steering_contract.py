"""SteeringContract: alerts, charges and what people decide, as every store must keep them. Part of StoreContract."""

from __future__ import annotations

import contextlib

import pytest

from fleet.errors import Conflict, Fenced
from fleet.model import event as ev
from fleet.model.alert import ESCALATED, Alert, AlertKind
from fleet.model.receipt import Usage
from fleet.model.run import NewRun
from fleet.model.session import Claimed, Ending, Progress
from fleet.model.states import RunState, SessionState, TaskState
from fleet.model.task import NewTask, Task
from fleet.store.store import Store
from fleet.testing.audit import audit
from fleet.testing.builders import CRASHED, DEFAULTS, EXITED, a_fail, a_pass, a_task, slots
from fleet.testing.store_suite import ME, SUP, Stores, StoreSuite

EXHAUSTED = Alert(AlertKind.RESTART_EXHAUSTED, "attempt 1 of 1 was the last")
NEEDED = Alert(AlertKind.NEEDS_HUMAN, "attempt 1 of 1 was the last")


class SteeringContract(StoreSuite):
    """Alerts, charges and what people decide."""

    def claimed(self, store: Store, title: str = "one") -> Claimed:
        store.submit([a_task(title)], by=ME).result()
        (claimed,) = store.claim(SUP, slots(1), DEFAULTS).result()
        store.started(claimed.session.fence, 42, by=SUP).result()
        return claimed

    def alerts(self, store: Store, subject: str) -> list[ev.AlertRaised]:
        return [e.event for e in store.chain(subject) if isinstance(e.event, ev.AlertRaised)]

    def test_alerts_stand_behind_what_causes_them(self, store: Store) -> None:
        """They come with the end of the session, name it and its worker, and leave the state as it is."""
        claimed = self.claimed(store)
        fence = claimed.session.fence
        task = store.finish(fence, CRASHED, a_fail(), charged=True, alerts=(EXHAUSTED, NEEDED), by=SUP).result()
        kinds = [ev.kind_of(entry.event) for entry in store.chain(task.uid)][-4:]
        assert kinds == ["session.ended", "task.settled", "alert.raised", "alert.raised"]
        first, second = self.alerts(store, task.uid)
        assert (first.alert, first.reason) == (EXHAUSTED.kind, EXHAUSTED.reason)
        assert (second.session, second.worker) == (claimed.session.id, claimed.session.worker)
        assert (task.state, task.charged, task.escalated) == (TaskState.FAILED, 1, True)
        assert (store.counts()["escalated"], store.counts()["failed"]) == (1, 1)
        again = store.requeue(task.uid, "again", by=ME).result()
        assert (again.escalated, again.restarts) == (False, 1)
        assert "escalated" not in store.counts() or store.counts()["escalated"] == 0
        audit(store)

    def test_a_charged_end_counts_and_an_uncharged_one_does_not(self, store: Store) -> None:
        """The last attempt is charged with the receipt that it leaves, if it is said to be."""
        for charged in (True, False):
            fence = self.claimed(store).session.fence
            assert store.finish(fence, CRASHED, a_fail(), charged=charged, by=SUP).result().charged == int(charged)

    @pytest.mark.parametrize("kind", [*sorted(ESCALATED), "question", "interrupted"])
    def test_some_blocks_are_raised_to_a_person(self, store: Store, kind: str) -> None:
        """Permission, secrets, destruction, budgets and helplessness raise needs_human; a question is only asked."""
        fence = self.claimed(store).session.fence
        told = (Alert(AlertKind.BUDGET_EXCEEDED, "too much"),)
        paused = store.pause(fence, EXITED, kind, "look", alerts=told, by=SUP).result()
        held = store.submit([a_task("two")], by=ME).result()[0]
        store.block(held.uid, kind, "look", by=SUP).result()
        found = [alert.alert.value for alert in self.alerts(store, paused.uid)]
        assert found == ["budget_exceeded"] + ["needs_human"] * (kind in ESCALATED)
        assert len(self.alerts(store, held.uid)) == int(kind in ESCALATED)
        counts = store.counts()
        assert counts.get("escalated", 0) == 2 * (kind in ESCALATED)
        assert counts.get("interrupted", 0) == 2 * (kind == "interrupted")
        store.answer(paused.uid, "go on", by=ME).result()
        assert not store.task(paused.uid).escalated
        audit(store)

    def test_what_a_session_used_is_kept(self, store: Store) -> None:
        """The usage of its end is in the session, whatever became of the task."""
        first = self.claimed(store)
        used = Usage(output_tokens=7, tool_calls=2, cost_microusd=11)
        store.retry(first.session.fence, Ending(outcome="crashed", usage=used), reason="again", by=SUP).result()
        assert store.session(first.session.id).usage == used
        (second,) = store.claim(SUP, slots(1), DEFAULTS).result()
        store.pause(second.session.fence, Ending(outcome="ok", usage=used), "question", "Which?", by=SUP).result()
        assert [one.usage for one in store.sessions(task=first.task.uid)] == [used, used]
        audit(store)

    def test_a_restart_of_a_live_session_is_counted(self, store: Store) -> None:
        """The task is queued again, uncharged, and shown among the restarted."""
        fence = self.claimed(store).session.fence
        task = store.retry(fence, EXITED, reason="asked", charged=False, restart=True, by=ME).result()
        assert (task.state, task.charged, task.restarts) == (TaskState.QUEUED, 0, 1)
        assert store.counts()["restarted"] == 1

    def test_a_session_is_abandoned_by_a_persons_word(self, store: Store) -> None:
        """It is lost with what it had used; its holder is fenced off, and another attempt has a higher epoch."""
        first = self.claimed(store)
        used = Usage(output_tokens=5)
        store.record(first.session.fence, Progress(cursor=9, usage=used)).result()
        task = store.abandon(first.task.uid, "its host is gone", by=ME).result()
        lost = store.session(first.session.id)
        assert (task.state, task.charged, task.restarts) == (TaskState.QUEUED, 0, 1)
        assert (lost.state, lost.outcome, lost.usage) == (SessionState.LOST, "abandoned", used)
        assert [(one.verb, one.args) for one in store.intents()] == [("sweep", {"session": lost.id})]
        with pytest.raises(Fenced):
            store.finish(first.session.fence, EXITED, a_pass(), by=SUP).result()
        with pytest.raises(Fenced):
            store.record(first.session.fence, Progress(cursor=10)).result()
        with pytest.raises(Conflict):
            store.abandon(task.uid, "again", by=ME).result()
        (second,) = store.claim(SUP, slots(1), DEFAULTS).result()
        assert second.session.epoch > first.session.epoch
        audit(store)

    def test_a_check_is_made_on_what_stands(self, store: Store) -> None:
        """What a check refuses is not queued again, and it sees the task as it is at that moment."""
        seen: list[Task] = []

        def refuse(task: Task) -> None:
            seen.append(task)
            raise Conflict("not now")

        claimed = self.claimed(store)
        store.finish(claimed.session.fence, EXITED, a_pass(), by=SUP).result()
        with pytest.raises(Conflict, match="not now"):
            store.requeue(claimed.task.uid, "again", by=ME, check=refuse).result()
        assert [task.state for task in seen] == [TaskState.COMPLETED]
        assert store.task(claimed.task.uid).state is TaskState.COMPLETED

    @pytest.mark.parametrize("stopped", [False, True])
    def test_the_end_of_a_run_is_told(self, store: Store, stopped: bool) -> None:
        """A run ends completed, or stopped when a person stopped it; either is told once, in its own chain."""
        (task,) = store.submit([NewTask(title="a")], run=NewRun(name="nightly"), by=ME).result()
        run = str(task.run)
        if stopped:
            assert store.stop_run(run, "enough", by=ME).result().stopping
            store.stop_run(run, "enough", by=ME).result()
        store.cancel(task.uid, "enough", by=ME).result()
        assert store.run(run).state is (RunState.STOPPED if stopped else RunState.COMPLETED)
        (alert,) = self.alerts(store, f"run/{run}")
        assert (alert.alert, alert.by) == (AlertKind.RUN_COMPLETED, ME)
        assert alert.reason == f"nightly is {'stopped' if stopped else 'completed'}: 1 cancelled"
        with pytest.raises(Conflict):
            store.stop_run(run, "again", by=ME).result()
        store.requeue(task.uid, "wanted", by=ME).result()
        assert (store.run(run).state, store.run(run).stopping) == (RunState.ACTIVE, False)
        audit(store)

    @pytest.mark.parametrize("grouped", [False, True])
    def test_many_verbs_go_together_and_each_stands_for_itself(self, stores: Stores, grouped: bool) -> None:
        """What refuses one is told to it alone and leaves nothing; what follows from one is seen by the next."""
        store = stores.open(grouped=grouped)
        one, two, three = self.add(store, "one", "two", "three")
        (needs,) = self.add(store, "needs one", needs=(one.uid,))
        with store.together() as several:
            asked = [several.cancel(uid, "enough", by=ME) for uid in (one.uid, two.uid, two.uid, needs.uid, three.uid)]
            asked.append(several.answer(three.uid, "yes", by=ME))
            several.intend("stop", three.uid, by=ME)
            assert store.task(one.uid).state is TaskState.QUEUED  # until the end of the block
        assert [asked[n].result().uid for n in (0, 1, 4)] == [one.uid, two.uid, three.uid]
        for refused in (asked[2], asked[3], asked[5]):
            with pytest.raises(Conflict):
                refused.result()
        assert store.task(needs.uid).skipped_for == one.uid
        assert [intent.target for intent in store.intents()] == [three.uid]
        audit(store)

    def test_what_was_gathered_in_vain_is_not_written(self, store: Store) -> None:
        """A block that raises has asked for nothing, and one that gathers nothing writes nothing."""
        (one,) = self.add(store, "one")
        with contextlib.suppress(LookupError), store.together() as several:
            several.cancel(one.uid, "enough", by=ME)
            raise LookupError
        with store.together():
            pass
        assert store.task(one.uid).state is TaskState.QUEUED
        audit(store)
