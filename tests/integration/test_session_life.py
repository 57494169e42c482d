"""The life of a session: started once, observed truthfully, ended with a record; under each shell."""

from __future__ import annotations

import asyncio
import os
import signal
from pathlib import Path

import pytest

from fleet.errors import Conflict, Fenced, NotStarted, TransportError
from fleet.hosts.facts import Cause, HostState, Observed
from fleet.hosts.launch_file import Rules
from fleet.hosts.session import HostedSession, Started
from fleet.model.launch import Launch
from tests.support.session_fixtures import under_each_shell, under_sh  # noqa: F401  # fixtures
from tests.support.session_host import QUICK, SessionHost, do, lives, processes_with, stat_of, until

ROUNDS = 6


def test_a_session_from_beginning_to_end(host: SessionHost) -> None:
    """Absent, prepared, running, exited: each state is told, with pid, code, sizes, idle time and boot."""
    session = host.session()
    assert do(session.observe()).state is HostState.ABSENT
    script = "echo hello; echo oops >&2; until [ -e go ]; do sleep 0.05; done; exit 7"
    do(session.prepare(Launch(argv=("/bin/sh", "-c", script), cwd=str(host.root)), QUICK))
    assert do(session.observe()).state is HostState.PREPARED
    started = do(session.start())
    assert lives(started.pid)
    seen = until(lambda: s if (s := do(session.observe())).stderr_bytes else None)
    assert isinstance(seen, Observed)
    assert (seen.state, seen.pid, seen.stdout_bytes, seen.stderr_bytes) == (HostState.RUNNING, started.pid, 6, 5)
    assert seen.runner_lives
    assert seen.boot
    assert 0 <= seen.idle_ms < 20_000
    (host.root / "go").touch()
    seen = host.ended(session)
    assert seen.state is HostState.EXITED
    assert seen.exit is not None
    assert (seen.exit.code, seen.exit.signal, seen.exit.cause) == (7, None, Cause.EXIT)
    assert abs(seen.exit.ended_at - seen.now) < 20_000
    assert do(session.stderr_tail()) == b"oops\n"
    assert do(session.stderr_tail(3)) == b"ps\n"


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGKILL, signal.SIGINT])
def test_a_signal_is_recorded(host: SessionHost, number: signal.Signals) -> None:
    """An agent that a signal ends has that signal in its record."""
    session = host.session()
    do(session.prepare(Launch(argv=("sleep", "1000"), cwd="/"), QUICK))
    os.kill(do(session.start()).pid, number)
    record = host.ended(session).exit
    assert record is not None
    assert record.signal == number.name


def test_the_agent_is_apart_and_fresh(host: SessionHost) -> None:
    """It leads a process session of its own, no signal is ignored, and no pipe of ours is open in it."""
    session = host.started("exec sleep 1000")
    pid = do(session.observe()).pid
    assert pid is not None
    until(lambda: int(stat_of(pid)[3]) == pid)
    until(lambda: "sleep" in Path(f"/proc/{pid}/cmdline").read_text().split("\0")[0])
    status = Path(f"/proc/{pid}/status").read_text().splitlines()
    assert [line.split()[1] for line in status if line.startswith("SigIgn")] == ["0" * 16]
    assert sorted(os.listdir(f"/proc/{pid}/fd")) == ["0", "1", "2"]
    assert os.readlink(f"/proc/{pid}/fd/0") == "/dev/null"
    runner = host.runner(session)
    assert int(stat_of(runner)[3]) == runner
    assert f"FLEET_SESSION={session.session}".encode() not in Path(f"/proc/{runner}/environ").read_bytes()
    do(session.stop(grace_seconds=1))


def test_the_environment_is_small(host: SessionHost, monkeypatch: pytest.MonkeyPatch) -> None:
    """An agent gets what its launch names and a few harmless words, and nothing else of the supervisor's own."""
    monkeypatch.setenv("SUPERVISORS_OWN", "private")
    session = host.started("env; command -v fleet; command -v bd", env={"GIVEN": "it's\nhere", "PATH": "/usr/bin:/bin"})
    host.ended(session)
    text = host.file(session, "stdout").read_text()
    assert "private" not in text
    assert "GIVEN=it's\nhere\n" in text
    assert f"FLEET_SESSION={session.session}\n" in text
    assert f"PATH={session.directory}/bin:/usr/bin:/bin\n" in text
    assert text.endswith(f"{session.directory}/bin/fleet\n{session.directory}/bin/bd\n")


def test_a_program_that_is_not_there(host: SessionHost) -> None:
    """A program that cannot be found is an exit of 127 with a word on stderr: a value, not an error."""
    session = host.session()
    do(session.prepare(Launch(argv=("no-such-coder",), cwd="/"), QUICK))
    do(session.start())
    record = host.ended(session).exit
    assert record is not None
    assert record.code == 127
    assert b"not found" in do(session.stderr_tail())


def test_a_directory_that_is_not_there(host: SessionHost) -> None:
    """A session whose directory is missing never begins, and says why."""
    session = host.prepared("true", cwd="/no/such/place")
    with pytest.raises(NotStarted, match="cannot enter the directory /no/such/place"):
        do(session.start())
    assert do(session.observe()).state is HostState.ABANDONED


def test_two_starts_run_once(host: SessionHost) -> None:
    """Of starts that race, one runs the agent, and all answer with the same process."""

    async def race(session: HostedSession) -> list[Started]:
        return await asyncio.gather(*(session.start() for _ in range(3)))

    for round_ in range(ROUNDS // 2):
        session = host.prepared(f"echo x >>ran{round_}; exec sleep 1000")
        assert len({started.pid for started in do(race(session))}) == 1
        assert host.said(f"ran{round_}") == "x\n"
        assert do(session.start()).pid == do(session.observe()).pid
        do(session.stop(grace_seconds=1))
        assert host.said(f"ran{round_}") == "x\n"


def test_start_and_abandon_have_one_winner(host: SessionHost) -> None:
    """When a start and a rescuer race, either the agent runs or it never will, and both know which."""

    async def race(session: HostedSession, head_start: float) -> tuple[Started | BaseException, bool | BaseException]:
        async def abandon() -> bool:
            await asyncio.sleep(head_start)  # not to wait for anything: to meet the start at every point of its way
            return await session.abandon()

        return await asyncio.gather(session.start(), abandon(), return_exceptions=True)

    for round_ in range(ROUNDS):
        session = host.prepared("exec sleep 1000")
        started, abandoned = do(race(session, round_ * 0.006))
        state = do(session.observe()).state
        assert isinstance(abandoned, bool)
        if abandoned:
            assert isinstance(started, NotStarted)
            assert state is HostState.ABANDONED
            assert processes_with(f"FLEET_SESSION_DIR={session.directory}".encode(), files=("environ",)) == []
        else:
            assert isinstance(started, Started), started
            assert state is HostState.RUNNING
        do(session.stop(grace_seconds=1))


def test_observers_of_a_start(host: SessionHost) -> None:
    """Whoever looks while a session starts sees it prepared, starting or running, and never an end."""

    async def scene(session: HostedSession) -> set[HostState]:
        async def look(begin: float) -> HostState:
            await asyncio.sleep(begin)  # not to wait for anything: to look at every point of the way
            return (await session.observe()).state

        looks = asyncio.gather(*(look(step * 0.005) for step in range(15)))
        await session.start()
        return set(await looks)

    session = host.prepared("exec sleep 1000")
    assert do(scene(session)) <= {HostState.PREPARED, HostState.STARTING, HostState.RUNNING}
    do(session.stop(grace_seconds=1))


def test_what_is_abandoned_never_starts(host: SessionHost) -> None:
    """A start that comes after the rescuer is told so; also in a directory that nobody had prepared."""
    session = host.prepared("touch ran")
    assert do(session.abandon())
    with pytest.raises(NotStarted, match="given up"):
        do(session.start())
    late = host.session()
    assert do(late.abandon())
    do(late.prepare(Launch(argv=("touch", "ran"), cwd=str(host.root)), QUICK))
    with pytest.raises(NotStarted):
        do(late.start())
    assert not (host.root / "ran").exists()


def test_abandon_loses_to_what_runs(host: SessionHost) -> None:
    """A session that has begun cannot be given up."""
    session = host.started("exec sleep 1000")
    assert not do(session.abandon())
    assert do(session.observe()).state is HostState.RUNNING
    do(session.stop(grace_seconds=1))


def test_lower_epochs_are_refused(host: SessionHost) -> None:
    """Once a higher epoch was here, no verb of a lower one does anything."""
    old = host.prepared("exec sleep 1000")
    new = host.session(epoch=7, name=old.session)
    assert do(new.observe()).epoch == 7
    for verb in (
        old.start,
        old.observe,
        old.abandon,
        lambda: old.stop(grace_seconds=0),
        lambda: old.sweep(grace_seconds=0),
        lambda: old.forget(stdout_bytes=0, stderr_bytes=0),
    ):
        with pytest.raises(Fenced, match="epoch 7"):
            do(verb())
    assert do(new.observe()).state is HostState.PREPARED
    do(new.start())
    with pytest.raises(Fenced):
        do(old.stop(grace_seconds=0))
    assert do(new.observe()).state is HostState.RUNNING
    do(new.stop(grace_seconds=1))


def test_an_unprepared_session_cannot_start(host: SessionHost) -> None:
    """Starting what was never prepared is an error, and makes nothing."""
    session = host.session()
    with pytest.raises(TransportError):
        do(session.start())
    assert not host.file(session, ".").exists()


def test_the_slot_is_free_when_the_leader_ends(host: SessionHost) -> None:
    """The record is written at once although a grandchild holds stdout open; then the sweep ends that, and says so."""
    stubborn = "sh -c 'trap : TERM; echo $$ >child; while :; do sleep 0.1; done'"
    session = host.started(f"{stubborn} & until [ -s child ]; do sleep 0.02; done; exit 3")
    record = until(lambda: do(session.exit()))
    assert record is not None
    assert record.code == 3
    child = int(host.said("child"))
    seen = host.ended(session)
    assert not lives(child)
    assert child in {one.pid for one in seen.killed}
    assert {one.signal for one in seen.killed if one.pid == child} == {"KILL"}


def test_processes_can_be_kept(host: SessionHost) -> None:
    """With keep_processes the agent's own end leaves its children alone; a sweep by request ends them."""
    rules = Rules(keep_processes=True, use_cgroup=False)
    session = host.started("sleep 1000 & echo $! >child", rules)
    assert host.ended(session).killed == ()
    child = int(host.said("child"))
    assert lives(child)
    with pytest.raises(Conflict, match="live"):
        do(session.forget(stdout_bytes=0, stderr_bytes=0))
    swept = do(session.sweep(grace_seconds=1))
    assert [one.pid for one in swept.killed] == [child]
    assert not lives(child)


def test_a_torn_record_is_no_record(host: SessionHost) -> None:
    """An exit file without its last line is taken for absent: the session is gone, not ended with a code."""
    session = host.started("exit 0")
    host.ended(session)
    until(lambda: not do(session.observe()).runner_lives)
    for torn in (b"", b"code=0\n", b"code=0\nended=5\ncause=exit\n"):
        host.file(session, "exit").write_bytes(torn)
        assert do(session.exit()) is None
        assert do(session.observe()).state is HostState.GONE


def test_sweep_does_not_stop_an_agent(one_host: SessionHost) -> None:
    """A sweep of a session whose agent lives is refused."""
    session = one_host.started("exec sleep 1000")
    with pytest.raises(Conflict, match="still runs"):
        do(session.sweep(grace_seconds=0))
    do(session.stop(grace_seconds=1))
