"""The watcher: all sessions of a host over one channel, every line once, whatever happens to the channel."""

from __future__ import annotations

import asyncio
import random
import shutil
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from pathlib import Path

import pytest

from fleet.errors import TransportError
from fleet.hosts.facts import HostState
from fleet.hosts.follower import Follower
from fleet.hosts.lines import Read
from fleet.hosts.local import LocalTransport
from fleet.hosts.session import HostedSession
from fleet.hosts.transport import Transport
from fleet.hosts.watch import LocalWatch
from fleet.hosts.watcher import Frame, Frames, Watcher
from tests.support.followers import each_line, lines_of, running
from tests.support.leftovers import LEFT
from tests.support.session_host import LEFT_SECONDS, SessionHost, do, kill, processes_with, until
from tests.support.sshd import Sshd, busybox_sh, sshd

SIMPLE_DD = """#!/bin/sh
case $* in *iflag*) exit 1 ;; esac
exec {} "$@"
"""
COUNT = "i=0; while [ $i -lt {} ]; do i=$((i+1)); echo line $i; [ $((i % 20)) != 0 ] || sleep 0.02; done"


@pytest.fixture(scope="module", params=["here", "dash", "busybox"])
def server(request: pytest.FixtureRequest) -> Iterator[Sshd | None]:
    """A machine over there, whose sh, awk and dd can much or little; or this one, with the same watcher."""
    if request.param == "here":
        yield None
        return
    with sshd() as server:
        if request.param == "busybox":
            busybox_sh(server)
            (server.directory / "bin" / "awk").symlink_to((server.directory / "bin" / "sh").readlink())
            (server.directory / "bin" / "dd").write_text(SIMPLE_DD.format(shutil.which("dd")))
            (server.directory / "bin" / "dd").chmod(0o700)
        yield server


@pytest.fixture
def host(server: Sshd | None, tmp_path: Path) -> Iterator[SessionHost]:
    """A place for sessions; nothing of them, and of the watcher, may be left at the end."""
    transport: Transport = server.shared if server else LocalTransport()
    host = SessionHost(tmp_path / "s", ("sh",), transport)
    host.root.mkdir()
    yield host
    LEFT.end_within(LEFT_SECONDS, host.root)


@pytest.fixture
def remote(tmp_path: Path) -> Iterator[tuple[Sshd, SessionHost]]:
    """A server of its own, to be broken."""
    with sshd() as server:
        host = SessionHost(tmp_path / "s", ("sh",), server.shared)
        host.root.mkdir()
        yield server, host
        LEFT.end_within(LEFT_SECONDS, host.root)


def numbered(count: int) -> list[bytes]:
    return [f"line {number}".encode() for number in range(1, count + 1)]


def test_many_sessions_over_one_channel(host: SessionHost) -> None:
    """Sessions that are followed together are each read to the end, line by line at their offsets, with their code."""
    sessions = [host.started(f"{COUNT.format(100)}; exit {code}") for code in range(6)]

    async def scene() -> None:
        async with running(Watcher(host.transport, str(host.root))) as watcher:
            followed = [watcher.follow(session, cursor=0, requests=0) for session in sessions]
            for code, lines in enumerate(await asyncio.gather(*map(lines_of, followed))):
                assert [line.data for line in lines] == numbered(100)
                assert [line.offset for line in lines] == [
                    sum(len(each) + 1 for each in numbered(place)) for place in range(100)
                ]
                record = await followed[code].exit()
                assert record is not None
                assert record.code == code

    do(scene())


def test_following_from_a_cursor(host: SessionHost) -> None:
    """What was read and dealt with before is not told again."""
    session = host.started(
        f"{COUNT.format(50)}; fleet comment one; fleet comment two", env={"FLEET_ANSWER_SECONDS": "0"}
    )
    host.ended(session)

    async def scene() -> None:
        async with running(Watcher(host.transport, str(host.root))) as watcher:
            cursor = sum(len(each) + 1 for each in numbered(30))
            followed = watcher.follow(session, cursor=cursor, requests=1)
            assert [line.data for line in await lines_of(followed, cursor)] == numbered(50)[30:]
            assert [request.text for request in await followed.requests(1)] == ["two"]

    do(scene())


def test_requests_come(host: SessionHost) -> None:
    """What agents ask for is told in order, each once, and can be answered meanwhile."""
    session = host.started("fleet ask 'one?' && fleet comment two && fleet close three")

    async def scene() -> list[str]:
        asked: list[str] = []
        async with running(Watcher(host.transport, str(host.root))) as watcher:
            followed = watcher.follow(session, cursor=0, requests=0)
            while len(asked) < 3:
                for request in await followed.requests(len(asked)):
                    asked.append(request.text)
                    await session.answer(request.number, "heard")
                await followed.changed(1.0)
            assert await lines_of(followed)
        return asked

    assert do(scene()) == ["one?", "two", "three"]


def test_the_end_comes_after_all_requests(host: SessionHost) -> None:
    """Who knows that a session has ended knows all that its agent asked for, however much that was."""
    session = host.started("for i in 1 2 3 4; do fleet comment $i; done", env={"FLEET_ANSWER_SECONDS": "0"})
    host.ended(session)

    async def scene() -> list[str]:
        async with running(Watcher(host.transport, str(host.root))) as watcher:
            followed = watcher.follow(session, cursor=0, requests=0)
            while await followed.exit() is None:
                await followed.changed(1.0)
            return [request.text for request in await followed.requests(0, ended=True)]

    assert do(scene()) == ["1", "2", "3", "4"]


@pytest.mark.parametrize("make", ["mkdir 1", "mkfifo 1", ": >1"])
def test_what_is_no_request_silences_nobody(host: SessionHost, make: str) -> None:
    """Whatever an agent makes in its outbox: its end is told, and all that its neighbours on the channel say."""
    odd = host.started(f'cd "$FLEET_SESSION_DIR/outbox" && {make} && exit 5')
    host.ended(odd)
    neighbour = host.started("fleet comment done; echo last", env={"FLEET_ANSWER_SECONDS": "0"})

    async def scene() -> None:
        async with running(Watcher(host.transport, str(host.root))) as watcher:
            first, second = (watcher.follow(each, cursor=0, requests=0) for each in (odd, neighbour))
            assert await lines_of(first) == []
            record = await first.exit()
            assert record is not None
            assert record.code == 5
            assert await first.requests(0, ended=True) == []
            assert [line.data for line in await lines_of(second)] == [b"last"]
            assert [request.text for request in await second.requests(0)] == ["done"]

    do(scene())


def test_any_bytes_and_an_unfinished_line(host: SessionHost) -> None:
    """Output is told to the byte: NULs, line breaks, the words of a frame, and an end without a break."""
    script = "printf 'a\\000b\\nout x 0 5\\n\\n\\303\\050\\n'; until [ -e go ]; do sleep 0.02; done; printf last"
    session = host.started(script)

    async def scene() -> list[bytes]:
        async with running(Watcher(host.transport, str(host.root))) as watcher:
            followed = watcher.follow(session, cursor=0, requests=0)
            got = []
            async for line in each_line(followed):
                got.append(line.data)
                if len(got) == 4:
                    (host.root / "go").touch()
            return got

    assert do(scene()) == [b"a\0b", b"out x 0 5", b"", b"\xc3\x28", b"last"]


def test_much_output(host: SessionHost) -> None:
    """Twenty megabytes arrive, each line once."""
    session = host.started("seq -f '%099.0f' 200000")

    async def scene() -> None:
        async with running(Watcher(host.transport, str(host.root))) as watcher:
            count = 0
            async for line in each_line(watcher.follow(session, cursor=0, requests=0)):
                count += 1
                assert int(line.data) == count
            assert count == 200_000

    do(scene())


def test_what_is_passed_over_is_read_from_the_host_at_the_end(host: SessionHost) -> None:
    """Nothing of it is kept meanwhile, though it is known how much there is; the others are told all of theirs."""
    loud, quiet = host.started("seq -f '%099.0f' 20000"), host.started(COUNT.format(100))

    async def scene() -> None:
        async with running(Watcher(host.transport, str(host.root))) as watcher:
            passed, other = (watcher.follow(each, cursor=0, requests=0) for each in (loud, quiet))
            passed.pass_over()
            assert [line.data for line in await lines_of(other)] == numbered(100)
            while (record := await passed.exit()) is None or not record.swept:
                assert await passed.read(0) == Read((), 0)
                await passed.changed(1)
            assert passed.printed == 2_000_000
            got = await passed.read(1_999_900, ended=True)
            assert [int(line.data) for line in got.lines] == [20_000]

    do(scene())


def test_sessions_that_come_and_go(host: SessionHost) -> None:
    """A session that is added while others are followed is followed too, and none of them loses a line."""

    async def one(watcher: Watcher, session: HostedSession, begin: float) -> list[bytes]:
        await asyncio.sleep(begin)  # not to wait for anything: to come at different times
        followed = watcher.follow(session, cursor=0, requests=0)
        try:
            return [line.data for line in await lines_of(followed)]
        finally:
            followed.close()

    sessions = [host.started(COUNT.format(300)) for _ in range(5)]

    async def scene() -> list[list[bytes]]:
        async with running(Watcher(host.transport, str(host.root))) as watcher:
            return await asyncio.gather(*(one(watcher, each, place * 0.13) for place, each in enumerate(sessions)))

    assert do(scene()) == [numbered(300)] * 5


def test_a_session_that_is_not_there_yet(host: SessionHost) -> None:
    """A session may be followed before it begins."""
    session = host.prepared("echo hello")

    async def scene() -> list[bytes]:
        async with running(Watcher(host.transport, str(host.root))) as watcher:
            followed = watcher.follow(session, cursor=0, requests=0)
            await followed.changed(0.3)
            assert (await followed.read(0)).lines == ()
            assert await followed.exit() is None
            await session.start()
            return [line.data for line in await lines_of(followed)]

    assert do(scene()) == [b"hello"]


def test_the_end_is_asked_of_the_host(host: SessionHost) -> None:
    """Where nobody told of the end, the last words and requests are read from the host itself."""
    asks = "fleet comment 1 >&2; fleet comment 2 >&2"
    session = host.started(f"echo one; {asks}; printf tw", env={"FLEET_ANSWER_SECONDS": "0"})
    host.ended(session)
    watcher = Watcher(host.transport, str(host.root))  # which does not run

    async def scene() -> list[bytes]:
        followed = watcher.follow(session, cursor=0, requests=0)
        first = await followed.read(0, ended=True)
        second = await followed.read(first.cursor, ended=True)
        assert await followed.requests(0) == []
        assert [request.text for request in await followed.requests(0, ended=True)] == ["1", "2"]
        assert await followed.requests(2, ended=True) == []
        return [line.data for line in (*first.lines, *second.lines)]

    assert do(scene()) == [b"one", b"tw"]


def test_looking_is_following(one: SessionHost) -> None:
    """On this machine sessions are followed in the same words, by looking at their files."""
    session = one.started(f"{COUNT.format(60)}; fleet comment done", env={"FLEET_ANSWER_SECONDS": "0"})

    async def scene() -> list[bytes]:
        followed = LocalWatch().follow(session, cursor=0, requests=0)
        lines = [line.data for line in await lines_of(followed)]
        assert [request.text for request in await followed.requests(0)] == ["done"]
        followed.close()
        return lines

    assert do(scene())[:60] == numbered(60)


@pytest.mark.parametrize("make", ["mkdir outbox/1", "mkfifo outbox/1", ": >outbox/1", "mkdir exit"])
def test_looking_wakes_for_files_only(one: SessionHost, make: str) -> None:
    """What can never be read wakes nobody: who follows the session waits for the next thing, and has it then."""
    session = one.started(
        f'cd "$FLEET_SESSION_DIR" && {make} && echo made; until [ -e {one.root}/go ]; do sleep 0.05; done; echo more'
    )

    async def scene() -> None:
        followed = LocalWatch().follow(session, cursor=0, requests=0)
        cursor = 0
        while not cursor:
            await followed.changed(1.0)
            cursor = (await followed.read(0)).cursor
        assert await followed.requests(0) == []
        assert await followed.exit() is None
        waiting = asyncio.create_task(followed.changed(60.0))
        assert not (await asyncio.wait([waiting], timeout=0.3))[0]
        (one.root / "go").touch()
        await waiting
        assert [line.data for line in (await followed.read(cursor)).lines] == [b"more"]
        followed.close()

    do(scene())
    do(session.stop(grace_seconds=1))


@pytest.fixture
def one(tmp_path: Path) -> Iterator[SessionHost]:
    """A place for sessions on this machine."""
    host = SessionHost(tmp_path, ("sh",))
    yield host
    LEFT.end_within(LEFT_SECONDS, host.root)


# an agent that is gone


AGENTS = ("exec sleep 1000", "exec sleep 1000", "true")


async def vanishes(host: SessionHost, follower: Follower, sessions: list[HostedSession]) -> None:
    """Two silent agents are followed: of one the runner alone is killed, of the other both processes."""
    orphan, lost, brief = sessions
    pids = {session: int(host.file(session, "pid").read_text().split()[1]) for session in (orphan, lost)}
    followed = {session: follower.follow(session, cursor=0, requests=0) for session in (orphan, lost)}
    ended = follower.follow(brief, cursor=0, requests=0)
    assert not followed[lost].vanished()
    kill(host.runner(orphan))
    kill(host.runner(lost))
    kill(pids[lost])
    while not followed[lost].vanished():
        await followed[lost].changed(1.0)
    while await ended.exit() is None:
        await ended.changed(1.0)
    assert not followed[orphan].vanished()  # it goes on, and is judged by what it says
    assert not ended.vanished()  # it left a record
    assert (await lost.observe()).state is HostState.GONE
    kill(pids[orphan])
    while not followed[orphan].vanished():
        await followed[orphan].changed(1.0)
    for each in (*followed.values(), ended):
        each.close()
    assert (await brief.observe()).state is HostState.EXITED


def test_an_agent_that_is_gone_over_there_is_told(host: SessionHost) -> None:
    """The channel tells by itself that neither an agent nor its runner lives, though nobody saw its end."""
    sessions = [host.started(script) for script in AGENTS]

    async def scene() -> None:
        async with running(Watcher(host.transport, str(host.root))) as watcher:
            await vanishes(host, watcher, sessions)

    do(scene())


def test_an_agent_that_is_gone_here_is_seen(one: SessionHost) -> None:
    """On this machine the same is seen without a process."""
    sessions = [one.started(script) for script in AGENTS]

    async def scene() -> None:
        await vanishes(one, LocalWatch(), sessions)

    do(scene())


def test_an_agent_of_another_boot_is_gone(one: SessionHost) -> None:
    """After a reboot the numbers of processes are others': it is not taken to live for one of them."""
    session = one.started("exec sleep 1000")
    for name in ("pid", "claim"):
        words = one.file(session, name).read_text().split()
        one.file(session, name).write_text(" ".join([*words[:3], "another-boot", *words[4:]]) + "\n")

    async def here() -> bool:
        followed = LocalWatch().follow(session, cursor=0, requests=0)
        seen = followed.vanished()
        followed.close()
        return seen

    async def there() -> None:
        async with running(Watcher(one.transport, str(one.root))) as watcher:
            followed = watcher.follow(session, cursor=0, requests=0)
            while not followed.vanished():
                await followed.changed(1.0)

    assert do(here())
    do(there())
    kill(one.runner(session))
    kill(int(one.file(session, "pid").read_text().split()[1]))


# when the channel breaks


class Odd(LocalTransport):
    """A transport that raises once what no transport may."""

    def __init__(self) -> None:
        super().__init__()
        self.raised = 0

    async def stream(self, argv: Sequence[str]) -> AsyncIterator[bytes]:
        if not self.raised:
            self.raised += 1
            raise ZeroDivisionError("nobody expects it")
        async for chunk in super().stream(argv):
            yield chunk


def test_what_nobody_expected_of_a_channel_is_told_and_ends_nobody(one: SessionHost) -> None:
    """It breaks the channel as any other error, and the channel is opened again: each line is read."""
    session = one.started(COUNT.format(20))
    told: list[str] = []

    async def scene() -> list[bytes]:
        watcher = Watcher(Odd(), str(one.root), log=lambda _, error: told.append(error))
        async with running(watcher):
            return [line.data for line in await lines_of(watcher.follow(session, cursor=0, requests=0))]

    assert do(scene()) == numbered(20)
    assert told == ["ZeroDivisionError: nobody expects it"]


def break_again_and_again(act: Callable[[], object], times: int) -> Callable[[], object]:
    async def breaking() -> None:
        for round_ in range(times):
            await asyncio.sleep(random.Random(round_).uniform(0.1, 0.5))  # the point is arbitrary on purpose
            await asyncio.to_thread(act)

    return breaking


@pytest.mark.parametrize("how", ["cut", "restart"])
def test_a_channel_that_breaks(remote: tuple[Sshd, SessionHost], how: str) -> None:
    """Connections that are cut, and a server that is restarted, in the middle: not one line is lost or doubled."""
    server, host = remote
    sessions = [host.started(COUNT.format(1500)) for _ in range(3)]

    def restart() -> None:
        server.stop()
        server.start()

    async def scene() -> list[list[bytes]]:
        async with running(Watcher(host.transport, str(host.root))) as watcher, asyncio.TaskGroup() as group:
            breaking = break_again_and_again({"cut": server.cut, "restart": restart}[how], 4)
            group.create_task(breaking())  # type: ignore[arg-type]
            followed = [watcher.follow(session, cursor=0, requests=0) for session in sessions]
            return [[line.data for line in lines] for lines in await asyncio.gather(*map(lines_of, followed))]

    assert do(scene()) == [numbered(1500)] * 3


def test_a_host_that_is_away_while_the_agent_ends(remote: tuple[Sshd, SessionHost]) -> None:
    """An agent that finishes while its host cannot be reached is picked up afterwards, with all that it said."""
    server, host = remote
    session = host.started("echo before; until [ -e go ]; do sleep 0.02; done; echo after; exit 5")

    async def scene() -> None:
        async with running(Watcher(host.transport, str(host.root))) as watcher:
            followed = watcher.follow(session, cursor=0, requests=0)
            got = []
            async for line in each_line(followed):
                got.append(line.data)
                if line.data == b"before":
                    await asyncio.to_thread(server.stop)
                    (host.root / "go").touch()
                    await asyncio.to_thread(until, host.file(session, "exit").exists, "the end")
                    while watcher.failed is None:
                        await asyncio.sleep(0.01)
                    assert await followed.exit() is None
                    with pytest.raises(TransportError):
                        await session.observe()
                    await asyncio.to_thread(server.start)
            assert got == [b"before", b"after"]
            record = await followed.exit()
            assert record is not None
            assert record.code == 5
            assert watcher.failed is None

    do(scene())


def test_nothing_stays_over_there(remote: tuple[Sshd, SessionHost]) -> None:
    """When the watcher ends, or its connection does, its far side ends too; nothing but it was on the connection."""
    server, host = remote
    session = host.started("exec sleep 1000")

    def watches() -> list[int]:
        return processes_with(f"{session.session} 0 0".replace(" ", "\0").encode(), files=("cmdline",))

    async def scene() -> None:
        async with running(Watcher(host.transport, str(host.root))) as watcher:
            watcher.follow(session, cursor=0, requests=0)
            while not watches():
                await asyncio.sleep(0.02)
            assert len(server.connections()) == 1

    do(scene())
    until(lambda: not watches(), "the end of the far side")
    do(session.stop(grace_seconds=1))


# frames


def test_frames_in_pieces() -> None:
    """Frames are the same however the channel cuts them."""
    told = b"out s.1 3 5\na\n\0b\n\nMARK\nalive - 0 0\n\nMARK\n"
    expected = [Frame("out", "s.1", 3, b"a\n\0b\n"), Frame("alive", "-", 0, b"")]
    for size in range(1, len(told) + 1):
        frames = Frames("MARK")
        got = [frame for at in range(0, len(told), size) for frame in frames.feed(told[at : at + size])]
        assert got == expected


@pytest.mark.parametrize(
    "told", [b"out s.1 0 3\nabcdefghijkl", b"nonsense\n", b"x" * 600, b"out s.1 0 -1\n", b"out s.1 zero 1\na\nMARK\n"]
)
def test_what_is_no_frame(told: bytes) -> None:
    """A frame whose mark is not in its place, and what is none, breaks the channel; nothing of it is believed."""
    with pytest.raises(TransportError):
        Frames("MARK").feed(told)
