"""Sessions that are asked of the master of a shared ssh connection: no client, no leak, and a clear end of each."""

from __future__ import annotations

import asyncio
import contextlib
import os
import random
import signal
import socket
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from pathlib import Path

import pytest

from fleet.errors import HostUnfit, TransportError
from fleet.hosts.ssh.connection import private_folder
from fleet.hosts.ssh.mux import DENIED, HELLO, LONGEST_LINE, REQUEST, TERMINATE, VERSION, packet
from fleet.hosts.ssh.transport import SshTransport
from tests.support.session_host import do, lives, processes_with, until
from tests.support.sshd import Sshd, sshd

ROUNDS = 25
Meeting = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]


@pytest.fixture(name="server")
def listening() -> Iterator[Sshd]:
    """A real sshd, and a connection to it."""
    with sshd() as server:
        assert do(server.shared.run(["true"])).code == 0
        yield server


def master_of(server: Sshd) -> int:
    (master,) = processes_with(os.fsencode(server.directory / "s") + b"/", files=("cmdline",))
    return master


def door_of(server: Sshd) -> Path:
    """The socket of its connection."""
    return private_folder(server.directory / "s") / server.address().key


def fds() -> set[int]:
    """What is open in this process; not what it looks with."""
    return {int(name) for name in os.listdir("/proc/self/fd") if os.path.lexists(f"/proc/self/fd/{name}")}


@contextlib.asynccontextmanager
async def in_its_place(server: Sshd, meeting: Meeting) -> AsyncIterator[None]:
    """Another than ssh at the socket."""
    await server.shared.close()
    async with await asyncio.start_unix_server(meeting, door_of(server)):
        yield


async def left(writer: asyncio.StreamWriter) -> None:
    writer.close()
    with contextlib.suppress(OSError):
        await writer.wait_closed()


async def running(server: Sshd, file: Path) -> tuple[asyncio.Task[object], int]:
    """A program over there that would never end, and its number."""
    task = asyncio.create_task(server.shared.run(["sh", "-c", 'echo $$ >"$0"; exec sleep 1000', str(file)]))
    while not file.exists() or not file.read_text():
        await asyncio.sleep(0.01)
    return task, int(file.read_text())


# without a client


def test_a_warm_exchange_starts_no_program_here(server: Sshd, tmp_path: Path) -> None:
    """On a connection that is there, every verb works where ssh could not even be found, and the end of it too."""
    bare = SshTransport(server.address(), server.directory / "s", {"PATH": str(tmp_path)})

    async def scene() -> None:
        assert (await bare.run(["cat"], stdin=b"words")).stdout == b"words"
        await bare.put(f"{tmp_path}/file", b"kept")
        assert await bare.get(f"{tmp_path}/file") == b"kept"
        assert b"".join([chunk async for chunk in bare.stream(["echo", "streamed"])]) == b"streamed\n"
        await bare.unpack(f"{tmp_path}/box", {"a": b"1"}, shared={})
        assert await bare.launch(["echo", "launched"], stdin=b"") in (b"launched\n", b"")

    master = master_of(server)
    do(scene())
    assert (tmp_path / "box" / "a").read_bytes() == b"1"
    assert len(server.connections()) == 1
    do(bare.close())
    until(lambda: not lives(master), "the end of the master")
    assert not door_of(server).exists()
    do(bare.close())  # nobody is there


def test_a_file_is_open_no_longer_than_its_exchange(server: Sshd, tmp_path: Path) -> None:
    """After hundreds of exchanges, some of them cancelled, nothing is open; and no child of ours gets any of it."""
    mark = str(server.directory / "mark")

    async def scene() -> None:
        before = fds()
        task, _ = await running(server, tmp_path / "pid")
        assert len(fds() - before) == 4  # the socket, and our ends of three pipes
        assert [fd for fd in fds() - before if os.get_inheritable(fd)] == []
        await asyncio.gather(*(server.shared.run(["true"]) for _ in range(200)))
        for _ in range(20):
            stream = server.shared.stream(["yes"])
            assert (await anext(stream)).startswith(b"y\ny\n")
            await stream.aclose()  # type: ignore[attr-defined]
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(0.01):
                    await server.shared.run(["sh", "-c", "sleep 1000; true", mark])
        task.cancel()
        await asyncio.wait([task])
        assert fds() == before

    do(scene())
    until(lambda: not processes_with(mark.encode(), files=("cmdline",)), "the end of what was cancelled")
    assert len(server.connections()) == 1


def test_hundreds_at_once(server: Sshd) -> None:
    """Each gets its own answer, whole, on both streams, by one connection."""

    async def one(number: int) -> None:
        script = 'cat; i=0; while [ $i -lt 200 ]; do echo "$0 $i" >&2; i=$((i + 1)); done'
        done = await server.shared.run(["sh", "-c", script, str(number)], stdin=str(number).encode())
        assert done == (0, str(number).encode(), b"".join(b"%d %d\n" % (number, each) for each in range(200)))

    async def scene() -> None:
        await asyncio.gather(*map(one, range(300)))

    do(scene())
    assert len(server.connections()) == 1


def test_much_in_every_direction(server: Sshd) -> None:
    """Twenty megabytes go in while as many come out twice; what is not read over there holds nobody."""
    data = random.Random(0).randbytes(20_000_000)

    async def scene() -> None:
        assert await server.shared.run(["tee", "/dev/stderr"], stdin=data) == (0, data, data)
        assert (await server.shared.run(["true"], stdin=data)).code == 0

    do(scene())


def test_a_long_command(server: Sshd) -> None:
    """The longest that fits arrives whole; a longer one is refused with its length."""
    word = "x" * (LONGEST_LINE - 2000)
    assert do(server.shared.run(["printf", "%s", word])).stdout == word.encode()
    with pytest.raises(TransportError, match="bytes is too long"):
        do(server.shared.run(["true", "x" * LONGEST_LINE]))


# ends


def test_cancelled_at_any_point(server: Sshd) -> None:
    """Whenever an exchange is cancelled, its program ends over there, and the connection is as good as before."""
    master = master_of(server)
    mark = str(server.directory / "mark")

    async def scene() -> None:
        for round_ in range(ROUNDS):
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(random.Random(round_).uniform(0, 0.03)):  # arbitrary on purpose
                    await server.shared.run(["sh", "-c", "sleep 1000; true", mark])

    do(scene())
    until(lambda: not processes_with(mark.encode(), files=("cmdline",)), "the end of the programs")
    assert do(server.shared.run(["true"])).code == 0
    assert master_of(server) == master


def test_a_master_that_is_killed_in_the_middle(server: Sshd, tmp_path: Path) -> None:
    """What ran on its connection is an error, not an end, and is ended over there; the next makes a new connection."""

    async def scene() -> int:
        task, pid = await running(server, tmp_path / "pid")
        os.kill(master_of(server), signal.SIGKILL)
        with pytest.raises(
            TransportError, match=r"cannot reach host 127\.0\.0\.1: the connection broke before the command ended"
        ):
            await task
        return pid

    pid = do(scene())
    until(lambda: not lives(pid), "the end of the far program")
    assert do(server.shared.run(["true"])).code == 0


def test_a_connection_that_is_closed_has_left_its_door(server: Sshd) -> None:
    """A master removes its socket after it has let go of all sessions: it is waited for until it has done so."""

    async def meeting(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(packet(HELLO, VERSION))
        await reader.readexactly(len(packet(HELLO, VERSION) + packet(TERMINATE, REQUEST)))
        await left(writer)
        await asyncio.sleep(0.2)  # as one that is not given the processor
        door_of(server).unlink()

    async def scene() -> None:
        async with in_its_place(server, meeting):
            await server.shared.close()
            assert not door_of(server).exists()
        assert (await server.shared.run(["true"])).code == 0
        assert door_of(server).exists()

    do(scene())


def test_many_at_the_door_of_a_busy_master(server: Sshd) -> None:
    """A master that lets nobody in for a while is waited for, and not taken for one that is gone."""
    master = master_of(server)

    async def scene() -> None:
        with contextlib.ExitStack() as waiting:
            with contextlib.suppress(BlockingIOError):
                while True:
                    each = waiting.enter_context(socket.socket(socket.AF_UNIX))
                    each.setblocking(False)
                    each.connect(str(door_of(server)))
            with pytest.raises(TimeoutError):
                async with asyncio.timeout(0.3):
                    await server.shared.run(["true"])
            patient = asyncio.create_task(server.shared.run(["true"]))
            await asyncio.sleep(0)
            os.kill(master, signal.SIGCONT)
            assert (await patient).code == 0

    os.kill(master, signal.SIGSTOP)
    try:
        do(scene())
    finally:
        os.kill(master, signal.SIGCONT)
    assert master_of(server) == master


def test_a_full_connection() -> None:
    """A stream for which the server has no room waits for some; if there is none in time, it says what to change."""
    with sshd(options={"MaxSessions": "1"}) as server:

        async def scene() -> None:
            held, other = server.shared.stream(["yes"]), server.shared.stream(["yes"])
            await anext(held)
            with pytest.raises(TransportError, match="allows no further session") as caught:
                await anext(server.shared.stream(["yes"]))
            assert "MaxSessions" in caught.value.hint
            waiting = asyncio.ensure_future(anext(other))
            await asyncio.sleep(0)
            await held.aclose()  # type: ignore[attr-defined]
            assert (await waiting).startswith(b"y\n")
            await other.aclose()  # type: ignore[attr-defined]

        do(scene())


# who is at the socket


def test_a_folder_that_others_may_enter(server: Sshd) -> None:
    """A socket that somebody else can have put there is not spoken to, although it answers."""
    (server.directory / "s").chmod(0o755)
    with pytest.raises(TransportError, match="alone"):
        do(server.shared.run(["true"]))


def test_a_master_of_another_version(server: Sshd) -> None:
    """It is told as such, with its version."""

    async def meeting(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(packet(HELLO, VERSION + 1))
        await left(writer)

    async def scene() -> None:
        async with in_its_place(server, meeting):
            with pytest.raises(HostUnfit, match="speaks version 5, not version 4"):
                await server.shared.run(["true"])

    do(scene())


def test_a_master_that_leaves_before_it_is_asked(server: Sshd, tmp_path: Path) -> None:
    """Nothing has happened then: it is asked again, on a new connection, and runs once."""

    async def meeting(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(FileNotFoundError):
            door_of(server).unlink()
        await left(writer)

    async def scene() -> None:
        async with in_its_place(server, meeting):
            assert (await server.shared.run(["sh", "-c", f"echo ran >>{tmp_path}/ran"])).code == 0

    do(scene())
    assert (tmp_path / "ran").read_text() == "ran\n"


@pytest.mark.parametrize(
    ("answer", "said"), [(b"", "the connection ended"), (packet(DENIED, 0, b"not by me"), "not by me")]
)
def test_a_master_that_was_asked_and_does_nothing(server: Sshd, answer: bytes, said: str) -> None:
    """Once it was asked it is not asked again: whether it asked the host is not known."""
    asked = []

    async def meeting(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(packet(HELLO, VERSION))
        hello = packet(HELLO, VERSION)
        assert await reader.readexactly(len(hello)) == hello
        request = await reader.readexactly(int.from_bytes(await reader.readexactly(4)))
        assert await reader.readexactly(3) == b"\0\0\0"  # each with a file
        asked.append(request)
        writer.write(answer)
        await left(writer)

    async def scene() -> None:
        async with in_its_place(server, meeting):
            with pytest.raises(TransportError, match=rf"cannot reach host 127\.0\.0\.1: {said}"):
                await server.shared.run(["true"])

    do(scene())
    assert len(asked) == 1
