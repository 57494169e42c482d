"""The power is cut at any moment of what several writers did. Nothing that was answered is lost, nothing is half done.

FLEET_CHAOS_ROUNDS makes it longer, FLEET_CHAOS_SEED makes it repeat itself as far as the threads let it.
"""

from __future__ import annotations

import os
import random
import threading
from pathlib import Path

import pytest

from fleet.store.restore import is_sound
from fleet.store.sqlite.writer import SqliteWriter
from fleet.store.store import Store
from fleet.testing.audit import audit
from fleet.testing.builders import DEFAULTS, EXITED, a_pass, a_task, slots
from tests.support.power import Answer, Disk, Sync, remembered

ROUNDS = int(os.environ.get("FLEET_CHAOS_ROUNDS", "5"))
SEED = int(os.environ.get("FLEET_CHAOS_SEED", "0")) or random.SystemRandom().randrange(1, 1 << 32)
WRITERS = 3
LIVES = 12
LOG_PAGES = 60  # it is moved into the database several times meanwhile


def opened(home: Path, *, grouped: bool = False) -> Store:
    bells, leases = home / "bells", home / "leases"
    return Store(SqliteWriter(home / "fleet.db", bells=bells, leases=leases, grouped=grouped, log_pages=LOG_PAGES))


def work(store: Store, name: str, disk: Disk) -> None:
    """Tasks are submitted, claimed and finished; each answer is noted when it has come."""
    store.join(name, machine="here", pid=1, seconds=600).result()
    for n in range(LIVES):
        (task,) = store.submit([a_task(f"{name} {n}")], by="ana").result()
        disk.add(Answer(f"submitted {task.uid}"))
        for claimed in store.claim(name, slots(1), DEFAULTS).result():
            disk.add(Answer(f"claimed {claimed.session.id}"))
            store.finish(claimed.session.fence, EXITED, a_pass(), by=name).result()
            disk.add(Answer(f"finished {claimed.task.uid}"))


@pytest.fixture(scope="module")
def disk(tmp_path_factory: pytest.TempPathFactory) -> Disk:
    """What three stores of one home, one of them with a writer thread, left on their disk, step by step."""
    home = tmp_path_factory.mktemp("home")
    with remembered() as disk:
        stores = [opened(home, grouped=n == 0) for n in range(WRITERS)]
        threads = [threading.Thread(target=work, args=(store, f"sup-{n}", disk)) for n, store in enumerate(stores)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        for store in stores:
            store.close()
    return disk


def test_the_disk_saw_all_of_it(disk: Disk) -> None:
    """Commits, syncs of the log and the log's way into the database were all there to be cut."""
    assert len(disk.answered(len(disk.steps))) == WRITERS * LIVES * 3
    assert sum(step == Sync("fleet.db-wal") for step in disk.steps) >= WRITERS * LIVES * 3
    assert sum(step == Sync("fleet.db") for step in disk.steps) >= 4


@pytest.mark.parametrize("each", range(ROUNDS * 8))
def test_nothing_that_was_answered_is_lost(disk: Disk, tmp_path: Path, each: int) -> None:
    """After any cut the home opens, its ledger is whole, and every answer that was given holds."""
    print(f"FLEET_CHAOS_SEED={SEED}")
    chance = random.Random(f"{SEED} {each}")
    first = next(n for n, step in enumerate(disk.steps) if isinstance(step, Answer))  # there is a home by then
    until = chance.randrange(first, len(disk.steps)) + 1
    disk.cut(until, tmp_path, chance)
    assert is_sound(tmp_path / "fleet.db")
    store = opened(tmp_path)
    audit(store)
    known = {task.uid: task for task in store.tasks(None, limit=1000)}
    held = {session.id for session in store.sessions()}
    for what, _, name in (said.partition(" ") for said in disk.answered(until)):
        match what:
            case "submitted":
                assert name in known
            case "claimed":
                assert name in held
            case _:
                assert known[name].state == "completed"
    store.submit([a_task("life goes on")], by="ana").result()
    store.close()
