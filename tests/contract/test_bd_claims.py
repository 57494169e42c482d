"""Taking a task by hand, and editing it by what stands in it: on every store, from several threads at once."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import pytest
from msgspec.structs import replace

from fleet.errors import Conflict
from fleet.model.session import Defaults
from fleet.model.states import TaskState
from fleet.model.task import Task, TaskEdit
from fleet.store.store import Store
from fleet.testing.builders import a_slot, a_task, fold_all
from tests.support.stores import PostgresStores, SqliteStores

PEOPLE = [f"person-{n}" for n in range(6)]


@pytest.fixture(params=["sqlite", pytest.param("postgres", marks=pytest.mark.postgres)])
def stores(request: pytest.FixtureRequest) -> SqliteStores | PostgresStores:
    """Handles on one store."""
    found: SqliteStores | PostgresStores = request.getfixturevalue(f"{request.param}_stores")
    return found


def add(store: Store) -> Task:
    """A queued task."""
    (task,) = store.submit([a_task()], by="me").result()
    return task


def test_of_many_who_take_one_gets_it(stores: SqliteStores | PostgresStores) -> None:
    """Of several people who take a task at the same time exactly one has it, and the rows follow from the events."""
    task = add(stores.open())

    def attempt(who: str) -> str | None:
        store = stores.open()
        try:
            return store.take(task.uid, by=who).result().bead.assignee
        except Conflict:
            return None

    with ThreadPoolExecutor(len(PEOPLE)) as pool:
        won = [who for who in pool.map(attempt, PEOPLE) if who]
    store = stores.open()
    after = store.task(task.uid)
    assert won == [after.bead.assignee]
    assert after.state is TaskState.BLOCKED
    assert fold_all(entry.event for entry in store.chain(task.uid)) == after


def test_taking_twice_changes_nothing(stores: SqliteStores | PostgresStores) -> None:
    """Whoever has a task may take it again; nobody else may, and no supervisor claims it."""
    store = stores.open()
    task = add(store)
    taken = store.take(task.uid, by="ann").result()
    assert store.take(task.uid, by="ann").result() == taken
    with pytest.raises(Conflict):
        store.take(task.uid, by="bob").result()
    store.join("s1", machine="here", pid=1, seconds=60).result()
    assert store.claim("s1", [a_slot()], Defaults(coder="scripted", model="small")).result() == []


def test_what_runs_cannot_be_taken(stores: SqliteStores | PostgresStores) -> None:
    """A task that a supervisor has claimed is not taken from it."""
    store = stores.open()
    task = add(store)
    store.join("s1", machine="here", pid=1, seconds=60).result()
    store.claim("s1", [a_slot()], Defaults(coder="scripted", model="small")).result()
    with pytest.raises(Conflict):
        store.take(task.uid, by="ann").result()


def test_no_amendment_is_lost(stores: SqliteStores | PostgresStores) -> None:
    """Notes that several people append at the same time are all there afterwards."""
    task = add(stores.open())

    def append(who: str) -> None:
        stores.open().amend(
            task.uid, lambda now: TaskEdit(bead=replace(now.bead, notes=f"{now.bead.notes}\n{who}")), by=who
        ).result()

    with ThreadPoolExecutor(len(PEOPLE)) as pool:
        list(pool.map(append, PEOPLE))
    assert sorted(stores.open().task(task.uid).bead.notes.split()) == PEOPLE
