"""The log of a SQLite database: it is moved into the database in good time, and begins anew."""

from __future__ import annotations

import threading
from pathlib import Path

from fleet.store.engine import Tx
from fleet.store.sqlite.reader import SqliteReader
from fleet.store.sqlite.writer import SqliteWriter
from fleet.store.store import Store
from fleet.testing.builders import a_task

LOG_PAGES = 300
FRAME = 4096 + 24  # a page and its header
LONG = "x" * 20_000  # about a dozen pages of the log for each task


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
    written = 4 * 100 * 2 * len(LONG) // 4096  # in the event, and in the row
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
