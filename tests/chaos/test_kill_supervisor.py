"""Supervisors, agents and runners are killed. Every task ends once, runs once at a time, and every line is read once.

FLEET_CHAOS_ROUNDS makes it longer, FLEET_CHAOS_SEED makes it repeat itself as far as the kernel lets it.
"""

from __future__ import annotations

import contextlib
import os
import random
import signal
import subprocess
import time
from pathlib import Path

import apsw
import psycopg
import pytest

from fleet.model.event import AlertRaised
from fleet.model.states import OPEN, Result
from fleet.model.terms import Budget, Terms
from fleet.testing.audit import audit
from tests.support.disks import small_disk
from tests.support.session_host import kill, until
from tests.support.supervised import POINTS, RESCUES, STOPS, Campaign, kill_all

ROUNDS = int(os.environ.get("FLEET_CHAOS_ROUNDS", "5"))
SEED = int(os.environ.get("FLEET_CHAOS_SEED", "0")) or random.SystemRandom().randrange(1, 1 << 32)
SAID_BY_SCRIPT = '@@scripted [{"lines": 3}, {"sleep": 0.6}, {"say": "and that is all"}]'

pytestmark = pytest.mark.timeout(60 + 30 * ROUNDS)


@pytest.fixture
def chance() -> random.Random:
    """Chance, whose seed is printed when a test fails."""
    print(f"FLEET_CHAOS_SEED={SEED}")
    return random.Random(SEED)


def test_a_supervisor_killed_at_any_moment_loses_and_doubles_nothing(tmp_path: Path, chance: random.Random) -> None:
    """Whenever supervisors are killed, each task's one agent goes on and ends in one receipt, each line read once."""
    campaign = Campaign(tmp_path)
    campaign.add(6)
    while campaign.kills < ROUNDS:
        if not campaign.killed_after(chance.uniform(0.0, 0.9)) or chance.random() < 0.5:
            campaign.add(3, lines=chance.randrange(1, 20))
    campaign.drain()
    campaign.check()
    print(f"kills: {campaign.kills}")


def test_a_supervisor_killed_at_every_point_loses_and_doubles_nothing(tmp_path: Path, chance: random.Random) -> None:
    """Wherever between claim and receipt supervisors are killed, each task's one agent ends in one receipt."""
    campaign = Campaign(tmp_path)
    for _ in range(max(1, ROUNDS // 5)):
        for point in chance.sample(POINTS, len(POINTS)):
            nth = 1
            if point in RESCUES + STOPS:
                (uid,) = campaign.add(lines=100, priority=0)
                campaign.killed_when_it_speaks(uid)
            else:
                campaign.add(2)
                nth = chance.randint(1, 2)
            if point in STOPS:
                campaign.more_runs[uid] += 1
                campaign.cli.ok("restart", uid)
            campaign.killed_at(point, nth)
    campaign.drain()
    campaign.check()
    intents = campaign.ask(lambda store: [one for task in store.tasks() for one in store.intents(target=task.uid)])
    assert {intent.outcome for intent in intents} <= {"done", "refused"}
    print(f"kills: {campaign.kills}")


def test_a_killed_agent_is_tried_again_and_charged(tmp_path: Path) -> None:
    """An agent that is killed has used an attempt; its task is tried again and completed."""
    campaign = Campaign(tmp_path)
    campaign.add(3, lines=20)
    with campaign.supervisor("--drain") as supervisor:
        victims = campaign.speaking(3)
        for session in victims:
            kill(campaign.agent_of(session))
            campaign.more_runs[session.task] += 1
        assert supervisor.wait(60) == 0, campaign.errors()
    campaign.check()
    with campaign.store() as store:
        assert [store.task(one.task).charged for one in victims] == [1, 1, 1]


def test_an_agent_whose_runner_is_killed_goes_on(tmp_path: Path) -> None:
    """Without its runner an agent is judged by what it said: its task is completed by one session, uncharged."""
    campaign = Campaign(tmp_path)
    uids = campaign.add(2, description=SAID_BY_SCRIPT, coder="scripted")
    with campaign.supervisor("--drain") as supervisor:
        for session in campaign.speaking(2):
            kill(campaign.runner_of(session))
        assert supervisor.wait(60) == 0, campaign.errors()
    campaign.check()
    with campaign.store() as store:
        assert [len(store.sessions(task=uid)) for uid in uids] == [1, 1]
        assert [store.task(uid).charged for uid in uids] == [0, 0]


def test_a_runner_killed_while_it_sweeps_holds_nothing_up(tmp_path: Path) -> None:
    """What an agent left behind is ended, and its task is completed, when the runner dies between end and sweep."""
    campaign = Campaign(tmp_path)
    stubborn = "sh -c 'trap \"\" TERM HUP INT; while :; do sleep 0.1; done' & echo done"
    campaign.add(description=stubborn)
    with campaign.supervisor("--drain") as supervisor:
        (session,) = until(campaign.live, "a session")
        until(lambda: campaign.has_ended(session), "the record of its end")
        kill(campaign.runner_of(session))
        assert supervisor.wait(60) == 0, campaign.errors()
    campaign.check()


def test_a_reboot_loses_nothing(tmp_path: Path, chance: random.Random) -> None:
    """When everything is killed at once, the sessions are found gone, and their tasks are tried again and completed."""
    campaign = Campaign(tmp_path)
    for _ in range(max(1, ROUNDS // 5)):
        campaign.add(4, lines=25)
        with campaign.supervisor() as supervisor:
            campaign.speaking(2)
            kill(supervisor.pid)
            supervisor.wait()
            for session in campaign.live():
                campaign.more_runs[session.task] += 1
            kill_all(campaign.left())
            campaign.kills += 1
    campaign.drain()
    campaign.check()


@pytest.mark.parametrize("where", ["idle", "idle in transaction"])
def test_a_frozen_supervisor_is_fenced(tmp_path: Path, postgres_url: str, where: str) -> None:
    """A supervisor that is frozen past its lease loses its sessions to another, and finishes nothing when it thaws."""
    campaign = Campaign(tmp_path, store_url=postgres_url, schema=f"chaos_{time.time_ns()}")
    with campaign.supervisor("--lease", "3") as frozen:
        campaign.add(4, lines=120)
        campaign.speaking(4)
        _freeze(frozen, postgres_url, where)
        with campaign.supervisor("--lease", "15") as other:  # longer than a transaction that hangs may hold it up
            until(lambda: _adopted(campaign), "a takeover")
            frozen.send_signal(signal.SIGCONT)
            assert frozen.wait(20) != 0
            until(lambda: not campaign.ask(lambda store: store.tasks(OPEN)), "the end of all tasks")
            other.terminate()
            assert other.wait(20) == 0, campaign.errors()
    assert "LeaseLost" in campaign.errors()
    campaign.check()


def _freeze(supervisor: subprocess.Popen[bytes], url: str, where: str) -> None:
    """Stop it outside of a transaction, or in the middle of one."""
    sql = "SELECT state, count(*) FROM pg_stat_activity WHERE backend_type = 'client backend' AND pid <> %s GROUP BY 1"
    with psycopg.connect(url, autocommit=True) as server:
        while True:
            supervisor.send_signal(signal.SIGSTOP)
            states = {state for state, _ in server.execute(sql, (server.info.backend_pid,)).fetchall()}
            if where in states and (where != "idle" or states == {"idle"}):
                return
            supervisor.send_signal(signal.SIGCONT)


def _adopted(campaign: Campaign) -> bool:
    """Whether a session was taken over."""
    sessions = campaign.ask(lambda store: store.sessions())
    return any(int(one.id.rpartition(".")[2]) < one.epoch for one in sessions)


def test_a_database_locked_for_seconds_delays_and_loses_nothing(tmp_path: Path) -> None:
    """While another holds the write lock nothing is committed; afterwards everything is, once."""
    campaign = Campaign(tmp_path)
    campaign.add(4, lines=30)
    with campaign.supervisor("--drain") as supervisor:
        campaign.speaking(2)
        with contextlib.closing(apsw.Connection(str(campaign.home.db))) as other:
            other.set_busy_timeout(10_000)
            other.execute("BEGIN IMMEDIATE")
            with pytest.raises(subprocess.TimeoutExpired):
                supervisor.wait(1.5)
            other.execute("ROLLBACK")
        assert supervisor.wait(60) == 0, campaign.errors()
    campaign.check()


def test_a_full_disk_delays_and_loses_nothing(tmp_path: Path) -> None:
    """While no space is left under the home nothing is lost or doubled; when there is some again, all is completed."""
    script = "i=0; while [ $i -lt 20 ]; do echo line $i; i=$((i + 1)); sleep 0.05; done; echo the end"
    with small_disk(tmp_path / "disk", kilobytes=8000) as disk:
        campaign = Campaign(disk)
        campaign.add(6, description=script)
        with campaign.supervisor("--drain") as supervisor:
            spoke = campaign.speaking(2)
            with (disk / "filler").open("wb", buffering=0) as filler, contextlib.suppress(OSError):
                while filler.write(b"x" * 4096):
                    pass
            until(lambda: all(map(campaign.has_ended, spoke)), "the end of those agents")
            with pytest.raises(subprocess.TimeoutExpired):
                supervisor.wait(1)
            (disk / "filler").unlink()
            assert supervisor.wait(60) == 0, campaign.errors()
        campaign.check()


@pytest.mark.parametrize("point", ["stopping", "stopped", "concluding", "settling"])
def test_why_a_session_was_ended_outlives_us(tmp_path: Path, point: str) -> None:
    """A session that exceeded its budget fails for that, with one receipt and one alert, wherever we are killed."""
    campaign = Campaign(tmp_path)
    (uid,) = campaign.add(lines=1000, pause=0.05, terms=Terms(budget=Budget(max_seconds=1)))
    campaign.killed_at(point)
    campaign.drain()
    until(lambda: not campaign.left(), "the end of all agents")
    with campaign.store() as store:
        audit(store)
        (receipt,) = store.receipts(task=uid)
        events = [entry.event for entry in store.chain(uid)]
    assert receipt.result is Result.TIMEOUT
    assert receipt.reason.endswith("more than its budget of 1 s")
    assert [event.alert.value for event in events if isinstance(event, AlertRaised)] == ["budget_exceeded"]
