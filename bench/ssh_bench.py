"""Sessions over ssh: what a start costs beside one bare `ssh host true`, how late lines come, what a hundred cost.

The machine over there is a real sshd on a loopback port of this one, so both sides share its cores.
"""

from __future__ import annotations

import asyncio
import resource
import statistics
import time
from collections.abc import Awaitable
from pathlib import Path

from bench.report import Figure, percentile
from fleet.hosts.follower import Followed
from fleet.hosts.launch_file import Rules
from fleet.hosts.session import HostedSession
from fleet.hosts.ssh.transport import SshTransport
from fleet.hosts.watcher import Watcher
from fleet.model.launch import Launch
from tests.support.followers import each_line, running
from tests.support.sshd import Sshd, sshd

STARTS = 25
MANY = 100
MANY_SECONDS = 20
RULES = Rules(use_cgroup=False)
SLEEPER = Launch(argv=("sleep", "1000"), cwd="/", prompt="Do the work.\n" * 100, prompt_on_stdin=True)
# One line a second, each with the time at which it was written.
SPEAKER = "i=0; while [ $i -lt {} ]; do i=$((i+1)); date +%s.%N; sleep 1; done"


def run() -> list[Figure]:
    """All figures, on one server."""
    with sshd() as server:
        (server.directory / "r").mkdir()
        starts = asyncio.run(_starts(server, server.shared))
        late, cpu, connections = asyncio.run(_many(server, server.shared))
        asyncio.run(server.shared.close())
    return [starts, late, cpu, connections]


async def _seconds(work: Awaitable[object]) -> float:
    began = time.perf_counter()
    await work
    return time.perf_counter() - began


async def _starts(server: Sshd, transport: SshTransport) -> Figure:
    """A start, prepared and all, in turns with a bare command on the same connection."""
    await transport.run(["true"])
    (socket,) = (server.directory / "s").iterdir()
    bare, ours, ratios = [], [], []
    for number in range(STARTS):
        session = HostedSession(transport, str(server.directory / "r"), f"start.{number}", 1)
        bare.append(await _seconds(_bare(socket)))

        async def begin(session: HostedSession = session) -> None:
            await session.prepare(SLEEPER, RULES, at_start=True)
            await session.start()

        ours.append(await _seconds(begin()))
        ratios.append(ours[-1] / bare[-1])
        await session.stop(grace_seconds=2)
    ratio = statistics.median(ratios)
    measured = f"{ratio:.2f} x ({statistics.median(ours) * 1000:.0f} ms to {statistics.median(bare) * 1000:.0f} ms)"
    what = "ssh: a session prepared and started, to one `ssh host true`, on a warm shared connection"
    return Figure(what, measured, "<= 4 x", ratio <= 4, f"{STARTS} pairs of turns, median of their ratios")


async def _bare(socket: Path) -> None:
    process = await asyncio.create_subprocess_exec("ssh", "-F", "none", "-S", str(socket), "127.0.0.1", "true")
    assert await process.wait() == 0


async def _many(server: Sshd, transport: SshTransport) -> tuple[Figure, Figure, Figure]:
    """A hundred agents that each say a line a second, followed by one watcher."""
    root = str(server.directory / "r")
    speak = Launch(argv=("/bin/sh", "-c", SPEAKER.format(MANY_SECONDS)), cwd="/")
    sessions = [HostedSession(transport, root, f"many.{number}", 1) for number in range(MANY)]
    for session in sessions:
        await session.prepare(speak, RULES)
    late: list[float] = []
    async with running(Watcher(transport, root)) as watcher:
        followed = [watcher.follow(session, cursor=0, requests=0) for session in sessions]
        await asyncio.gather(*(session.start() for session in sessions))
        began, used = time.perf_counter(), _cpu_seconds()
        reading = asyncio.gather(*(_lateness(each, late) for each in followed))
        connections = 0
        while not reading.done():
            connections = max(connections, len(server.connections()))
            await asyncio.wait([reading], timeout=1.0)
        await reading
        share = (_cpu_seconds() - used) / (time.perf_counter() - began) * 100
    assert len(late) == MANY * MANY_SECONDS
    spoken = f"{MANY} sessions that each say a line a second for {MANY_SECONDS} s"
    half = percentile(late, 0.5) * 1000
    tail = f"{percentile(late, 0.99) * 1000:.0f} ms at p99; {spoken}"
    return (
        Figure("ssh: from a line over there to here, p50", f"{half:.0f} ms", "<= 300 ms", half <= 300, tail),
        Figure(f"ssh: {MANY} sessions, our own process", f"{share:.1f} % of a core", "<= 40 %", share <= 40, spoken),
        Figure(f"ssh: {MANY} sessions, connections to the host", str(connections), "<= 2", connections <= 2, ""),
    )


async def _lateness(followed: Followed, late: list[float]) -> None:
    """Both clocks are those of this machine."""
    async for line in each_line(followed):
        late.append(time.time() - float(line.data))


def _cpu_seconds() -> float:
    used = resource.getrusage(resource.RUSAGE_SELF)
    return used.ru_utime + used.ru_stime
