"""What a session survives: the death of its launcher, its runner, its parent; what is told of it stays true."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from fleet.errors import NotStarted
from fleet.hosts.facts import HostState
from fleet.hosts.launch_file import Rules, render_secrets
from fleet.hosts.session import HostedSession
from tests.support import session_parent
from tests.support.session_fixtures import under_each_shell, under_sh  # noqa: F401  # fixtures
from tests.support.session_host import SessionHost, do, kill, lives, processes_with, until

RAN = "echo x >>{}; exec sleep 1000"
ROUNDS = 5


def launcher(host: SessionHost, session: HostedSession) -> subprocess.Popen[bytes]:
    """The process that a transport would run to start a session."""
    argv = [*host.shell, f"{session.directory}/runner.sh", "start", session.directory, "1"]
    process = subprocess.Popen(
        argv, stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True
    )
    assert process.stdin is not None
    process.stdin.write(render_secrets({}))
    process.stdin.close()
    return process


def marked(session: HostedSession) -> list[int]:
    """The processes that carry its marker."""
    return processes_with(f"FLEET_SESSION_DIR={session.directory}\0".encode(), files=("environ",))


def the_truth_is_told(host: SessionHost, session: HostedSession, ran: str) -> None:
    """What is observed agrees with whether the agent ran; what did not start can be started or given up."""
    while (state := host.settled(session).state) is HostState.PREPARED:
        do(session.abandon())  # it may lose: a late runner is quicker
    if state is HostState.RUNNING:
        assert host.said(ran) == "x\n"
        do(session.stop(grace_seconds=1))
    else:
        assert state is HostState.ABANDONED
        until(lambda: not marked(session), "the end of the agent's shell")
        assert not (host.root / ran).exists()
        with pytest.raises(NotStarted):
            do(session.start())


def test_a_launcher_killed_anywhere(host: SessionHost) -> None:
    """kill -9 of the launcher at any point leaves a session that runs or one that never will, and it is known which."""
    for round_ in range(ROUNDS):
        ran = f"ran{round_}"
        session = host.prepared(RAN.format(ran))
        process = launcher(host, session)
        time.sleep(random.Random(round_).uniform(0, 0.05))  # the point is arbitrary on purpose
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()
        the_truth_is_told(host, session, ran)


def test_a_runner_killed_anywhere(host: SessionHost) -> None:
    """kill -9 of the runner as soon as it has the claim, or a little later: again one or the other."""
    for round_ in range(ROUNDS):
        ran = f"ran{round_}"
        session = host.prepared(RAN.format(ran))
        process = launcher(host, session)
        claim = host.file(session, "claim")
        until(claim.exists)
        time.sleep(round_ * 0.003)  # the point is arbitrary on purpose
        kill(host.runner(session))
        process.wait()
        the_truth_is_told(host, session, ran)


def test_a_claim_of_the_dead(host: SessionHost) -> None:
    """A claim whose runner is dead and that has no agent is settled by looking: it never ran."""
    session = host.prepared("touch ran")
    host.file(session, "claim").write_text(f"runner {os.getpid()} 1 {do(session.observe()).boot} 1\n")
    seen = do(session.observe())
    assert seen.state is HostState.ABANDONED
    assert "before the agent began" in seen.reason
    assert not (host.root / "ran").exists()


def test_an_agent_outlives_its_runner(host: SessionHost) -> None:
    """With a dead runner a living agent is running; when it ends without a record it is gone, not exited."""
    session = host.started("exec sleep 1000")
    pid = do(session.start()).pid
    kill(host.runner(session))
    until(lambda: not lives(host.runner(session)))
    seen = do(session.observe())
    assert (seen.state, seen.runner_lives) == (HostState.RUNNING, False)
    kill(pid)
    until(lambda: not lives(pid))
    seen = do(session.observe())
    assert (seen.state, seen.exit) == (HostState.GONE, None)


def test_a_stop_without_a_runner(host: SessionHost) -> None:
    """An agent whose runner is dead can be stopped all the same."""
    session = host.started("sleep 1000 & wait")
    kill(host.runner(session))
    stopped = do(session.stop(grace_seconds=0.2))
    assert len(stopped.killed) == 2
    assert stopped.left == 0
    assert stopped.observed.state is HostState.GONE


def test_signals_do_not_end_the_runner(host: SessionHost) -> None:
    """HUP, INT and TERM to the runner change nothing: it waits on, and records the agent's true code."""
    session = host.started("until [ -e go ]; do sleep 0.02; done; exit 9")
    runner = host.runner(session)
    for number in (signal.SIGHUP, signal.SIGINT, signal.SIGTERM, signal.SIGUSR1, signal.SIGPIPE):
        os.kill(runner, number)
    assert do(session.observe()).runner_lives
    (host.root / "go").touch()
    record = host.ended(session).exit
    assert record is not None
    assert record.code == 9


def test_a_sweep_that_was_cut_short(one_host: SessionHost) -> None:
    """A runner killed in the middle of its sweep: the sweep by request ends the rest and completes the record."""
    session = one_host.started("(trap '' TERM; echo $$ >child; exec sleep 1000) & until [ -s child ]; do :; done")
    until(lambda: do(session.exit()))
    kill(one_host.runner(session))
    until(lambda: not lives(one_host.runner(session)))
    swept = do(session.sweep(grace_seconds=0.1))
    assert [one.signal for one in swept.killed] == ["KILL"]
    record = do(session.exit())
    assert record is not None
    assert record.swept


def test_the_cap_holds_without_a_runner(one_host: SessionHost) -> None:
    """What watches the output goes on when the runner was killed."""
    rules = Rules(most_output_bytes=1000, look_seconds=1, grace_ms=100, use_cgroup=False)
    session = one_host.started("until [ -e go ]; do sleep 0.02; done; while :; do seq 100; sleep 0.02; done", rules)
    pid = do(session.start()).pid
    kill(one_host.runner(session))
    (one_host.root / "go").touch()
    until(lambda: not lives(pid))
    assert one_host.file(session, "cause").read_text() == "cap\n"


@pytest.mark.parametrize("what", ["start", "boot"])
def test_a_number_alone_is_no_identity(host: SessionHost, what: str) -> None:
    """A living process with the agent's number but another start or boot is not the agent, and is not touched."""
    session = host.started("exit 0")
    host.ended(session)
    until(lambda: not do(session.observe()).runner_lives)
    host.file(session, "exit").unlink()
    stranger = subprocess.Popen(["sleep", "1000"], start_new_session=True)
    try:
        start = Path(f"/proc/{stranger.pid}/stat").read_text().rpartition(")")[2].split()[19]
        boot = do(session.observe()).boot
        word = {"start": (str(int(start) - 1), boot), "boot": (start, "another-boot")}[what]
        host.file(session, "pid").write_text(f"agent {stranger.pid} {' '.join(word)} 1\n")
        assert do(session.observe()).state is HostState.GONE
        assert do(session.stop(grace_seconds=0)).killed == ()
        assert stranger.poll() is None
    finally:
        stranger.kill()
        stranger.wait()


def test_an_agent_outlives_its_parent(host: SessionHost) -> None:
    """A supervisor killed in the middle loses nothing: another reads on at its cursor, every line exactly once."""
    count = 400
    script = f"i=0; while [ $i -lt {count} ]; do i=$((i+1)); echo line $i; [ $((i % 40)) != 0 ] || sleep 0.02; done"
    argv = [sys.executable, session_parent.__file__, str(host.root), "p.1", script, *host.shell]
    with subprocess.Popen(argv, stdout=subprocess.PIPE, start_new_session=True) as parent:
        assert parent.stdout is not None
        read = [parent.stdout.readline() for _ in range(count // 4)]
        os.killpg(parent.pid, signal.SIGKILL)
        read += parent.stdout.readlines()
    read = [line for line in read if line.endswith(b"\n")]  # a commit that was cut in the middle is none
    cursor = int(read[-1].split()[0])
    session = host.session(epoch=2, name="p.1")
    assert do(session.observe()).state in {HostState.RUNNING, HostState.EXITED}

    async def rest() -> list[str]:
        return [line.data.decode() async for line in session.lines(cursor, every_seconds=0.005)]

    lines = [line.split(b" ", 1)[1].decode().strip() for line in read] + do(rest())
    assert lines == [f"line {number}" for number in range(1, count + 1)]


def test_input_that_is_cut_starts_nothing(one_host: SessionHost) -> None:
    """A launcher whose parent died while it handed over the secrets does not run an agent with half of them."""
    session = one_host.prepared("touch ran", secrets=("TOKEN",))
    argv = ["sh", f"{session.directory}/runner.sh", "start", session.directory, "1"]
    subprocess.run(argv, input=b"TOKEN='abc", check=True, stdout=subprocess.DEVNULL)
    seen = do(session.observe())
    assert seen.state is HostState.ABANDONED
    assert "cut off" in seen.reason
    assert not (one_host.root / "ran").exists()


def test_a_secret_that_is_missing_starts_nothing(one_host: SessionHost) -> None:
    """An agent is not run without a secret that its launch names."""
    session = one_host.prepared("touch ran", secrets=("TOKEN",))
    with pytest.raises(NotStarted, match="TOKEN was not given"):
        do(session.start({"TOKENS": "x"}))
