"""Where a reader of the feed begins who names a moment or an event: on both stores."""

from __future__ import annotations

import pytest

from fleet.errors import NotFound
from fleet.model.event import TaskCommented
from fleet.model.task import TaskEdit
from fleet.projections.feed import SKEW_MS, Begin, after_seq, begin, since
from fleet.projections.happened import Names, Only
from fleet.store.reads import order_of
from fleet.store.store import Store
from fleet.testing.builders import a_task
from tests.support.stores import PostgresStores, SqliteStores

HOUR = 3600


class Counted:
    """A store that counts how often it is asked for a piece of the feed."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self.place, self.last, self.looks = store.place, store.last, 0

    def feed(self, after: str = "", *, limit: int = 1000) -> object:
        self.looks += 1
        return self._store.feed(after, limit=limit)


@pytest.mark.parametrize("kind", ["sqlite", "postgres"])
def test_places(kind: str, request: pytest.FixtureRequest) -> None:
    """Nothing since the moment is left out, little before it comes along, and what was seen is not given again."""
    stores: SqliteStores | PostgresStores = request.getfixturevalue(f"{kind}_stores")
    store = stores.open()
    assert since(store, 0) == ""
    for hour in range(40):
        store.submit([a_task(f"{hour}.{n}") for n in range(3)], by="ana").result()
        stores.tick(HOUR)
    entries = store.feed().entries
    for wanted in (0, 1, 59, 60, 118, 119):
        at = entries[wanted].event.at
        counted = Counted(store)
        found = store.feed(since(counted, at)).entries  # type: ignore[arg-type]
        assert {entry.seq for entry in entries if entry.event.at >= at} <= {entry.seq for entry in found}
        assert found[0].event.at >= at - SKEW_MS
        assert counted.looks <= 8  # not one for each event
    assert store.feed(since(store, entries[-1].event.at + 2 * SKEW_MS)).entries == []
    assert [entry.seq for entry in store.feed(after_seq(store, entries[99].seq)).entries] == [
        entry.seq for entry in entries[100:]
    ]
    assert after_seq(store, 0) == ""
    with pytest.raises(NotFound, match=f"no event 9999: the newest is {entries[-1].seq}"):
        after_seq(store, 9999)


@pytest.mark.parametrize("kind", ["sqlite", "postgres"])
def test_the_newest_that_are_wanted(kind: str, request: pytest.FixtureRequest) -> None:
    """A reader that asks for some of the newest is given those, whatever lies between, and what comes after them."""
    stores: SqliteStores | PostgresStores = request.getfixturevalue(f"{kind}_stores")
    store = stores.open()
    assert store.feed(begin(store, Begin(newest=3))).entries == []
    ours, other = store.submit([a_task("ours"), a_task("other")], by="ana").result()
    for n in range(5):
        store.comment(ours.uid, f"ours {n}", by="ana").result()
        store.comment(other.uid, f"other {n}", by="ana").result()
    only = Only(task=ours.uid, kinds=("task.commented",))

    def seen(position: str) -> list[str]:
        found = Names().piece(store, position, only=only).happened
        assert {one.about and one.about.title for one in found} <= {"ours"}
        return [one.entry.event.comment.text for one in found if isinstance(one.entry.event, TaskCommented)]

    place = begin(store, Begin(newest=2), only)
    assert seen(place) == ["ours 3", "ours 4"]
    assert seen(begin(store, Begin(newest=50), only)) == [f"ours {n}" for n in range(5)]
    store.comment(ours.uid, "ours 5", by="ana").result()
    assert seen(place) == ["ours 3", "ours 4", "ours 5"]
    nothing = begin(store, Begin(newest=2), Only(kinds=("run.created",)))
    assert order_of(nothing) == order_of(store.end())


def test_a_title_is_the_present_one(sqlite_stores: SqliteStores) -> None:
    """What the feed says of a task is believed until the feed says that it was edited; then it is looked up."""
    store = sqlite_stores.open()
    (task,) = store.submit([a_task("before")], by="ana").result()
    names, first = Names(), store.end()
    assert [one.about and one.about.title for one in names.piece(store, "").happened] == ["before"]
    store.edit(task.uid, TaskEdit(title="after"), by="ana").result()
    store.comment(task.uid, "x", by="ana").result()
    assert [one.about and one.about.title for one in names.piece(store, first).happened] == ["after", "after"]
