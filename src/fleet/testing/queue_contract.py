"""QueueContract: tasks enter the queue, wait for each other, and are changed by people. Part of StoreContract."""

from __future__ import annotations

import pytest

from fleet.errors import Conflict, CycleError, IllegalMove, NotFound, UsageError
from fleet.model.run import NewRun
from fleet.model.states import Result, RunState, TaskState
from fleet.model.task import NewTask, TaskEdit
from fleet.store.store import Store
from fleet.testing.audit import audit
from fleet.testing.builders import CRASHED, a_fail, a_pass, a_task
from fleet.testing.store_suite import ME, SUP, StoreSuite


class QueueContract(StoreSuite):
    """Tasks enter the queue, wait for each other, and are changed by people."""

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

    def test_all_are_read_in_pieces_by_age(self, store: Store) -> None:
        """Each once, in some states or any, though more are added meanwhile, which come last; or the newest first."""
        uids = [task.uid for task in self.add(store, *"abcde")]
        store.cancel(uids[1], "no", by=ME).result()
        read, after = [], ""
        while piece := store.tasks(after=after, limit=2):
            read += [task.uid for task in piece]
            after = read[-1]
            if len(uids) == 5:
                uids += [task.uid for task in self.add(store, "late")]
        assert read == uids
        queued = frozenset({TaskState.QUEUED})
        assert [task.uid for task in store.tasks(queued, after=uids[0], limit=2)] == uids[2:4]
        newest = store.tasks(after=uids[3], limit=2, newest_first=True)
        assert [task.uid for task in newest] == [uids[2], uids[1]]

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
