"""Tasks on sprites, driven by the supervisor: the same life as here, and a sprite that may sleep when it has none."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from fleet.model.event import kind_of
from fleet.model.states import Result, TaskState
from fleet.model.terms import Terms
from tests.support.inhouse import InHouse
from tests.support.sprites.machine import Machine
from tests.support.sprites.server import TOKEN, StandIn, stand_in


class OnSprite(InHouse):
    """A home with one worker, on a sprite."""

    def __init__(self, path: Path, server: StandIn, monkeypatch: pytest.MonkeyPatch) -> None:
        self.server = server
        self.work = server.sprite("theirs").root / "work"
        self.work.mkdir()
        monkeypatch.setenv("MY_SPRITES", TOKEN)
        super().__init__(path)

    def set(self, **settings: Any) -> None:
        super().set(**settings)
        host = {"name": "ours", "api_name": "theirs", "kind": "sprite", "working_directory": str(self.work)}
        host["agent_binary"] = "/bin/sh"
        lines = [f"{key} = {json.dumps(value)}" for key, value in host.items()]
        sprites = ["[sprites]", f'url = "{self.server.url}"', 'token_env = "MY_SPRITES"']
        with self.home.toml.open("a") as file:
            file.write("\n".join(["", *sprites, "[[hosts]]", *lines, 'capabilities = ["there"]', ""]))


@pytest.fixture(name="server")
def one_server() -> Iterator[StandIn]:
    """An account whose sprites sleep soon."""
    with stand_in(idle_seconds=1.0) as server:
        yield server


@pytest.fixture(name="away")
def with_a_worker(tmp_path: Path, server: StandIn, monkeypatch: pytest.MonkeyPatch) -> Iterator[OnSprite]:
    """A home with a worker on a sprite; nothing of it may be left here."""
    away = OnSprite(tmp_path / "h", server, monkeypatch)
    yield away
    away.close()


@pytest.fixture(name="machine")
def their_machine(server: StandIn, away: OnSprite) -> Machine:
    """The sprite."""
    return server.machines["theirs"]


def test_a_task_runs_there_to_its_receipt(away: OnSprite) -> None:
    """A task that needs what only the sprite can do runs there, is scored there, and its words and files come back."""
    terms = Terms(scorer={"kind": "file_exists", "path": "result.txt"}, expected_artifacts=("result.txt",))
    script = "pwd; fleet comment 'from afar'; echo ready >result.txt; echo done"
    uid = away.add(command=script, capabilities=("there",), terms=terms)
    away.drain()
    (receipt,) = away.store.receipts(task=uid)
    (session,) = away.store.sessions(task=uid)
    assert (away.task(uid).state, receipt.result) == (TaskState.COMPLETED, Result.PASS)
    assert session.host == "ours"
    assert [said["text"] for said in away.said(uid)] == [str(away.work), "noted", "done"]
    assert [remark.text for remark in away.store.comments(uid)] == ["from afar"]


def test_a_sprite_is_kept_awake_no_longer_than_the_session_may_run(away: OnSprite) -> None:
    """The time that a task may run is the time that its sprite is held."""
    away.set(timeout_seconds=600)
    uid = away.add(command='cat "$FLEET_SESSION_DIR/hold"', capabilities=("there",))
    away.drain()
    assert "-mmin -10)" in " ".join(said["text"] for said in away.said(uid))


def test_a_sprite_without_work_is_let_sleep(away: OnSprite, machine: Machine) -> None:
    """A supervisor that has nothing for a sprite does not keep it awake, nor wake it, and calls it up."""
    uid = away.add(command="echo once", capabilities=("there",))

    async def scene() -> None:
        async with away.supervising():
            await away.until_state(uid, TaskState.COMPLETED)
            await away.until(lambda: machine.status == "warm", "sleep")
            woken, asked = machine.wakes, len(away.server.asked)
            await away.until(lambda: ("GET", "/v1/sprites/theirs") in away.server.asked[asked:], "a further look")
            assert (machine.status, machine.wakes) == ("warm", woken)
        assert [host.state for host in away.store.hosts() if host.name == "ours"] == ["up"]

    asyncio.run(scene())


def test_a_provider_that_fails_makes_no_machine_ill(away: OnSprite, machine: Machine) -> None:
    """While the API does not tell, the sprite is unknown, nobody is alerted, and its task goes on when it does."""

    async def scene() -> None:
        away.server.faults.refuse = 503
        uid = away.add(command="echo done", capabilities=("there",))
        async with away.supervising():
            await away.until(lambda: [host.state for host in away.store.hosts()] == ["unknown"], "a look")
            away.server.faults.refuse = 0
            await away.until_state(uid, TaskState.COMPLETED)
        kinds = [kind_of(entry.event) for entry in away.store.chain("host/ours")]
        assert kinds == ["host.changed", "host.changed"]

    asyncio.run(scene())
    assert machine.wakes
