"""Several supervisors on one home, on a real PostgreSQL: they share the queue, and can be told apart and stopped."""

from __future__ import annotations

import asyncio
import json
import os
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from fleet.errors import LeaseLost
from fleet.model.task import Task, TaskEdit
from fleet.store import rows
from fleet.store.engine import Tx
from fleet.store.store import Store
from fleet.supervisor.guard import Guard, guard, holders
from fleet.supervisor.rescuer import Rescuer
from fleet.testing.audit import audit
from fleet.testing.builders import DEFAULTS, a_task, slots
from tests.support.session_host import processes_with, until
from tests.support.stores import PostgresStores
from tests.support.supervised import Campaign

LEASE_SECONDS = 30  # of a supervisor that nobody told otherwise
DAY_MS = 86_400_000


@pytest.fixture
def campaign(tmp_path: Path, postgres_url: str) -> Iterator[Campaign]:
    """A home on PostgreSQL whose supervisors have one slot each; no process is left afterwards."""
    made = Campaign(tmp_path, slots=1, store_url=postgres_url, schema=f"shared_{time.time_ns()}")
    yield made
    made.cli.run("run", "stop", "--stop-agents")
    until(lambda: not processes_with(os.fsencode(made.home.path)), "the end of all processes")


def present(campaign: Campaign) -> list[dict[str, Any]]:
    """What `fleet run status` says of each supervisor."""
    return list(campaign.cli.json("run", "status")["supervisors"])


@pytest.mark.postgres
def test_two_supervisors_of_one_home_share_its_queue(campaign: Campaign) -> None:
    """Both run and each has an agent at the same time; one can be stopped by name, and the other goes on with all."""
    meet = f"touch {campaign.work}/$FLEET_TASK_ID; while [ $(ls {campaign.work} | wc -l) -lt 2 ]; do sleep 0.05; done"
    pair = campaign.add(2, description=meet)
    pids = {campaign.cli.json("run", "--detach")["pid"] for _ in range(2)}
    assert {one["pid"] for one in present(campaign)} == pids
    until(lambda: campaign.ask(lambda store: store.counts()).get("completed") == 2, "two agents that met")
    with campaign.store() as store:
        assert len({store.sessions(task=uid)[0].supervisor for uid in pair}) == 2
    one, other = present(campaign)
    said = campaign.cli.ok("run", "stop", "--supervisor", one["name"]).out
    assert said == f"Stopped supervisor {one['pid']} ({one['name']})\n"
    assert [left["name"] for left in present(campaign)] == [other["name"]]
    assert campaign.cli.run("run", "stop", "--supervisor", one["name"]).code == 4
    more = campaign.add(3, description="echo more")
    until(lambda: campaign.ask(lambda store: store.counts()).get("completed") == 5, "the other to go on")
    assert campaign.cli.json("run", "stop") == {"stopped": [other["pid"]]}
    with campaign.store() as store:
        assert {store.sessions(task=uid)[0].supervisor for uid in more} == {other["name"]}
        audit(store)


@pytest.mark.postgres
def test_a_log_that_is_put_aside_by_who_had_the_session_before(campaign: Campaign) -> None:
    """One that was frozen when its session was taken over may put its log in the place of ours: ours it is still."""
    campaign.add(description="i=0; while [ $i -lt 60 ]; do echo line $i; i=$((i + 1)); sleep 0.05; done")
    with campaign.supervisor("--drain") as supervisor:
        (session,) = campaign.speaking(1)
        log = campaign.home.task_dir(session.task) / "log.jsonl"
        until(lambda: log.exists() and log.stat().st_size, "a line")
        copy = log.with_name("thawed")
        copy.write_bytes(log.read_bytes())
        copy.replace(log)
        assert supervisor.wait(60) == 0, campaign.errors()
    lines = [json.loads(line) for line in log.read_text().splitlines()]
    assert [line["said"]["text"] for line in lines if "text" in line["said"]] == [f"line {n}" for n in range(60)]
    with campaign.store() as store:
        assert [one.outcome for one in store.sessions(task=session.task)] == ["ok"]
        audit(store)
    assert '"log_overtaken"' in "".join(file.read_text() for file in (campaign.home.path / "logs").iterdir())


@pytest.mark.postgres
def test_who_hangs_in_a_transaction_holds_nobody_up_for_longer_than_a_lease(postgres_stores: PostgresStores) -> None:
    """Who stops in the middle of a write loses its rows to others; nothing was written, and it begins again later."""
    frozen, other = postgres_stores.open(), postgres_stores.open()
    other.join("sup", machine="here", pid=1, seconds=LEASE_SECONDS).result()
    (task,) = frozen.submit([a_task("one")], by="ana").result()
    stopped, go_on = threading.Event(), threading.Event()
    tries = []

    def hang(tx: Tx) -> Task:
        tries.append(tx.now)
        tx.run("UPDATE supervisors SET doc = doc")
        found = rows.task(tx, task.uid)
        stopped.set()
        assert go_on.wait(60)
        return found

    writer = threading.Thread(target=lambda: frozen._engine.write(hang).result())
    writer.start()
    assert stopped.wait(30)
    began = time.monotonic()
    other.expire(by="sup").result()
    other.renew("sup", seconds=LEASE_SECONDS).result()
    other.edit(task.uid, TaskEdit(priority=0), by="bob").result()
    (claimed,) = other.claim("sup", slots(1), DEFAULTS).result()
    assert time.monotonic() - began < LEASE_SECONDS
    assert claimed.task.priority == 0
    assert other.feed().entries[-1].event.subject == task.uid, "the feed is not held back either"
    go_on.set()
    writer.join(30)
    assert len(tries) == 2
    audit(other)


class Watcher:
    """Supervisor `two` of a home, as far as it watches the others; its steady clock goes on by hand."""

    def __init__(self, store: Store, home: Path) -> None:
        self.said: list[str] = []
        self._now = 0
        house: Any = SimpleNamespace(
            store=store,
            home=SimpleNamespace(path=home),
            name="two",
            place="there",
            alone=False,
            lease_seconds=LEASE_SECONDS,
            only=None,
            log=lambda event, **fields: self.said.append(f"{event} {fields.get('supervisor')}"),
        )
        self._rescuer = Rescuer(house, lambda _: None, (), clock=lambda: self._now)

    def look(self, *, after_seconds: float = 0) -> None:
        """Once, when so much time has passed."""
        self._now += int(after_seconds * 1000)
        asyncio.run(self._rescuer.run_once())


@pytest.mark.postgres
@pytest.mark.parametrize("ahead_ms", [-DAY_MS, DAY_MS])
def test_a_lease_is_not_taken_by_a_clock_that_was_set(
    postgres_stores: PostgresStores, tmp_path: Path, ahead_ms: int
) -> None:
    """A database's clock that is set, either way, makes a lease look ended. Who lives has it back before another who
    watches says that it is gone; who does not live loses it, and does not have it for as long as the clock was set."""
    ours, theirs = postgres_stores.open(), postgres_stores.open()
    ours.join("one", machine="here", pid=1, seconds=LEASE_SECONDS).result()
    theirs.join("two", machine="there", pid=2, seconds=LEASE_SECONDS).result()
    watcher = Watcher(theirs, tmp_path)
    for gone in (False, True):
        postgres_stores.set_lease("one", theirs.now() + ahead_ms)
        watcher.look()
        watcher.look(after_seconds=0.4 * LEASE_SECONDS)
        assert watcher.said == []
        if not gone:
            ours.renew("one", seconds=LEASE_SECONDS).result()
        watcher.look(after_seconds=0.4 * LEASE_SECONDS)
        assert watcher.said == ["supervisor_gone one"] * gone
    with pytest.raises(LeaseLost):
        ours.renew("one", seconds=LEASE_SECONDS).result()


@pytest.mark.postgres
def test_who_died_beside_us_is_not_waited_for(postgres_stores: PostgresStores, tmp_path: Path) -> None:
    """Of a supervisor of our own home here, the lock of its process tells at once whether it lives."""
    store = postgres_stores.open()
    for name in ("one", "two"):
        store.join(name, machine="there", pid=1, seconds=LEASE_SECONDS).result()
    postgres_stores.set_lease("one", 0)
    watcher = Watcher(store, tmp_path)
    with guard(tmp_path, "one", alone=False):
        watcher.look()
        assert watcher.said == []
    watcher.look()
    assert watcher.said == ["supervisor_gone one"]


def test_a_lock_says_who_holds_it_and_ends_with_its_holder(tmp_path: Path) -> None:
    """Each supervisor is listed by name while it holds its lock; what a killed one left is taken away by the next."""
    with guard(tmp_path, "sup-b", alone=False), guard(tmp_path, "sup-a", alone=False):
        assert [(one.name, one.pid) for one in holders(tmp_path)] == [("sup-a", os.getpid()), ("sup-b", os.getpid())]
    assert holders(tmp_path) == []
    left = tmp_path / "supervisors" / "sup-dead"
    left.write_text("1 sup-dead\n")
    assert holders(tmp_path) == []
    with guard(tmp_path, "sup-c", alone=False):
        assert not left.exists()
        assert [one.name for one in holders(tmp_path)] == ["sup-c"]
    with Guard(tmp_path / "supervisor.lock", "sup-one"):
        assert [one.name for one in holders(tmp_path)] == ["sup-one"]


@pytest.mark.postgres
def test_a_run_on_a_shared_queue(campaign: Campaign) -> None:
    """A run keeps to its cap and ends by itself: supervised by its own process, and beside another supervisor."""
    alone = "mkdir busy && sleep 0.1 && rmdir busy"
    spec = campaign.work / "spec.json"
    spec.write_text(json.dumps([{"id": f"t{n}", "command": alone, "cwd": str(campaign.work)} for n in range(3)]))
    for beside in (False, True):
        if beside:
            campaign.cli.ok("run", "--detach")
        told = json.loads(campaign.cli.ok("run", str(spec), "--max-workers", "1", "--json").out)
        assert told["run"]["counts"]["completed"] == 3
        assert campaign.cli.run("run", "status").code == (0 if beside else 1)
