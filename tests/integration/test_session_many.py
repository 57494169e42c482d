"""Many sessions at once: observed by one process, watched over by another, followed by one look; and torn claims."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest

from fleet.errors import Fenced
from fleet.hosts.facts import HostState, Observed
from fleet.hosts.launch_file import Rules
from fleet.hosts.local import LocalTransport
from fleet.hosts.session import HostedSession
from fleet.hosts.transport import Completed
from fleet.hosts.watch import LocalWatch
from tests.support.session_fixtures import under_each_shell, under_sh  # noqa: F401  # fixtures
from tests.support.session_host import SECONDS, SessionHost, do, kill, lives, until

COUNT = 5


class Counting(LocalTransport):
    """This machine, and how many programs were run on it."""

    def __init__(self) -> None:
        super().__init__()
        self.runs = 0

    async def run(self, argv: Sequence[str], *, stdin: bytes = b"") -> Completed:
        self.runs += 1
        return await super().run(argv, stdin=stdin)


def watch_of(host: SessionHost) -> int:
    """The process that watches over the sessions."""
    return int(str(until(lambda: (host.root / ".watch").exists() and (host.root / ".watch").read_text())).split()[0])


def test_many_are_observed_by_one_process(host: SessionHost) -> None:
    """Those who ask at the same moment share one process, and each is told of its own session, or of its own error."""
    host.transport = counting = Counting()
    running, exited = host.started("echo hello; exec sleep 1000"), host.started("exit 3")
    host.ended(exited)
    prepared, absent, fenced = host.prepared("true"), host.session(), host.prepared("true")
    do(host.session(epoch=9, name=fenced.session).observe())
    until(lambda: host.file(running, "stdout").stat().st_size)
    counting.runs = 0

    async def scene() -> list[Observed | BaseException]:
        asked = (one.observe() for one in (absent, running, exited, prepared, fenced))
        return await asyncio.gather(*asked, return_exceptions=True)

    none, first, second, third, shut_out = do(scene())
    assert counting.runs == 1
    assert isinstance(none, Observed)
    assert none.state is HostState.ABSENT
    assert isinstance(first, Observed)
    assert (first.state, first.stdout_bytes, first.runner_lives) == (HostState.RUNNING, 6, True)
    assert isinstance(second, Observed)
    assert second.exit is not None
    assert (second.exit.code, second.pid) == (3, int(host.file(exited, "pid").read_text().split()[1]))
    assert isinstance(third, Observed)
    assert third.state is HostState.PREPARED
    assert isinstance(shut_out, Fenced)
    do(running.stop(grace_seconds=1))


def test_an_observer_that_goes_away_leaves_the_others_an_error_or_an_answer(one_host: SessionHost) -> None:
    """When the one that looks for all is cancelled, the others are not left waiting."""
    sessions = [one_host.prepared("true") for _ in range(3)]

    async def scene() -> list[Observed | BaseException]:
        asked = [asyncio.create_task(one.observe()) for one in sessions]
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        asked[0].cancel()
        return await asyncio.gather(*asked, return_exceptions=True)

    first, *others = do(scene())
    assert isinstance(first, asyncio.CancelledError)
    assert len(others) == 2
    assert do(sessions[1].observe()).state is HostState.PREPARED


def test_one_watch_for_all(host: SessionHost) -> None:
    """Sessions beside each other have one watch; when it is killed the next start brings another; it ends last."""
    rules = Rules(look_seconds=1, grace_ms=100, use_cgroup=False)
    first = host.started("exec sleep 1000", rules)
    watch = watch_of(host)
    second = host.started("exec sleep 1000", rules)
    assert watch_of(host) == watch
    kill(watch)
    until(lambda: not lives(watch))
    third = host.started("exec sleep 1000", rules)
    until(lambda: watch_of(host) != watch)
    assert lives(watch_of(host))
    for session in (first, second, third):
        do(session.stop(grace_seconds=1))
    until(lambda: not (host.root / ".watch").exists(), "the end of the watch")


def test_following_wakes_at_once_and_only_for_news(one_host: SessionHost) -> None:
    """Who follows a session on this machine is woken by a line, a request and an end, and not before."""
    session = one_host.started("until [ -e go ]; do sleep 0.02; done; echo one; fleet comment two; exit 4")

    async def scene() -> tuple[list[bytes], list[str], int]:
        watch = LocalWatch()
        followed = watch.follow(session, cursor=0, requests=0)
        waiting = asyncio.create_task(followed.changed(SECONDS))
        done, _ = await asyncio.wait([waiting], timeout=0.3)
        assert not done  # nothing was new
        (one_host.root / "go").touch()
        await waiting
        lines: list[bytes] = []
        asked: list[str] = []
        cursor = 0
        while (record := await followed.exit()) is None or not record.swept:
            got = await followed.read(cursor)
            lines, cursor = lines + [line.data for line in got.lines], got.cursor
            for request in await followed.requests(len(asked)):
                asked.append(request.text)
                await session.answer(request.number, "noted")
            await followed.changed(SECONDS)
        followed.close()
        return lines + [line.data for line in (await session.read(cursor, ended=True)).lines], asked, record.code

    assert do(scene()) == ([b"one", b"noted"], ["two"], 4)


@pytest.mark.parametrize(
    ("alive", "state"), [(False, HostState.ABANDONED), (True, HostState.STARTING)], ids=["dead", "alive"]
)
def test_a_claim_without_its_line(host: SessionHost, alive: bool, state: HostState) -> None:
    """A claim that was taken this moment is a start under way while its runner lives; else nothing will ever run."""
    session = host.prepared("touch ran")
    runner = subprocess.Popen(["sleep", "1000"], start_new_session=True)
    try:
        stat = Path(f"/proc/{runner.pid}/stat").read_text().rpartition(")")[2].split()
        boot = Path("/proc/sys/kernel/random/boot_id").read_text().strip()
        start = stat[19] if alive else "1"
        host.file(session, f"claim.{runner.pid}").write_text(f"runner {runner.pid} {start} {boot} 1 0 \n")
        host.file(session, "claim").touch()
        assert do(session.observe()).state is state
    finally:
        runner.kill()
        runner.wait()
    assert do(session.abandon())
    assert not (host.root / "ran").exists()


@pytest.mark.parametrize("line", ["", "agent 1 1 another-boot 1\n"], ids=["voided", "of a dead shell"])
def test_a_pid_without_its_line(host: SessionHost, line: str) -> None:
    """An agent begins only after its line is in the file: an empty one of the dead means that none began."""
    session = host.prepared("touch ran")
    host.file(session, "claim").write_text("runner 1 1 another-boot 1 0 \n")
    if line:
        host.file(session, "pid.1").write_text(line)
    host.file(session, "pid").touch()
    seen = do(session.observe())
    assert (seen.state, seen.reason) == (HostState.ABANDONED, "its shell died before the agent began")


IGNORING = """
import asyncio, signal, sys
signal.signal(signal.SIGHUP, signal.SIG_IGN)
from fleet.hosts.local import LocalTransport
from fleet.hosts.session import HostedSession
from fleet.model.launch import Launch
async def main():
    session = HostedSession(LocalTransport(), sys.argv[1], "t.1", 1)
    await session.prepare(Launch(argv=("sleep", "1000"), cwd="/"))
    print((await session.start()).pid)
asyncio.run(main())
"""


def test_what_we_ignore_the_agent_does_not(one_host: SessionHost) -> None:
    """A supervisor that was started to ignore HUP, as by nohup, starts agents that do not."""
    argv = [sys.executable, "-c", IGNORING, str(one_host.root)]
    pid = int(subprocess.run(argv, check=True, stdout=subprocess.PIPE).stdout)
    until(lambda: Path(f"/proc/{pid}/comm").read_text() == "sleep\n")
    status = Path(f"/proc/{pid}/status").read_text().splitlines()
    assert [line.split()[1] for line in status if line.startswith("SigIgn")] == ["0" * 16]
    os.kill(pid, signal.SIGHUP)
    session = HostedSession(one_host.transport, str(one_host.root), "t.1", 1)
    until(lambda: (record := do(session.exit())) and record.swept)


def test_programs_are_kept_once(one_host: SessionHost) -> None:
    """Directories beside each other share what is the same in all of them; forgetting one leaves it to the others."""
    one, two = one_host.started("exit 0"), one_host.started("exit 0")
    for session in (one, two):
        one_host.ended(session)
    until(lambda: not do(one.observe()).runner_lives)
    assert one_host.file(one, "runner.sh").samefile(one_host.file(two, "runner.sh"))
    do(one.forget(stdout_bytes=0, stderr_bytes=0))
    assert os.access(one_host.file(two, "bin/fleet"), os.X_OK)
    assert do(two.observe()).state is HostState.EXITED
