"""The stand-in for the API of sprites, held to the truth by the provider's own client."""

from __future__ import annotations

import asyncio
import io
import os
import socket
import time
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urlencode

import pytest
import sprites
from sprites.exceptions import APIError
from sprites.session import kill_session

from tests.support.session_host import lives, stat_of, until
from tests.support.sprites.faults import Faults
from tests.support.sprites.machine import Machine
from tests.support.sprites.server import TOKEN, StandIn, stand_in


@pytest.fixture(scope="module", name="server")
def one_server() -> Iterator[StandIn]:
    """A server for all tests of this module."""
    with stand_in() as server:
        yield server


@pytest.fixture(name="client")
def theirs(server: StandIn, monkeypatch: pytest.MonkeyPatch) -> Iterator[sprites.SpritesClient]:
    """The provider's own client."""
    monkeypatch.setenv("SPRITES_CLIENT_SIGNALS", "0")
    with sprites.SpritesClient(TOKEN, base_url=server.url) as client:
        yield client


@pytest.fixture(name="machine")
def one_machine(server: StandIn) -> Machine:
    """A sprite that is there."""
    return server.sprite("one")


@pytest.fixture(name="sprite")
def one_sprite(client: sprites.SpritesClient, machine: Machine) -> Iterator[sprites.Sprite]:
    """The same, as the client sees it; what was made to go wrong with it is right again afterwards."""
    yield client.sprite("one")
    machine.faults = Faults()


def test_made_shown_changed_destroyed(client: sprites.SpritesClient) -> None:
    """A sprite can be made once, is listed and shown, takes labels, and is gone after its end."""
    made = client.create_sprite("fresh", labels=["a"])
    assert (made.name, made.status, made.labels) == ("fresh", "cold", ["a"])
    with pytest.raises(sprites.SpriteError, match="already exists"):
        client.create_sprite("fresh")
    assert str(client.get_sprite("fresh").url).startswith("https://fresh-")
    assert client.update_sprite("fresh", labels=["b"]).labels == ["b"]
    assert "fresh" in [each.name for each in client.list_sprites().sprites]
    client.destroy_sprite("fresh")
    with pytest.raises(sprites.NotFoundError):
        client.get_sprite("fresh")


def test_pages(client: sprites.SpritesClient, server: StandIn) -> None:
    """A list of several pages is whole."""
    for number in range(5):
        server.sprite(f"page-{number}")
    page = client.list_sprites(sprites.ListOptions(prefix="page-", max_results=2))
    assert page.has_more
    assert [each.name for each in client.list_all_sprites(prefix="page-")] == [f"page-{number}" for number in range(5)]


def test_who_is_not_let_in(server: StandIn) -> None:
    """A wrong token is refused."""
    with sprites.SpritesClient("wrong", base_url=server.url) as client, pytest.raises(sprites.AuthenticationError):
        client.get_sprite("one")


@pytest.mark.parametrize("code", [0, 1, 42, 127, 255])
def test_a_command(sprite: sprites.Sprite, code: int) -> None:
    """A command's code and both its streams come back, without the wait for the connection's end."""
    began = time.monotonic()
    done = sprite.run("sh", "-c", f"echo out; echo err >&2; exit {code}", capture_output=True)
    assert (done.returncode, done.stdout, done.stderr) == (code, b"out\n", b"err\n")
    assert time.monotonic() - began < 4


def test_its_input_and_its_environment(sprite: sprites.Sprite, machine: Machine) -> None:
    """Input arrives to the last byte; a given environment replaces the usual one; the home is the sprite's own."""
    data = os.urandom(300_000)
    command = sprite.command("cat", stdin=io.BytesIO(data))
    assert command.output() == data
    assert sprite.run("sh", "-c", "echo $HOME", capture_output=True).stdout == f"{machine.home}\n".encode()
    assert sprite.run("/usr/bin/env", env={"A": "b"}, capture_output=True).stdout == b"A=b\n"


def test_a_command_that_is_not_there(sprite: sprites.Sprite) -> None:
    """It ends with 127."""
    assert sprite.run("no-such-program", capture_output=True).returncode == 127


def test_many_at_once(server: StandIn, machine: Machine) -> None:
    """Twenty commands at once each have their own output."""

    async def scene() -> list[bytes | None]:
        async with sprites.AsyncSpritesClient(TOKEN, base_url=server.url) as client:
            sprite = client.sprite("one")
            done = await asyncio.gather(*(sprite.run("echo", str(n), capture_output=True) for n in range(20)))
            return [each.stdout for each in done]

    assert asyncio.run(scene()) == [f"{number}\n".encode() for number in range(20)]


def test_sessions_are_listed_and_killed(sprite: sprites.Sprite, machine: Machine) -> None:
    """A command that runs is in the list under its resolved name, and is not when it was killed."""
    with pytest.raises(sprites.SpriteError):
        sprite.run("sleep", "1000", timeout=0.5)
    (listed,) = until(sprite.list_sessions, "the session")
    assert listed.command.endswith("/sleep 1000")
    pid = int(listed.id)
    assert lives(pid)
    kill_session(sprite, listed.id, signal="SIGKILL")
    assert not lives(pid)
    assert sprite.list_sessions() == []
    with pytest.raises(APIError):
        sprite.attach_session(listed.id).run()


def test_a_terminal_is_left_and_found_again(sprite: sprites.Sprite, machine: Machine) -> None:
    """A command with a terminal lives on without anybody, and tells what it said to whoever comes back."""
    with pytest.raises(sprites.SpriteError):
        sprite.run("sh", "-c", "tty; stty size; read x; echo got $x", tty=True, tty_rows=30, tty_cols=99, timeout=0.5)
    (listed,) = sprite.list_sessions()
    assert listed.tty
    attached = sprite.attach_session(listed.id)
    attached.stdin = io.BytesIO(b"hello\n")
    said = attached.output()
    assert b"/dev/pts/" in said
    assert b"30 99" in said
    assert b"got hello" in said


def test_files(sprite: sprites.Sprite, machine: Machine) -> None:
    """Files are written, read, listed, renamed and deleted; what is not there is said not to be."""
    files = sprite.filesystem(str(machine.home))
    (files / "a.txt").write_text("one")
    assert (files / "a.txt").read_text() == "one"
    assert [each.name for each in files.path(".").iterdir()] == ["a.txt"]
    (files / "a.txt").rename(str(machine.home / "b.txt"))
    assert (machine.home / "b.txt").read_text() == "one"
    (files / "b.txt").unlink()
    with pytest.raises(sprites.exceptions.FileNotFoundError_):
        (files / "b.txt").read_text()


def test_its_tmux_is_its_own(sprite: sprites.Sprite, server: StandIn, client: sprites.SpritesClient) -> None:
    """Two sprites have two servers of tmux, and the processes of both end with them."""
    server.sprite("two")
    for name in ("one", "two"):
        assert (
            client.sprite(name).run("tmux", "new-session", "-d", "-s", f"in-{name}", capture_output=True).returncode
            == 0
        )
    assert sprite.run("tmux", "ls", "-F", "#S", capture_output=True).stdout == b"in-one\n"
    pids = server.machines["two"].pids()
    assert pids
    client.destroy_sprite("two")
    until(lambda: not any(map(lives, pids)), "the end of its processes")
    sprite.run("tmux", "kill-server", capture_output=True)


def test_sleep_stops_processes_and_waking_lets_them_go_on(client: sprites.SpritesClient, server: StandIn) -> None:
    """A warm sprite's processes stand still and go on when it wakes; of a cold one nothing is left."""
    machine = server.sprite("sleepy")
    client.sprite("sleepy").run("sh", "-c", "setsid sleep 1000 >/dev/null 2>&1 &")
    (pid,) = until(lambda: len(found := machine.pids()) == 1 and found, "the process that stays")  # type: ignore[misc]
    server.call(machine.sleep)
    assert (machine.status, stat_of(pid)[0]) == ("warm", "T")
    client.sprite("sleepy").run("true")
    assert (machine.status, machine.wakes) == ("running", 2)
    assert stat_of(pid)[0] != "T"
    server.call(machine.sleep, cold=True)
    until(lambda: not lives(pid), "the end of its processes")
    assert machine.status == "cold"


def test_it_falls_asleep_unless_a_task_holds_it() -> None:
    """Without anything to do it sleeps; a task, set on the socket inside, keeps it awake until it is taken back."""
    with stand_in(idle_seconds=0.4, cold_seconds=600) as server:
        machine = server.sprite("one")
        curl = ["curl", "-sf", "--unix-socket", str(machine.socket), "-H", "Content-Type: application/json"]
        with sprites.SpritesClient(TOKEN, base_url=server.url) as client:
            sprite = client.sprite("one")
            sprite.run(*curl, "-X", "PUT", "http://sprite/v1/tasks/t", "-d", '{"expire":"5m"}', capture_output=True)
            held = machine.active
            until(lambda: machine.active > held + 1.0, "a second of being held")
            assert client.get_sprite("one").status == "running"
            sprite.run(*curl, "-X", "DELETE", "http://sprite/v1/tasks/t", capture_output=True)
            until(lambda: client.get_sprite("one").status == "warm", "sleep")
        assert [method for method, _ in server.tasks["one"].calls] == ["PUT", "DELETE"]


@pytest.mark.parametrize("fault", [{"drop_before_exit": True}, {"close_early": True}, {"drop_after_bytes": 1}])
def test_a_broken_connection(sprite: sprites.Sprite, machine: Machine, fault: dict[str, object]) -> None:
    """A connection that ends before the command is no success."""
    for name, value in fault.items():
        setattr(machine.faults, name, value)
    with pytest.raises(sprites.NetworkError):
        sprite.run("echo", "hello", capture_output=True)


@pytest.mark.parametrize("status", [401, 404, 429, 503])
def test_refusals_of_a_command(sprite: sprites.Sprite, machine: Machine, status: int) -> None:
    """A refused handshake has its status."""
    machine.faults.refuse_handshake = status
    with pytest.raises(APIError) as caught:
        sprite.run("true")
    assert caught.value.status_code == status


def test_a_command_whose_asker_leaves_at_once_is_ended(server: StandIn, machine: Machine, tmp_path: Path) -> None:
    """Though it was begun before anybody could be told its number: it has as long as was asked for, and no longer."""
    words = urlencode({"cmd": "sh", "path": "sh", "stdin": "true", "max_run_after_disconnect": "1s"})
    script = urlencode([("cmd", "-c"), ("cmd", f"echo $$ >{tmp_path}/pid; exec sleep 1000")])
    asked = (
        f"GET /v1/sprites/{machine.name}/exec?{words}&{script} HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {TOKEN}\r\n"
    )
    upgrade = "Upgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: "
    with socket.create_connection(("127.0.0.1", server.port)) as asking:
        asking.sendall(f"{asked}{upgrade}{'A' * 22}==\r\n\r\n".encode())
    pid = until(lambda: (tmp_path / "pid").exists() and (tmp_path / "pid").read_text().strip(), "its number")
    until(lambda: not lives(int(pid)), "its end")
