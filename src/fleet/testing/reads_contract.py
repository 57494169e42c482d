"""ReadsContract: tasks are found and counted, the feed misses nothing, every answer arrives. Part of StoreContract."""

from __future__ import annotations

import asyncio
import threading
from concurrent.futures import ThreadPoolExecutor

import pytest

from fleet.errors import Ambiguous, NotFound, StoreError, UsageError
from fleet.model.run import NewRun
from fleet.model.session import Slot
from fleet.model.states import Source
from fleet.model.task import TaskEdit
from fleet.projections.verify import verify
from fleet.store.store import Store
from fleet.testing.audit import audit
from fleet.testing.builders import DEFAULTS, EXITED, LOST, a_fail, a_pass, a_task, slots
from fleet.testing.store_suite import ME, SUP, Stores, StoreSuite


class ReadsContract(StoreSuite):
    """Tasks are found and counted, the feed misses nothing, every answer arrives."""

    def test_a_reader_of_the_feed_knows_whether_it_was_told_all(self, store: Store) -> None:
        """A task is told once the reader's position has passed its newest event, and not any more after the next."""
        (task,) = self.add(store, "Fix it")
        assert not store.is_told(task.uid, "")
        position = store.feed().position
        assert store.is_told(task.uid, position)
        store.edit(task.uid, TaskEdit(priority=0), by=ME).result()
        assert not store.is_told(task.uid, position)
        assert store.is_told("fleet-none", "")

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

    def test_the_runs_that_go_on(self, store: Store) -> None:
        """Those that have an open task, the newest first; not those that ended, until a task of theirs is restarted."""
        old, ended, new = (
            store.submit([a_task(name)], run=NewRun(name=name), by=ME).result()[0] for name in ("old", "ended", "new")
        )
        store.cancel(ended.uid, "not needed", by=ME).result()
        assert [run.id for run in store.active_runs()] == [new.run, old.run]
        store.requeue(ended.uid, "needed", by=ME).result()
        assert [run.id for run in store.active_runs()] == [new.run, ended.run, old.run]

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
