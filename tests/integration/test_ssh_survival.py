"""Sessions on ssh workers when something breaks: supervisor, connection, machine. Nothing is lost or doubled."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pytest

from fleet.model import event as ev
from fleet.model.alert import AlertKind
from fleet.model.states import Result, SessionState, Source, TaskState
from fleet.model.terms import Budget, RetryPolicy, Terms
from fleet.projections.inspect import inspect
from fleet.projections.status import status
from tests.support.away import Away
from tests.support.session_host import kill, lives, processes_with, until
from tests.support.sshd import Sshd, slow_sh, sshd

# It says so when another of its kind lives, speaks for a while, and waits for a word to end.
AGENT = """
if [ -e {work}/live ] && kill -0 "$(cat {work}/live)" 2>/dev/null; then echo twice >>{work}/double; fi
echo $$ >{work}/live
echo $FLEET_SESSION >>{work}/runs
i=0
while [ $i -lt {lines} ]; do echo "line $i"; i=$((i + 1)); sleep 0.02; done
while [ ! -e {work}/go ]; do sleep 0.02; done
rm {work}/live
echo the end
"""


@pytest.fixture
def server() -> Iterator[Sshd]:
    """A machine over there, for one test: it is taken away and comes back."""
    with sshd() as server:
        yield server


@pytest.fixture
def away(tmp_path: Path, server: Sshd, monkeypatch: pytest.MonkeyPatch) -> Iterator[Away]:
    """A home with one worker over there that alone can do the task."""
    away = Away(tmp_path, server, monkeypatch)
    away.declare(capabilities=["gpu"])
    (tmp_path / "work").mkdir()
    yield away
    (tmp_path / "work" / "go").touch()  # whatever came of it
    away.close()


def agent(away: Away, *, lines: int = 20, terms: Terms | None = None) -> str:
    """A task whose agent speaks and then waits."""
    script = AGENT.format(work=work(away), lines=lines)
    return away.add(command=script, capabilities=("gpu",), terms=terms or Terms())


def work(away: Away) -> Path:
    return away.far.with_name("work")


def spoken(away: Away, uid: str) -> list[str]:
    return [said["text"] for said in away.said(uid)]


def spoke(away: Away, uid: str, lines: int) -> bool:
    return len(spoken(away, uid)) > lines


def once(away: Away, uid: str, lines: int = 20) -> None:
    """It ran once, every line is here once, and it passed."""
    assert not (work(away) / "double").exists()
    assert (work(away) / "runs").read_text().split() == [away.session(uid)]
    assert spoken(away, uid) == [*(f"line {n}" for n in range(lines)), "the end"]
    task = away.task(uid)
    assert (task.state, task.charged, len(away.store.sessions(task=uid))) == (TaskState.COMPLETED, 0, 1)


def test_the_supervisor_is_killed(away: Away) -> None:
    """After a kill -9 the agent over there runs on; the next supervisor goes on at the very byte."""
    uid = agent(away)
    argv = [sys.executable, "-m", "tests.support.supervised", str(away.home.path)]
    with subprocess.Popen(argv, cwd=Path(__file__).parents[2], env=os.environ) as process:
        until(lambda: "line 5" in spoken(away, uid), "its words")
        process.kill()
    (work(away) / "go").touch()
    away.drain()
    once(away, uid)
    assert away.store.session(away.session(uid)).epoch == 2


def test_what_it_asked_for_while_nobody_was_there(away: Away) -> None:
    """Its supervisor was killed before the agent noted two things, asked a person and ended: the next hears it all."""
    asks = "fleet comment one; fleet comment two; fleet ask 'May I?'"
    script = f"echo begun; while [ ! -e {work(away)}/go ]; do sleep 0.02; done; export FLEET_ANSWER_SECONDS=0; {asks}"
    uid = away.add(command=f"{script}; true", capabilities=("gpu",))
    argv = [sys.executable, "-m", "tests.support.supervised", str(away.home.path)]
    with subprocess.Popen(argv, cwd=Path(__file__).parents[2], env=os.environ) as process:
        until(lambda: "begun" in spoken(away, uid), "its words")
        process.kill()
    (work(away) / "go").touch()
    until((away.far / f".fleet/sessions/{away.session(uid)}/exit").exists, "its end")
    until(lambda: not away.left_there(), "the end of its runner")
    away.drain()
    task = away.task(uid)
    assert (task.state, task.comments) == (TaskState.BLOCKED, 2)
    assert task.block is not None
    assert (task.block.kind, task.block.text) == ("question", "May I?")


def test_the_connection_is_cut_again_and_again(away: Away, server: Sshd) -> None:
    """While it speaks the connection breaks five times: not one line is lost or doubled, and it runs once."""
    uid = agent(away, lines=200)

    async def cut() -> None:
        async with away.supervising():
            for place in range(5):
                await away.until(partial(spoke, away, uid, place * 30), "its words")
                await asyncio.to_thread(server.cut)
            (work(away) / "go").touch()
            await away.until_state(uid, TaskState.COMPLETED)

    asyncio.run(cut())
    once(away, uid, lines=200)


def test_it_finishes_while_its_host_cannot_be_reached(away: Away, server: Sshd) -> None:
    """The host is away for longer than the task may run; the agent ended well in time, and that is what counts."""
    uid = agent(away, terms=Terms(timeout_seconds=4))

    async def gone() -> None:
        async with away.supervising():
            await away.until(lambda: "line 19" in spoken(away, uid), "its words")
            await asyncio.to_thread(server.stop)
            (work(away) / "go").touch()
            await away.until((away.far / f".fleet/sessions/{away.session(uid)}/exit").exists, "its end")
            await away.until(lambda: away.logged("host_silent"), "the silence")
            await asyncio.sleep(4.5)  # longer than it may run, by the supervisor's clock
            assert away.task(uid).state is TaskState.RUNNING
            await asyncio.to_thread(server.start)
            await away.until_state(uid, TaskState.COMPLETED)

    asyncio.run(gone())
    once(away, uid)


def test_a_connection_that_hangs_is_not_an_agent_that_does(away: Away, server: Sshd) -> None:
    """An agent that speaks is not called silent because nothing came through for longer than it may say nothing."""
    script = f"while [ ! -e {work(away)}/go ]; do echo word; sleep 0.1; done"
    uid = away.add(command=script, capabilities=("gpu",), terms=Terms(budget=Budget(idle_seconds=2)))

    async def hang() -> None:
        async with away.supervising():
            await away.until(lambda: "word" in spoken(away, uid), "its words")
            hanging = server.connections()
            for pid in hanging:
                os.kill(pid, signal.SIGSTOP)
            try:
                await asyncio.sleep(4)  # longer than it may say nothing, by the supervisor's clock
            finally:
                for pid in hanging:
                    os.kill(pid, signal.SIGCONT)
            heard = len(spoken(away, uid))
            await away.until(partial(spoke, away, uid, heard), "more of its words")
            (work(away) / "go").touch()
            await away.until_state(uid, TaskState.COMPLETED)

    asyncio.run(hang())
    assert away.store.session(away.session(uid)).outcome == "ok"


def test_a_host_that_was_restarted(away: Away, server: Sshd) -> None:
    """Its processes are gone and left no record: the session is lost, by the transport's fault, and tried again."""
    terms = Terms(retry=RetryPolicy(max_attempts=2, initial_backoff_seconds=0))
    uid = agent(away, terms=terms)

    async def reboot() -> None:
        async with away.supervising():
            await away.until(lambda: "line 19" in spoken(away, uid), "its words")
            await asyncio.to_thread(server.stop)
            for pid in processes_with(str(away.far).encode()):
                kill(pid)
            (work(away) / "go").touch()
            assert away.task(uid).state is TaskState.RUNNING
            await asyncio.to_thread(server.start)
            await away.until_state(uid, TaskState.COMPLETED)

    asyncio.run(reboot())
    first, second = away.store.sessions(task=uid)
    assert (first.state, first.outcome, second.outcome) == (SessionState.LOST, "transient", "ok")
    assert (work(away) / "runs").read_text().split() == [first.id, second.id]
    receipts = away.store.receipts(task=uid)
    assert [(one.result, one.source) for one in receipts][-1] == (Result.PASS, None)
    assert all(one.source is Source.TRANSPORT for one in receipts[:-1])


def test_a_session_is_given_up_by_a_person(away: Away, server: Sshd) -> None:
    """While its host is silent no second attempt starts; by a person's word one does, and the first is swept later."""
    uid = agent(away)

    async def abandon() -> None:
        async with away.supervising() as supervisor:
            await away.until(lambda: "line 19" in spoken(away, uid), "its words")
            await asyncio.to_thread(server.stop)
            await away.until(lambda: away.logged("host_silent"), "the silence")
            assert [one.state for one in away.store.sessions(task=uid)] == [SessionState.RUNNING]
            with away.control() as control:
                control.steer.abandon(uid, "its host is gone")
            await away.until_state(uid, TaskState.QUEUED)
            agents = processes_with(f"FLEET_SESSION={away.session(uid)}".encode())
            assert agents
            await asyncio.to_thread(server.start)
            supervisor.house.hosts.doubt("builder", "it was away")
            await away.until(lambda: not processes_with(f"FLEET_SESSION={away.session(uid)}".encode()), "the sweep")
            (work(away) / "go").touch()
            await away.until_state(uid, TaskState.COMPLETED)

    asyncio.run(abandon())
    first, second = away.store.sessions(task=uid)
    assert (first.outcome, second.outcome) == ("abandoned", "ok")
    assert not (work(away) / "double").exists()


def test_a_host_that_came_back_slow_is_swept_all_the_same(away: Away, server: Sshd) -> None:
    """What was given up is ended in one go, however long its host takes for that: it is not begun again and again."""
    away.set(grace_seconds=0)
    uid = agent(away)

    async def abandon() -> None:
        async with away.supervising():
            await away.until(lambda: "line 19" in spoken(away, uid), "its words")
            await asyncio.to_thread(server.stop)
            await away.until(lambda: away.logged("host_silent"), "the silence")
            with away.control() as control:
                control.steer.abandon(uid, "its host is gone")
            await asyncio.to_thread(slow_sh, server, 1)
            await away.until(
                lambda: not processes_with(f"FLEET_SESSION={away.session(uid)}".encode()), "the sweep", seconds=60
            )
            await away.until(lambda: not away.store.intents(), "the note of it", seconds=60)
            await asyncio.to_thread(server.set_environment, PATH=os.environ["PATH"])
            (work(away) / "go").touch()
            await away.until(lambda: away.task(uid).state is TaskState.COMPLETED, "its end", seconds=60)

    asyncio.run(abandon())
    assert not [each for each in away.logged("not_swept") if "in time" in each["error"]]


def test_a_silent_host_makes_its_session_stale(tmp_path: Path, server: Sshd, monkeypatch: pytest.MonkeyPatch) -> None:
    """After the time that was set a person is told, once; status and inspect say so; nothing else is started."""
    away = Away(tmp_path, server, monkeypatch)
    away.declare(capabilities=["gpu"], stale_after_seconds=5)
    away.declare("other", directory="other", capabilities=["gpu"], stale_after_seconds=5)  # whoever is up first has it
    work(away).mkdir()
    uid = agent(away)

    def told() -> list[ev.AlertRaised]:
        found = [entry.event for entry in away.store.chain(uid)]
        return [event for event in found if isinstance(event, ev.AlertRaised)]

    async def silence() -> None:
        async with away.supervising():
            await away.until(lambda: "line 19" in spoken(away, uid), "its words")
            await asyncio.to_thread(server.stop)
            await away.until(told, "the alert")
            seen = inspect(away.store, uid)
            host = away.store.session(away.session(uid)).host
            assert (seen.state, seen.stale_reason) == ("running", f"host {host} gives no sign of life")
            assert seen.alert is not None
            assert (seen.alert.kind, status(away.store, away.home).counts["stale"]) == ("stale", 1)
            await asyncio.to_thread(server.start)
            await away.until(lambda: not inspect(away.store, uid).stale, "its voice")
            (work(away) / "go").touch()
            await away.until_state(uid, TaskState.COMPLETED)

    asyncio.run(silence())
    once(away, uid)
    assert [event.alert for event in told()] == [AlertKind.STALE]
    away.close()


def test_a_host_that_ends_what_nobody_attends(tmp_path: Path, server: Sshd, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where a host opted in, its agent ends by itself; only well after that another attempt starts, elsewhere."""
    away = Away(tmp_path, server, monkeypatch)
    away.declare(capabilities=["gpu"], dead_man_seconds=6)
    work(away).mkdir()
    uid = agent(away, terms=Terms(retry=RetryPolicy(initial_backoff_seconds=0)))

    async def cut_off() -> None:
        async with away.supervising():
            await away.until(lambda: "line 19" in spoken(away, uid), "its words")
            pid = int((work(away) / "live").read_text())
            await asyncio.sleep(8)  # longer than it lives unattended: it is attended
            assert lives(pid)
            await asyncio.to_thread(server.stop)
            await away.until(lambda: not lives(pid), "its end", seconds=60)
            assert away.task(uid).state is TaskState.RUNNING
            (work(away) / "go").touch()
            await away.until(lambda: away.task(uid).state is TaskState.QUEUED, "the failover", seconds=60)
            await asyncio.to_thread(server.start)
            await away.until(lambda: away.task(uid).state is TaskState.COMPLETED, "another attempt", seconds=60)

    asyncio.run(cut_off())
    first, second = away.store.sessions(task=uid)
    assert (first.state, first.outcome, second.outcome) == (SessionState.LOST, "transient", "ok")
    assert "cause=unattended" in (away.far / f".fleet/sessions/{first.id}/exit").read_text()
    assert not (work(away) / "double").exists()
    away.close()
