"""Faults of a whole provider, as a supervisor alone finds them: one alert, not one for each machine or task."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from fleet.model import event as ev
from fleet.model.host import Host
from fleet.model.states import TaskState
from fleet.supervisor.supervisor import Supervisor
from tests.support.inhouse import InHouse
from tests.support.sprites.server import TOKEN, StandIn, stand_in

NAMES = ("forge", "mallet")


class OnSprites(InHouse):
    """A home with a worker on each of two sprites."""

    def __init__(self, path: Path, server: StandIn, monkeypatch: pytest.MonkeyPatch) -> None:
        self.server = server
        self.machines = {name: server.sprite(name) for name in NAMES}
        for machine in self.machines.values():
            (machine.root / "work").mkdir()
        monkeypatch.setenv("MY_SPRITES", TOKEN)
        super().__init__(path)

    def set(self, **settings: Any) -> None:
        super().set(**settings)
        tables = ["", "[sprites]", f'url = "{self.server.url}"', 'token_env = "MY_SPRITES"']
        for name, machine in self.machines.items():
            fields = {"name": name, "kind": "sprite", "agent_binary": "/bin/sh"}
            fields["working_directory"] = str(machine.root / "work")
            tables += ["[[hosts]]", *(f"{key} = {json.dumps(value)}" for key, value in fields.items())]
        with self.home.toml.open("a") as file:
            file.write("\n".join([*tables, ""]))

    def vanish(self, *names: str) -> None:
        """From now on the API knows all but these."""
        for name, machine in self.machines.items():
            machine.faults.vanished = name in names


@pytest.fixture
def away(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[OnSprites]:
    """Two sprites, and a supervisor's home; nothing of it may be left here."""
    with stand_in() as server:
        away = OnSprites(tmp_path / "h", server, monkeypatch)
        yield away
        away.close()


@pytest.fixture
def inside(tmp_path: Path) -> Iterator[InHouse]:
    """A home whose supervisors run in this process."""
    made = InHouse(tmp_path, max_attempts=1, max_concurrent=1)
    yield made
    made.close()


def raised(home: InHouse) -> list[tuple[str, str]]:
    """The alerts about machines, and what stands for one, in their order."""
    entries = home.store.feed("", limit=1000, kinds=("alert.raised",)).entries
    return [
        (entry.event.subject, entry.event.alert.value)
        for entry in entries
        if isinstance(entry.event, ev.AlertRaised) and entry.event.subject.startswith("host/")
    ]


def standing(home: InHouse, name: str) -> Host | None:
    """What the store knows of a machine."""
    return next((host for host in home.store.hosts() if host.name == name), None)


async def look_again(away: OnSprites, supervisor: Supervisor) -> None:
    """Have every machine probed now, not in a quarter of a minute."""
    for name in NAMES:
        supervisor.house.hosts.doubt(name, "somebody asks")


def test_when_all_sprites_vanish_it_is_one_fault_of_the_api(away: OnSprites) -> None:
    """One alert of the provider and none of its machines, however often it is looked; and one when it is back."""

    async def scene() -> None:
        async with away.supervising() as supervisor:
            health = supervisor.house.hosts.health
            await away.until(lambda: [health[name].state for name in NAMES if name in health] == ["up"] * 2, "probes")
            away.vanish(*NAMES)
            await look_again(away, supervisor)
            await away.until(lambda: raised(away), "the alert")
            assert raised(away) == [("host/api:sprites", "host_unhealthy")]
            assert {health[name].state for name in NAMES} == {"unknown"}
            asked = len(away.server.asked)
            await away.until(lambda: len(away.server.asked) > asked + 4, "further looks")
            away.vanish()
            await away.until(lambda: len(raised(away)) > 1, "the end of it")

    asyncio.run(scene())
    assert raised(away) == [("host/api:sprites", "host_unhealthy"), ("host/api:sprites", "host_recovered")]
    found = standing(away, "api:sprites")
    assert found is not None
    assert (found.state, found.evidence) == ("up", "it tells of the machines again")


def test_one_sprite_that_vanishes_is_no_fault_of_the_api(away: OnSprites) -> None:
    """While the provider tells of another, it is believed to work."""

    async def scene() -> None:
        async with away.supervising() as supervisor:
            health = supervisor.house.hosts.health
            await away.until(lambda: [health[name].state for name in NAMES if name in health] == ["up"] * 2, "probes")
            away.vanish("forge")
            await look_again(away, supervisor)
            await away.until(lambda: health["forge"].status == "not_found", "the look")
            await away.until(lambda: health["mallet"].state == "up", "the other")

    asyncio.run(scene())
    assert raised(away) == []
    assert standing(away, "api:sprites") is None


def test_a_fault_that_another_supervisor_told_is_over_once(away: OnSprites) -> None:
    """Whoever comes next and finds the provider well says so."""
    fault = Host(name="api:sprites", kind="api", state="down", since=1, evidence="all 2 are error at once", probed_at=1)
    away.store.probed(fault, by="fleet health").result()

    async def scene() -> None:
        async with away.supervising():
            await away.until(lambda: len(raised(away)) > 1, "the end of it")

    asyncio.run(scene())
    assert raised(away) == [("host/api:sprites", "host_unhealthy"), ("host/api:sprites", "host_recovered")]


@pytest.mark.parametrize("outcome", ["auth", "transient"])
def test_a_coder_whose_sessions_all_fail_is_one_alert(inside: InHouse, outcome: str) -> None:
    """After three in a row, of several tasks, people hear of the coder, once; and once that it is answered again."""
    for _ in range(4):
        inside.add({"end": outcome})
    inside.drain()
    assert raised(inside) == [("host/coder:scripted", "host_unhealthy")]
    found = standing(inside, "coder:scripted")
    assert found is not None
    assert found.evidence.startswith(f"3 sessions in a row failed, the last with {outcome}: ")
    well = [inside.add({"say": "hello"}) for _ in range(2)]
    inside.drain()  # another supervisor
    assert {inside.task(uid).state for uid in well} == {TaskState.COMPLETED}
    assert raised(inside) == [("host/coder:scripted", "host_unhealthy"), ("host/coder:scripted", "host_recovered")]


def test_a_plan_limit_that_all_sessions_meet_is_told(inside: InHouse) -> None:
    """Those that were under way when the limit was met fail one after the other: that is told once."""
    inside.set(max_concurrent=3)
    meets: list[dict[str, Any]] = [
        {"run": f"until [ -e {inside.home.path}/go ]; do sleep 0.02; done"},
        {"limit": 4_000_000_000_000},
    ]
    for _ in range(3):
        inside.add(*meets)

    async def scene() -> None:
        async with inside.supervising():
            await inside.until(lambda: len(inside.store.sessions(live=True)) == 3, "their start")
            (inside.home.path / "go").touch()
            await inside.until(lambda: raised(inside), "the alert")

    asyncio.run(scene())
    assert raised(inside) == [("host/coder:scripted", "host_unhealthy")]


def test_what_says_nothing_of_the_coder_is_not_counted(inside: InHouse) -> None:
    """Crashes, one task's own failures, and failures with an answer between them are no fault of the coder."""
    inside.set(max_attempts=4)
    inside.add({"end": "transient"})  # four sessions of one task
    inside.drain()
    inside.set(max_attempts=1)
    inside.add({"say": "hello"})
    for steps in (
        {"end": "transient"},
        {"exit": 7},
        {"exit": 7},
        {"end": "transient"},
        {"say": "hello"},
        {"end": "auth"},
    ):
        inside.add(steps)
    inside.drain()
    assert raised(inside) == []
