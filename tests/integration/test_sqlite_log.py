"""The log of a SQLite database: it is moved into the database in good time, and begins anew."""

from __future__ import annotations

import os
import signal
import threading
from pathlib import Path

import apsw

from fleet.store.engine import Tx
from fleet.store.sqlite.reader import SqliteReader
from fleet.store.sqlite.writer import PAGE, SqliteWriter
from fleet.store.store import Store
from fleet.testing.audit import audit
from fleet.testing.builders import a_task
from tests.support.children import child
from tests.support.disks import small_disk

LOG_PAGES = 300
FRAME = PAGE + 24  # a page and its header
LONG = "x" * 10_000  # about a dozen pages of the log for each task


def writer(home: Path) -> SqliteWriter:
    return SqliteWriter(home / "fleet.db", bells=home / "bells", leases=home / "leases", log_pages=LOG_PAGES)


def pages(home: Path) -> int:
    """How many the log has ever had at once: its file does not shrink."""
    return (home / "fleet.db-wal").stat().st_size // FRAME


def fill(store: Store, tasks: int) -> None:
    for n in range(tasks):
        store.submit([a_task(f"task {n}", description=LONG)], by="ana").result()


def test_the_log_begins_anew_while_several_write(tmp_path: Path) -> None:
    """Writers that never pause do not make the log grow for ever, as they would if nobody moved the last of it."""
    stores = [Store(writer(tmp_path)) for _ in range(4)]
    threads = [threading.Thread(target=fill, args=(store, 100)) for store in stores]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    written = 4 * 100 * 2 * len(LONG) // PAGE  # in the event, and in the row
    assert written > 10 * LOG_PAGES
    assert pages(tmp_path) < 4 * LOG_PAGES
    assert len(stores[0].tasks(None, limit=1000)) == 4 * 100
    for store in stores:
        store.close()


def test_a_reader_holds_the_log_and_lets_it_go(tmp_path: Path) -> None:
    """What somebody still reads stays in the log; once nobody does, it begins anew."""
    store = Store(writer(tmp_path))
    fill(store, 1)
    reader = SqliteReader(tmp_path / "fleet.db", bells=tmp_path / "bells", leases=tmp_path / "leases")

    def look(tx: Tx) -> int:
        first = tx.rows("SELECT count(*) FROM tasks")
        fill(store, 80)
        assert tx.rows("SELECT count(*) FROM tasks") == first
        return pages(tmp_path)

    held = reader.read(look)
    assert held > 2 * LOG_PAGES
    fill(store, 200)
    assert pages(tmp_path) < held + 2 * LOG_PAGES
    reader.close()
    store.close()


def test_a_process_that_writes_on_gives_the_log_its_room_at_once(tmp_path: Path) -> None:
    """A supervisor's commits never make the file longer; a command leaves no such file behind."""
    store = Store(writer(tmp_path))
    fill(store, 1)
    assert pages(tmp_path) < LOG_PAGES // 2
    store.join("sup", machine="here", pid=1, seconds=60).result()
    roomy = pages(tmp_path)
    assert roomy > LOG_PAGES
    fill(store, 200)
    assert pages(tmp_path) == roomy
    store.close()
    assert not (tmp_path / "fleet.db-wal").exists()
    again = Store(writer(tmp_path))
    assert len(again.tasks(None, limit=1000)) == 201
    again.close()


def test_a_database_made_with_larger_pages_keeps_them(tmp_path: Path) -> None:
    """Earlier versions made pages of 4 KiB; the log's room is counted in the pages that the database has."""
    before = apsw.Connection(str(tmp_path / "fleet.db"))
    before.execute("PRAGMA page_size = 4096; PRAGMA journal_mode = wal; CREATE TABLE t (id); DROP TABLE t")
    before.close()
    store = Store(writer(tmp_path))
    store.join("sup", machine="here", pid=1, seconds=60).result()
    assert (tmp_path / "fleet.db-wal").stat().st_size > LOG_PAGES * (4096 + 24)
    fill(store, 200)
    store.close()
    after = apsw.Connection(str(tmp_path / "fleet.db"), flags=apsw.SQLITE_OPEN_READONLY)
    assert after.pragma("page_size") == 4096
    after.close()
    again = Store(writer(tmp_path))
    audit(again)
    again.close()


def test_what_a_killed_process_committed_is_found_before_the_zeros(tmp_path: Path) -> None:
    """The room behind the last commit is not taken for a part of the log."""

    def write(saying: int) -> None:
        store = Store(writer(tmp_path))
        store.join("sup", machine="here", pid=1, seconds=60).result()
        fill(store, 5)
        os.write(saying, b"written\n")
        signal.pause()

    with child(write) as process:
        assert process.line() == "written"
        process.send(signal.SIGKILL)
        process.wait()
    assert pages(tmp_path) > LOG_PAGES
    store = Store(writer(tmp_path))
    fill(store, 1)
    assert len(store.tasks(None, limit=1000)) == 6
    audit(store)
    store.close()


def test_a_disk_without_that_much_room_keeps_what_it_has(tmp_path: Path) -> None:
    """Where the room does not fit nothing of it is kept: the disk is for what is committed."""
    with small_disk(tmp_path / "disk", kilobytes=512) as disk:
        store = Store(writer(disk))
        store.join("sup", machine="here", pid=1, seconds=60).result()
        assert pages(disk) < LOG_PAGES // 4
        fill(store, 3)
        assert len(store.tasks(None)) == 3
        store.close()
