"""The feed on PostgreSQL, where transactions commit in another order than they take their numbers."""

from __future__ import annotations

import threading

from fleet.model.run import NewRun
from fleet.model.task import Task
from fleet.store import rows, sessions
from fleet.store.engine import Tx
from fleet.testing.audit import audit
from fleet.testing.builders import DEFAULTS, EXITED, a_pass, a_task, slots
from tests.support.stores import PostgresStores


def test_what_a_writer_could_see_comes_before_what_it_wrote(postgres_stores: PostgresStores) -> None:
    """The end of a run follows the ends of its tasks in the feed, although its writer took its number first."""
    early, late = postgres_stores.open(), postgres_stores.open()
    early.join("sup", machine="here", pid=1, seconds=600).result()
    new = [a_task("one", task_id="1"), a_task("two", task_id="2")]
    early.submit(new, run=NewRun(name="pair"), by="ana").result()
    first, second = early.claim("sup", slots(2), DEFAULTS).result()
    numbered, go_on = threading.Event(), threading.Event()

    def finish_slowly(tx: Tx) -> Task:
        tx.rows("SELECT pg_current_xact_id()")
        rows.task(tx, second.task.uid)
        numbered.set()
        assert go_on.wait(30)
        return sessions.finish(tx, second.session.fence, EXITED, a_pass(), by="sup")

    writer = threading.Thread(target=lambda: early._engine.write(finish_slowly).result())
    writer.start()
    assert numbered.wait(30)
    late.finish(first.session.fence, EXITED, a_pass(), by="sup").result()
    go_on.set()
    writer.join(30)
    assert [run.state.value for run in late.runs()] == ["completed"]
    audit(late)


def test_an_open_transaction_holds_the_feed_back_and_loses_nothing(postgres_stores: PostgresStores) -> None:
    """While an older transaction is open the feed shows nothing newer; afterwards it shows everything, in order."""
    slow, quick = postgres_stores.open(), postgres_stores.open()
    (task,) = slow.submit([a_task("watched")], by="ana").result()
    position = quick.feed().position
    numbered, go_on = threading.Event(), threading.Event()

    def wait_with_a_number(tx: Tx) -> None:
        tx.rows("SELECT pg_current_xact_id()")
        numbered.set()
        assert go_on.wait(30)

    writer = threading.Thread(target=lambda: slow._engine.write(wait_with_a_number).result())
    writer.start()
    assert numbered.wait(30)
    quick.comment(task.uid, "newer", by="ana").result()
    assert quick.feed(position).entries == []
    go_on.set()
    writer.join(30)
    assert [entry.event.subject for entry in quick.feed(position).entries] == [task.uid]
