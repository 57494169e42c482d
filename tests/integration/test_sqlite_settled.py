"""On the disk before it is answered, and before it is told on; but not before the next one may write."""

from __future__ import annotations

import errno
import os
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from fleet.errors import NotFound, StoreError
from fleet.store.sqlite import log
from fleet.store.sqlite.reader import SqliteReader
from fleet.store.sqlite.writer import SqliteWriter
from fleet.store.store import Store
from fleet.testing.builders import DEFAULTS, a_task


class Disk:
    """What the log is synced with, seen from beside: `before` is called in the place of a disk that takes its time."""

    def __init__(self) -> None:
        self.syncs: list[str] = []
        self.before: Callable[[], None] = lambda: None

    def sync(self, fd: int) -> None:
        self.before()
        os.fsync(fd)
        self.syncs.append(Path(os.readlink(f"/proc/self/fd/{fd}")).name)


@pytest.fixture
def disk(monkeypatch: pytest.MonkeyPatch) -> Disk:
    watched = Disk()
    monkeypatch.setattr(log, "sync_data", watched.sync)
    return watched


def opened(home: Path, *, grouped: bool = False) -> Store:
    return Store(SqliteWriter(home / "fleet.db", bells=home / "bells", leases=home / "leases", grouped=grouped))


@pytest.fixture
def store(tmp_path: Path, disk: Disk) -> Iterator[Store]:
    made = opened(tmp_path)
    made.submit([a_task("the first")], by="ana").result()
    disk.syncs.clear()
    yield made
    made.close()


def seen(home: Path) -> SqliteReader:
    return SqliteReader(home / "fleet.db", bells=home / "bells", leases=home / "leases")


@pytest.mark.parametrize("grouped", [False, True])
def test_an_answer_waits_for_the_disk(tmp_path: Path, disk: Disk, grouped: bool) -> None:
    """Each commit is synced once, before its verb is answered."""
    store = opened(tmp_path, grouped=grouped)
    hold, answered = threading.Event(), threading.Event()
    disk.before = lambda: None if hold.wait(20) else pytest.fail("nobody let the disk go on")

    def submit() -> None:
        store.submit([a_task()], by="ana").result()
        answered.set()

    thread = threading.Thread(target=submit)
    thread.start()
    assert not answered.wait(0.2)
    hold.set()
    thread.join(20)
    assert answered.is_set()
    assert disk.syncs == ["fleet.db-wal"]
    store.close()


def test_others_write_while_one_waits_for_the_disk(tmp_path: Path, disk: Disk, store: Store) -> None:
    """The lock is free by then: another commits, and waits for the disk by itself, with all that it saw."""
    other = opened(tmp_path)
    order: list[str] = []

    def write_meanwhile() -> None:
        disk.before = lambda: None
        other.submit([a_task("the other")], by="ana").result()
        order.append("the other")

    disk.before = write_meanwhile
    store.submit([a_task("the slow one")], by="ana").result()
    order.append("the slow one")
    assert order == ["the other", "the slow one"]
    assert disk.syncs == ["fleet.db-wal"] * 2
    assert {task.title for task in store.tasks(None)} == {"the first", "the slow one", "the other"}
    other.close()


def test_what_wrote_nothing_waits_for_nothing(disk: Disk, store: Store) -> None:
    """A verb that was refused, and one that found nothing to do, cost no sync."""
    store.join("sup", machine="here", pid=1, seconds=60).result()
    disk.syncs.clear()
    assert store.claim("sup", [], DEFAULTS).result() == []
    with pytest.raises(NotFound):
        store.submit([a_task(needs=("nobody",))], by="ana").result()
    assert disk.syncs == []


def test_an_event_is_told_on_when_it_is_on_the_disk(tmp_path: Path, disk: Disk, store: Store) -> None:
    """Who follows the feed, and sees what another has not yet synced, syncs it first; once for what is known."""
    reader = Store(seen(tmp_path))
    told: list[int] = []

    def follow() -> None:
        disk.before = lambda: None
        for _ in range(2):
            told.append(len(reader.feed().entries))
            told.append(len(disk.syncs))

    disk.before = follow
    store.submit([a_task("the slow one")], by="ana").result()
    assert told == [2, 1, 2, 1]
    assert disk.syncs == ["fleet.db-wal"] * 2
    reader.close()


def test_where_a_follower_begins_is_on_the_disk(tmp_path: Path, disk: Disk, store: Store) -> None:
    """The end of the feed is a place that stays."""
    reader = Store(seen(tmp_path))
    assert reader.end() == reader.end() == store.end() == "1"
    assert disk.syncs == ["fleet.db-wal"]  # by the one that did not write it
    reader.close()


def test_the_writer_knows_what_it_synced_itself(disk: Disk, store: Store) -> None:
    """Its own mirror and followers cost no second sync."""
    for n in range(3):
        store.submit([a_task(f"task {n}")], by="ana").result()
        assert len(store.feed().entries) == n + 2
    assert disk.syncs == ["fleet.db-wal"] * 3


def test_nobody_has_the_log(tmp_path: Path, disk: Disk) -> None:
    """What the last writer left is in the database, on the disk: there is nothing to wait for."""
    store = opened(tmp_path)
    store.submit([a_task()], by="ana").result()
    store.close()
    disk.syncs.clear()
    assert not (tmp_path / "fleet.db-wal").exists()
    log.settle(str(tmp_path / "fleet.db"))
    assert disk.syncs == []


def test_a_disk_that_fails(disk: Disk, store: Store) -> None:
    """It is not said that nothing was written, nor that something was."""

    def fail() -> None:
        raise OSError(errno.EIO, "Input/output error")

    disk.before = fail
    with pytest.raises(StoreError, match=r"did not take what was written .* Input/output error; .* not known"):
        store.submit([a_task("the lost one")], by="ana").result()
    disk.before = lambda: None
    store.submit([a_task("the next")], by="ana").result()
