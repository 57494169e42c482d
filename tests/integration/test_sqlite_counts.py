"""The running counts of a SQLite home: told by the events, taken over by their table now and then."""

from __future__ import annotations

import contextlib
from pathlib import Path

import apsw

from fleet.store.restore import is_sound
from fleet.store.sqlite import counts
from fleet.store.sqlite.writer import SqliteWriter
from fleet.store.store import Store
from fleet.testing.audit import audit
from fleet.testing.builders import DEFAULTS, EXITED, a_fail, a_pass, a_task, slots


def opened(home: Path) -> contextlib.closing[Store]:
    """The store of a home."""
    return contextlib.closing(
        Store(SqliteWriter(home / "fleet.db", bells=home / "bells", leases=home / "leases", grouped=True))
    )


def live(store: Store, supervisor: str, lives: int) -> None:
    """So many tasks, every tenth of which fails; four events each."""
    for n in range(lives):
        store.submit([a_task()], by="ana").result()
        (claimed,) = store.claim(supervisor, slots(1), DEFAULTS).result()
        store.finish(claimed.session.fence, EXITED, a_pass() if n % 10 else a_fail(), by=supervisor).result()


def behind(home: Path) -> int:
    """How many events there are that the table has not taken over."""
    connection = apsw.Connection(str(home / "fleet.db"), flags=apsw.SQLITE_OPEN_READONLY)
    with contextlib.closing(connection):
        sql = "SELECT max(seq) - (SELECT n FROM counts WHERE scope = '' AND key = 'taken') FROM events"
        return int(str(connection.execute(sql).get))


def test_counts_are_right_wherever_they_stand(tmp_path: Path) -> None:
    """Before the table has anything, after it took over, and in the next process, every count is that of the tasks."""
    with opened(tmp_path) as store:
        store.join("one", machine="here", pid=1, seconds=60).result()
        live(store, "one", 20)
        assert store.counts() == {"completed": 18, "failed": 2, "task_failed": 2}
        assert behind(tmp_path) == 81  # nothing was taken over
        live(store, "one", 120)
        assert behind(tmp_path) < counts.BEHIND
        audit(store)
    with opened(tmp_path) as store:
        store.join("two", machine="here", pid=2, seconds=60).result()
        live(store, "two", 10)
        audit(store)
        assert store.counts() == {"completed": 135, "failed": 15, "task_failed": 15}
    assert is_sound(tmp_path / "fleet.db")


def test_a_reader_never_has_far_to_go(tmp_path: Path) -> None:
    """Events that change no count bring the table up to date too: however many there are, few are gone through."""
    with opened(tmp_path) as store:
        store.submit([a_task() for _ in range(3 * counts.BEHIND)], by="ana").result()
        assert behind(tmp_path) < counts.BEHIND
        store.submit([a_task() for _ in range(counts.BEHIND - 1)], by="ana").result()
        assert behind(tmp_path) < counts.BEHIND
        audit(store)


def test_counts_that_are_wrong_are_seen(tmp_path: Path) -> None:
    """A home whose counts are not those of its events is not sound, wherever the wrong one stands."""
    with opened(tmp_path) as store:
        store.join("one", machine="here", pid=1, seconds=60).result()
        live(store, "one", 2)
    assert is_sound(tmp_path / "fleet.db")
    connection = apsw.Connection(str(tmp_path / "fleet.db"))
    with contextlib.closing(connection):
        connection.execute("DROP TRIGGER events_stay; UPDATE events SET counted = NULL")
    assert not is_sound(tmp_path / "fleet.db")
