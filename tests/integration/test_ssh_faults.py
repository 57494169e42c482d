"""What can befall an ssh host while agents run on it: frozen, rebooted, cut off in the middle of a verb, full."""

from __future__ import annotations

import asyncio
import contextlib
import os
import random
import signal
import socket
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from fleet.errors import NotStarted, TransportError
from fleet.hosts.facts import HostState
from fleet.hosts.session import HostedSession, Started
from fleet.hosts.watcher import Watcher
from tests.support.disks import small_disk
from tests.support.followers import lines_of, running
from tests.support.leftovers import LEFT
from tests.support.session_host import LEFT_SECONDS, SessionHost, do, kill, lives, processes_with, until
from tests.support.sshd import Sshd, sshd

ROUNDS = 6


@pytest.fixture(name="server")
def to_be_broken() -> Iterator[Sshd]:
    """A server of its own for each test."""
    with sshd() as server:
        yield server


@pytest.fixture(name="host")
def over_there(server: Sshd, tmp_path: Path) -> Iterator[SessionHost]:
    """A place for sessions over there; nothing of them may be left at the end."""
    host = SessionHost(tmp_path / "s", ("sh",), server.shared)
    host.root.mkdir()
    yield host
    LEFT.end_within(LEFT_SECONDS, host.root)


def test_a_stop_ends_the_far_processes(host: SessionHost) -> None:
    """A stop ends the agent over there and all it started, not a client here."""
    session = host.started("(setsid sleep 1000 &); sleep 1000 & wait")
    agent = do(session.start()).pid
    stopped = do(session.stop(grace_seconds=1))
    assert agent in {one.pid for one in stopped.killed}
    assert len(stopped.killed) == 3
    assert [one.pid for one in stopped.killed if lives(one.pid)] == []


def test_a_frozen_host(server: Sshd) -> None:
    """A host that stops answering in the middle is an error after its keepalives, and is used again once it answers."""
    transport = server.transport(alive_seconds=1)
    assert do(transport.run(["true"])).code == 0
    (connection,) = server.connections()

    async def scene() -> None:
        os.kill(connection, signal.SIGSTOP)
        began = time.monotonic()
        with pytest.raises(TransportError):
            await transport.run(["true"])
        assert time.monotonic() - began < 15

    try:
        do(scene())
        assert do(transport.run(["true"])).code == 0
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.kill(connection, signal.SIGCONT)


@pytest.mark.parametrize("size", [0, 10_000_000])
def test_a_frozen_host_holds_nobody(server: Sshd, size: int) -> None:
    """Who gives up on a host that does not answer is free at once, however much was to be sent to it."""
    assert do(server.shared.run(["true"])).code == 0
    (connection,) = server.connections()

    async def scene() -> float:
        began = time.monotonic()
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.5):
                await server.shared.run(["true"], stdin=bytes(size))
        return time.monotonic() - began

    os.kill(connection, signal.SIGSTOP)
    try:
        assert do(scene()) < 5
    finally:
        os.kill(connection, signal.SIGCONT)


def rebooted(host: SessionHost, server: Sshd, session: HostedSession) -> None:
    """All processes gone, none of the kernel's numbers the same: what a reboot leaves of a session."""
    server.stop()
    for pid in processes_with(os.fsencode(session.directory)):
        kill(pid)
    until(lambda: not processes_with(os.fsencode(session.directory)))
    boot = Path("/proc/sys/kernel/random/boot_id").read_text().strip()
    for name in ("claim", "pid"):
        file = host.file(session, name)
        file.write_text(file.read_text().replace(boot, "11111111-2222-3333-4444-555555555555"))
    server.start()


def test_a_rebooted_host(server: Sshd, host: SessionHost) -> None:
    """After a reboot the session is gone, its last words are kept, and a stranger with the agent's number is safe."""
    session = host.started("echo before; exec sleep 1000")
    agent = do(session.start()).pid
    until(lambda: host.file(session, "stdout").stat().st_size)
    rebooted(host, server, session)
    stranger = subprocess.Popen(["sleep", "1000"], start_new_session=True)
    try:
        file = host.file(session, "pid")
        file.write_text(file.read_text().replace(str(agent), str(stranger.pid), 1))
        assert do(session.observe()).state is HostState.GONE
        assert do(session.sweep(grace_seconds=0)).killed == ()
        assert stranger.poll() is None
        assert do(session.exit()) is None
        assert [line.data for line in do(session.read(0, ended=True)).lines] == [b"before"]
    finally:
        stranger.kill()
        stranger.wait()
    do(session.forget(stdout_bytes=7, stderr_bytes=0))
    assert do(session.observe()).state is HostState.ABSENT


def test_a_start_that_is_cut_anywhere(server: Sshd, host: SessionHost) -> None:
    """However a start is cut off, the agent runs once or never will, and it is known which when the host answers."""

    async def cut_off(session: HostedSession, after: float) -> Started | BaseException:
        async def cut() -> None:
            await asyncio.sleep(after)  # the point is arbitrary on purpose
            server.cut()

        started, _ = await asyncio.gather(session.start(), cut(), return_exceptions=True)
        return started

    for round_ in range(ROUNDS):
        session = host.prepared(f"echo x >>ran{round_}; exec sleep 1000")
        do(cut_off(session, random.Random(round_).uniform(0, 0.12)))
        with contextlib.suppress(NotStarted):
            do(session.start())
        state = host.settled(session).state
        if state is HostState.RUNNING:
            assert host.said(f"ran{round_}") == "x\n"
            do(session.stop(grace_seconds=1))
        else:
            assert state is HostState.ABANDONED
        assert host.file(session, "../" + f"ran{round_}").exists() == (state is HostState.RUNNING)


def test_a_put_that_is_cut_anywhere(server: Sshd, tmp_path: Path) -> None:
    """However a put is cut off, the old file or the new is there, whole, and no other."""
    path, old, new = tmp_path / "box" / "file", b"o" * 3_000_000, b"n" * 3_000_000

    async def cut_off(after: float) -> None:
        async def cut() -> None:
            await asyncio.sleep(after)  # the point is arbitrary on purpose
            server.cut()

        await asyncio.gather(server.shared.put(str(path), new), cut(), return_exceptions=True)

    for round_ in range(ROUNDS):
        do(server.shared.put(str(path), old))
        do(cut_off(random.Random(round_).uniform(0, 0.1)))
        assert path.read_bytes() in (old, new)
        until(lambda: [each.name for each in path.parent.iterdir()] == ["file"], "the end of the far side")


def test_a_full_disk_over_there(server: Sshd, tmp_path: Path) -> None:
    """An agent that fills its disk is followed to its end and its record is there; other sessions are not harmed."""
    with small_disk(tmp_path / "disk", kilobytes=400) as place:
        host = SessionHost(place, ("sh",), server.shared)
        calm = host.started("echo one; until [ -e go ]; do sleep 0.02; done; exit 3", cwd=str(tmp_path))
        greedy = host.started("cat /dev/zero; exit 4", cwd="/")

        async def scene() -> list[int]:
            async with running(Watcher(server.shared, str(place))) as watcher:
                followed = [watcher.follow(session, cursor=0, requests=0) for session in (greedy, calm)]
                await lines_of(followed[0])
                (tmp_path / "go").touch()
                await lines_of(followed[1])
                records = [await each.exit() for each in followed]
                return [record.code for record in records if record]

        assert do(scene()) == [4, 3]
        host.nothing_left()


def test_fifty_hosts_and_one_is_lost() -> None:
    """Of fifty ways to hosts one leads into the dark: the others do not wait for it."""
    with sshd(options={"MaxStartups": "200"}) as server, socket.socket() as silent:
        silent.bind(("127.0.0.1", 0))
        silent.listen()
        near = [server.transport(sockets=f"s{place}") for place in range(49)]
        lost = server.transport(port=silent.getsockname()[1], connect_seconds=60)

        async def all_of_them() -> None:
            done = await asyncio.gather(*(each.run(["true"]) for each in near))
            assert {each.code for each in done} == {0}

        async def scene() -> None:
            await all_of_them()
            waiting = asyncio.create_task(lost.run(["true"]))
            await asyncio.sleep(0)
            await all_of_them()
            assert not waiting.done()
            waiting.cancel()
            await asyncio.gather(waiting, return_exceptions=True)

        do(scene())
        assert len(server.connections()) == 49
