"""A supervisor inside the test's own process, on a real SQLite home, with real agents."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any, TypeVar

import msgspec

from fleet import wiring
from fleet.config.home import Home
from fleet.config.load import load
from fleet.control.control import Control
from fleet.model.states import TaskState
from fleet.model.task import Task
from fleet.store.store import Store
from fleet.supervisor.house import House
from fleet.supervisor.supervisor import Supervised, Supervisor
from fleet.testing.audit import audit
from fleet.testing.builders import a_task
from tests.support.homes import make
from tests.support.leftovers import LEFT
from tests.support.session_host import processes_with

T = TypeVar("T")
SECONDS = 20.0
QUICK = {"coder": "scripted", "backoff_seconds": 0, "grace_seconds": 1}


class InHouse:
    """One home and what a test asks of it."""

    def __init__(self, path: Path, **settings: Any) -> None:
        self.home: Home = make(path / "home")
        self.settings: dict[str, Any] = {}
        self.set(**(QUICK | settings))
        self.store: Store = wiring.open_store(self.home, load(self.home))

    def close(self) -> None:
        """The ledger is right, and nothing is left of the agents soon after."""
        audit(self.store)
        self.store.close()
        LEFT.end_within(SECONDS, *self.places())

    def places(self) -> list[Path]:
        """Where its sessions are."""
        return [self.home.path]

    def set(self, **settings: Any) -> None:
        """Write fleet.toml."""
        self.settings |= settings
        lines = [f"{name} = {json.dumps(value)}" for name, value in self.settings.items()]
        self.home.toml.write_text("\n".join(["[supervisor]", *lines, ""]))

    def house(self, **changes: Any) -> House:
        """The surroundings of one more supervisor."""
        house = wiring.open_house(self.home, load(self.home), coder=None, model=None, echo=None)
        for name, value in changes.items():
            setattr(house, name, value)
        return house

    def add(self, *steps: dict[str, Any], **fields: Any) -> str:
        """A task whose agent does these steps; or a shell script as `command`."""
        if command := fields.pop("command", None):
            new = a_task("work", description=command, coder="command", **fields)
        else:
            new = a_task("work", description=f"@@scripted {json.dumps(steps)}", **fields)
        (task,) = self.store.submit([new], by="ana").result()
        return task.uid

    def drain(self, **changes: Any) -> Supervised:
        """Let a supervisor do all there is to do."""

        async def work() -> Supervised:
            house = self.house(**changes)
            try:
                async with asyncio.timeout(SECONDS):
                    return await Supervisor(house, drain=True).run()
            finally:
                house.store.close()

        return asyncio.run(work())

    @contextlib.asynccontextmanager
    async def supervising(self, **changes: Any) -> AsyncIterator[Supervisor]:
        """A supervisor at work; told to stop afterwards, and waited for."""
        house = self.house(**changes)
        supervisor = Supervisor(house)
        running = asyncio.get_running_loop().create_task(supervisor.run())
        try:
            yield supervisor
        finally:
            supervisor.stop()
            async with asyncio.timeout(SECONDS):
                await running
            house.store.close()

    async def until(self, true: Callable[[], T], what: str = "it", *, seconds: float = SECONDS) -> T:
        """Wait for a fact."""
        async with asyncio.timeout(seconds):
            while not (found := true()):
                await asyncio.sleep(0.01)
        return found

    async def until_state(self, uid: str, state: TaskState) -> Task:
        """Wait until a task stands there."""
        await self.until(lambda: self.task(uid).state is state, f"{uid} {state}")
        return self.task(uid)

    def task(self, uid: str) -> Task:
        """A task as it stands."""
        return self.store.task(uid)

    def said(self, uid: str) -> list[dict[str, Any]]:
        """What its agents said."""
        file = self.home.task_dir(uid) / "log.jsonl"
        records = [msgspec.json.decode(line) for line in file.read_bytes().splitlines()] if file.exists() else []
        return [record["said"] for record in records if "said" in record]

    def logged(self, event: str) -> list[dict[str, Any]]:
        """The lines of the supervisor's log about one thing."""
        lines = [line for file in self.home.logs.glob("fleet-*.jsonl") for line in file.read_bytes().splitlines()]
        return [record for line in lines if (record := msgspec.json.decode(line))["event"] == event]

    @contextlib.contextmanager
    def control(self) -> Any:
        """The verbs, in a person's name."""
        with contextlib.closing(wiring.open_control(self.home, load(self.home), by="ana")) as control:
            assert isinstance(control, Control)
            yield control

    def left(self) -> list[int]:
        """The processes of this home's sessions."""
        return processes_with(os.fsencode(self.home.path))
