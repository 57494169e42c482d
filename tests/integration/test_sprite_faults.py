"""What can befall a sprite while something is to run on it: slow, silent, cut off, asleep, refused, vanished."""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from fleet.errors import HostAsleep, HostBusy, HostMissing, HostUnfit, TransportError
from fleet.hosts.facts import HostState
from fleet.hosts.fanout import Command, End, run_on
from fleet.hosts.launch_file import Rules
from fleet.hosts.sprite.transport import SpriteTransport
from fleet.hosts.transport import Course, course_behind
from fleet.hosts.watcher import Watcher
from tests.support.followers import each_line, lines_of, running
from tests.support.session_host import SessionHost, do, lives, stat_of, until
from tests.support.sprites.machine import Machine
from tests.support.sprites.server import StandIn, stand_in
from tests.support.sprites.way import api_of, transport_to

COUNT = "i=0; while [ $i -lt {} ]; do i=$((i+1)); echo line $i; [ $((i % 20)) != 0 ] || sleep 0.02; done"


@pytest.fixture(name="server")
def to_be_broken() -> Iterator[StandIn]:
    """A server of its own for each test."""
    with stand_in() as server:
        yield server


@pytest.fixture(name="transport")
def way_there(server: StandIn) -> SpriteTransport:
    """A way to its sprite."""
    return transport_to(server)


@pytest.fixture(name="machine")
def over_there(server: StandIn, transport: SpriteTransport) -> Machine:
    """The sprite."""
    return server.machines["one"]


@pytest.fixture(name="host")
def place_over_there(transport: SpriteTransport, tmp_path: Path) -> Iterator[SessionHost]:
    """A place for sessions over there; nothing of them may be left at the end."""
    host = SessionHost(tmp_path / "s", ("sh",), transport)
    host.root.mkdir()
    yield host
    host.nothing_left()


# commands


def test_a_slow_wake(machine: Machine, transport: SpriteTransport) -> None:
    """A sprite that takes long to wake is waited for: longer than a library would by itself."""
    machine.faults.wake_seconds = 11.0
    assert do(transport.run(["echo", "awake"])).stdout == b"awake\n"


def test_a_sprite_that_says_nothing(machine: Machine, transport: SpriteTransport) -> None:
    """Who gives up on a command that hangs is free at once."""
    machine.faults.hang = True

    async def scene() -> float:
        began = time.monotonic()
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(1):
                await transport.run(["true"])
        return time.monotonic() - began

    assert do(scene()) < 5


def given_up(transport: SpriteTransport, argv: list[str], seconds: float) -> Course | None:
    """A command that is waited for so long; how far it had come by then."""

    async def scene() -> TimeoutError:
        with pytest.raises(TimeoutError) as caught:
            async with asyncio.timeout(seconds):
                await transport.run(argv)
        return caught.value

    return course_behind(do(scene()))


def test_who_leaves_while_it_wakes_has_begun_nothing(
    server: StandIn, machine: Machine, transport: SpriteTransport
) -> None:
    """The machine starts what it was asked for once it has woken; the command waits for a word that never comes."""
    machine.faults.wake_seconds, machine.status = 1.0, "cold"
    course = given_up(transport, ["sh", "-c", "echo x >$HOME/ran"], 0.3)
    assert course is not None
    assert (course.began, course.awaited) == (False, "the sprite was still waking, or not reached")
    until(lambda: machine.wakes and not server.inside, "it woke, and saw that nobody waits for what it began")
    until(lambda: not machine.processes, "what it was asked for is over")
    assert not (machine.home / "ran").exists()


def test_whether_a_silent_one_began_is_not_known(machine: Machine, transport: SpriteTransport) -> None:
    """A machine that took the command and said nothing of it may have begun it, or not."""
    machine.faults.hang = True
    course = given_up(transport, ["true"], 1)
    assert course is not None
    assert course.began is None


def test_a_command_that_is_given_up_is_killed_by_its_number(
    server: StandIn, machine: Machine, transport: SpriteTransport
) -> None:
    """The kill is asked of the machine, and does not wait for the time that a command may run alone."""

    async def scene() -> None:
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(1):
                await transport.run(["sleep", "1000"])

    do(scene())
    assert machine.processes == {}
    assert [path for method, path in server.asked if "/kill?signal=SIGKILL" in path]


def test_what_had_arrived_when_the_connection_broke(machine: Machine, transport: SpriteTransport) -> None:
    """The error knows what the command had printed by then; it is shown as cut off, of a command that began."""
    machine.faults.drop_before_exit = True
    command = Command(argv=("sh", "-c", "echo one; echo two >&2"), seconds=30)
    ran = do(run_on("forge", lambda: transport, command))
    assert (ran.end, ran.began, ran.cut_off) == (End.UNREACHABLE, True, True)
    assert (ran.stdout, ran.stderr) == ("one\n", "two\n")
    assert "the connection broke before its end" in ran.reason


@pytest.mark.parametrize("fault", ["drop_before_exit", "close_early"])
def test_a_connection_that_breaks(machine: Machine, transport: SpriteTransport, fault: str) -> None:
    """A command whose end was not heard is an error, not a success and not a failure of its own; it is not repeated."""
    setattr(machine.faults, fault, True)
    with pytest.raises(TransportError, match="is not known"):
        do(transport.run(["sh", "-c", "echo x >>$HOME/ran; echo hello"]))
    assert not (machine.home / "ran").exists() or (machine.home / "ran").read_text() == "x\n"


def test_the_end_told_too_early(machine: Machine, transport: SpriteTransport) -> None:
    """The end as text may come before the output, and with another code: the binary one is believed."""
    machine.faults.early_text_exit = True
    assert do(transport.run(["sh", "-c", "echo one; sleep 0.3; echo two; exit 5"])) == (5, b"one\ntwo\n", b"")


def test_the_end_told_as_text_alone(machine: Machine, transport: SpriteTransport) -> None:
    """Where no binary end comes, the text is taken after a grace."""
    machine.faults.only_text_exit = True
    assert do(transport.run(["sh", "-c", "echo one; exit 5"])) == (5, b"one\n", b"")


def test_too_much_output(machine: Machine, transport: SpriteTransport) -> None:
    """A command that prints without end is ended, and is an error."""
    with pytest.raises(TransportError, match="printed more than"):
        do(transport.run(["cat", "/dev/zero"]))
    assert machine.processes == {}


def test_nothing_long_is_in_the_address(server: StandIn, transport: SpriteTransport) -> None:
    """Words that are too many for an address go on stdin, before the input; none of either is lost."""
    word, data = "w" * 100_000, b"input" * 1000
    done = do(transport.run(["sh", "-c", 'printf %s "$1"; cat', "sh", word], stdin=data))
    assert done.stdout == word.encode() + data
    assert max(len(path) for _, path in server.asked) < 10_000


# refusals


def test_refusals_that_pass(server: StandIn, transport: SpriteTransport) -> None:
    """A refusal for a moment is asked again: nothing was run."""
    server.faults.refuse, server.faults.refuse_times = 503, 2
    assert do(transport.run(["echo", "x"])).stdout == b"x\n"
    server.faults.refuse, server.faults.refuse_times, server.faults.retry_after = 429, 1, "1"
    began = time.monotonic()
    assert do(transport.run(["echo", "x"])).stdout == b"x\n"
    assert time.monotonic() - began >= 1


@pytest.mark.parametrize(("status", "error"), [(401, HostUnfit), (429, HostBusy), (503, TransportError)])
def test_refusals_that_stay(
    server: StandIn, transport: SpriteTransport, status: int, error: type[TransportError]
) -> None:
    """Each has its error, for commands and for files, within bounds."""
    server.faults.refuse, server.faults.retry_after = status, "600"
    with pytest.raises(error):
        do(transport.run(["true"]))
    with pytest.raises(error):
        do(transport.get("/etc/hostname"))
    with pytest.raises(error):
        do(transport.put("/tmp/never", b""))


def test_too_many_awake(server: StandIn, transport: SpriteTransport) -> None:
    """An account that has too many sprites awake is waited for, and then used."""
    server.faults.running_limit = 1
    other = transport_to(server, "other")
    assert do(other.run(["true"])).code == 0

    async def scene() -> bytes:
        waking = asyncio.create_task(transport.run(["echo", "awake"]))
        while not any("sprites/one/exec" in path for _, path in server.asked):
            await asyncio.sleep(0.01)
        await asyncio.to_thread(server.call, server.machines["other"].sleep)
        return (await waking).stdout

    assert do(scene()) == b"awake\n"


def test_without_websockets_the_status_is_told(server: StandIn, machine: Machine, transport: SpriteTransport) -> None:
    """Where commands are not possible, that is said, and management works alone without waking anything."""
    server.faults.no_websocket = True
    with pytest.raises(HostUnfit, match="no websocket"):
        do(transport.run(["true"]))
    server.call(machine.sleep)
    assert do(transport.seen()).presence == "warm"
    assert [sprite.name for sprite in do(api_of(server).list())] == ["one"]
    assert machine.status == "warm"


def test_without_a_token(server: StandIn) -> None:
    """What is missing is named, and nothing is sent."""
    with pytest.raises(HostUnfit, match="SPRITES_API_TOKEN is not set"):
        do(api_of(server, token="").get("one"))
    assert server.asked == []


def test_a_sprite_that_vanished(server: StandIn, machine: Machine, transport: SpriteTransport) -> None:
    """A command on a sprite that the API does not know says that it may be missing; when it is back, it is used."""
    transport_to(server, "other")
    machine.faults.vanished = True
    with pytest.raises(HostMissing, match=r"missing\?"):
        do(transport.run(["true"]))
    with pytest.raises(HostMissing):
        do(transport.get("/etc/hostname"))
    machine.faults.vanished = False
    assert do(transport.run(["true"])).code == 0
    assert do(transport.seen()).presence == "running"


# sleep


def test_a_session_keeps_the_sprite_awake(tmp_path: Path) -> None:
    """While an agent runs, and nobody is connected, the sprite stays awake; when it has ended, it sleeps."""
    with stand_in(idle_seconds=1.0) as server:
        transport = transport_to(server)
        machine, host = server.machines["one"], SessionHost(tmp_path, ("sh",), transport)
        session = host.started("until [ -e go ]; do sleep 0.05; done", Rules(look_seconds=1, use_cgroup=False))
        until(lambda: machine.tasks, "the hold")
        assert list(machine.tasks) == [f"fleet-{session.session}"]
        begun = time.monotonic()
        until(lambda: time.monotonic() - begun > 3, "three times as long as it would be awake")
        assert machine.status == "running"
        (tmp_path / "go").touch()
        until(lambda: machine.status == "warm", "sleep")
        assert server.tasks["one"].calls[-1][0] == "DELETE"
        assert do(session.observe()).state is HostState.EXITED
    host.nothing_left()


def test_a_hold_is_not_for_ever(tmp_path: Path) -> None:
    """An agent that runs longer than the sprite is to be kept awake stands still with it, and goes on when it wakes."""
    with stand_in(idle_seconds=0.5) as server:
        transport = transport_to(server)
        machine, host = server.machines["one"], SessionHost(tmp_path, ("sh",), transport)
        session = host.prepared("exec sleep 1000", Rules(look_seconds=1, use_cgroup=False, awake_seconds=60))
        long_ago = time.time() - 120
        os.utime(host.file(session, "hold"), (long_ago, long_ago))
        pid = do(session.start()).pid
        until(lambda: machine.status == "warm", "sleep")
        assert server.tasks["one"].calls == []
        assert stat_of(pid)[0] == "T"
        assert do(session.observe()).state is HostState.RUNNING
        assert stat_of(pid)[0] != "T"
        do(session.stop(grace_seconds=1))
    host.nothing_left()


def test_a_sprite_that_falls_asleep_under_a_command(
    server: StandIn, machine: Machine, transport: SpriteTransport
) -> None:
    """Work that is open on a sprite that sleeps is told in these words."""

    async def scene() -> None:
        running_one = asyncio.create_task(transport.run(["sleep", "1000"]))
        while not machine.processes:
            await asyncio.sleep(0.01)
        await asyncio.to_thread(server.call, machine.sleep)
        with pytest.raises(HostAsleep, match=r"asleep \(warm\) with work open"):
            await running_one

    do(scene())


def test_the_watcher_tells_of_sleep_and_goes_on(server: StandIn, machine: Machine, host: SessionHost) -> None:
    """A sprite that sleeps in the middle is told as asleep, is woken, and not one line is lost or doubled."""
    session = host.started(COUNT.format(400))
    told: list[str] = []

    async def scene() -> list[bytes]:
        watcher = Watcher(host.transport, str(host.root), log=lambda _, error: told.append(error))
        async with running(watcher):
            got = []
            async for line in each_line(watcher.follow(session, cursor=0, requests=0)):
                got.append(line.data)
                if len(got) == 100:
                    await asyncio.to_thread(server.call, machine.sleep)
            return got

    assert do(scene()) == [f"line {number}".encode() for number in range(1, 401)]
    assert ["asleep (warm)" in each for each in told] == [True]


def test_a_cold_sprite_has_lost_its_agents(server: StandIn, machine: Machine, host: SessionHost) -> None:
    """After a cold sleep the host itself says that the agent is gone; nothing is guessed before."""
    session = host.started("exec sleep 1000")
    pid = do(session.start()).pid
    server.call(machine.sleep, cold=True)
    until(lambda: not lives(pid), "its end")
    assert do(host.transport.seen()).asleep  # type: ignore[attr-defined]
    assert do(session.observe()).state is HostState.GONE


def test_many_sessions_over_one_channel(server: StandIn, host: SessionHost) -> None:
    """Sessions on one sprite are followed together over one connection, each to its end."""
    sessions = [host.started(f"{COUNT.format(100)}; exit {code}") for code in range(4)]

    async def scene() -> None:
        async with running(Watcher(host.transport, str(host.root))) as watcher:
            followed = [watcher.follow(session, cursor=0, requests=0) for session in sessions]
            for code, lines in enumerate(await asyncio.gather(*map(lines_of, followed))):
                assert len(lines) == 100
                record = await followed[code].exit()
                assert record is not None
                assert record.code == code

    do(scene())


def test_no_secret_is_in_an_address(server: StandIn, host: SessionHost) -> None:
    """Of all that was asked, no address holds the secret that the agent was given, nor the prompt."""
    session = host.prepared('test "$TOKEN" = s3cr3t-value', secrets=("TOKEN",), prompt="the pr0mpt")
    do(session.start({"TOKEN": "s3cr3t-value"}))
    record = host.ended(session).exit
    assert record is not None
    assert record.code == 0
    assert not [path for _, path in server.asked if "s3cr3t" in path or "pr0mpt" in path]
