"""The stand-in as a server: its doors, its loop in a thread of its own, and everything gone at the end."""

from __future__ import annotations

import asyncio
import contextlib
import shutil
import tempfile
import threading
from collections.abc import Awaitable, Callable, Coroutine, Iterator
from pathlib import Path
from typing import Any, TypeVar

from aiohttp import web

from tests.support.sprites import filesystem
from tests.support.sprites.commands import Commands
from tests.support.sprites.faults import ApiFaults
from tests.support.sprites.machine import MACHINE, Machine
from tests.support.sprites.management import Management
from tests.support.sprites.tasks import Tasks
from tests.support.sprites.wire import Refused, refused

T = TypeVar("T")
Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]
TOKEN = "org/1/2/test-token"
LONGEST_LINE = 1 << 20  # commands travel in the address
TICK_SECONDS = 0.05
SECONDS = 20.0


class StandIn:
    """A server on a loopback port."""

    def __init__(self, root: Path, *, idle_seconds: float = 30.0, cold_seconds: float = 600.0) -> None:
        self.root = root
        self.faults = ApiFaults()
        self.machines: dict[str, Machine] = {}
        self.asked: list[tuple[str, str]] = []  # method, and path with its query
        self.inside = 0  # requests that are being dealt with
        self.tasks: dict[str, Tasks] = {}
        self._clocks = {"idle_seconds": idle_seconds, "cold_seconds": cold_seconds}
        self._loop = asyncio.new_event_loop()
        self._inner: dict[str, web.AppRunner] = {}

    @property
    def url(self) -> str:
        """Where it listens."""
        return f"http://127.0.0.1:{self.port}"

    def sprite(self, name: str) -> Machine:
        """One that is there, or a new one."""
        return self.machines.get(name) or self.do(self._make(name))

    def remove(self, machine: Machine) -> None:
        """End it and all that runs on it. Whatever is still on its way there finds nobody."""
        self.do(self._destroy(machine))

    def do(self, work: Coroutine[Any, Any, T]) -> T:
        """Run something on the server's own loop."""
        return asyncio.run_coroutine_threadsafe(work, self._loop).result(SECONDS)

    def call(self, act: Callable[..., T], *given: Any, **named: Any) -> T:
        """Call something on the server's own loop."""

        async def called() -> T:
            return act(*given, **named)

        return self.do(called())

    # its life

    def start(self) -> None:
        """Listen."""
        self._thread = threading.Thread(target=self._loop.run_forever, name="sprites", daemon=True)
        self._thread.start()
        self.do(self._start())

    def stop(self) -> None:
        """End every process and every connection."""
        self.do(self._stop())
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(SECONDS)
        self._loop.close()

    async def _start(self) -> None:
        self._runner = web.AppRunner(
            self._app(), max_line_size=LONGEST_LINE, max_field_size=LONGEST_LINE, shutdown_timeout=0.1
        )
        await self._runner.setup()
        site = web.TCPSite(self._runner, "127.0.0.1", 0)
        await site.start()
        self.port: int = self._runner.addresses[0][1]
        self._ticking = asyncio.create_task(self._tick())

    async def _tick(self) -> None:
        while True:
            await asyncio.sleep(TICK_SECONDS)
            for machine in list(self.machines.values()):
                machine.tick()

    async def _stop(self) -> None:
        self._ticking.cancel()
        for machine in list(self.machines.values()):
            await self._destroy(machine)
        await self._runner.cleanup()
        left = asyncio.all_tasks() - {asyncio.current_task()}
        for each in left:
            each.cancel()
        await asyncio.gather(*left, return_exceptions=True)
        await self._loop.shutdown_default_executor()

    async def _make(self, name: str) -> Machine:
        machine = Machine(name, self.root / name, **self._clocks)
        self.tasks[name] = Tasks(machine)
        runner = self._inner[name] = web.AppRunner(self.tasks[name].app())
        await runner.setup()
        await web.UnixSite(runner, str(machine.socket)).start()
        self.machines[name] = machine
        return machine

    async def _destroy(self, machine: Machine) -> None:
        processes = list(machine.processes.values())
        machine.destroy()
        for process in processes:
            await process.exited.wait()
        await self._inner.pop(machine.name).cleanup()
        del self.machines[machine.name]
        shutil.rmtree(machine.root, ignore_errors=True)

    # its doors

    def _app(self) -> web.Application:
        management = Management(self.machines, self.faults, self._make, self._destroy)
        commands = Commands(self.faults)
        app = web.Application(middlewares=[self._door], client_max_size=1 << 30)
        add, one = app.router.add_route, "/v1/sprites/{name}"
        add("GET", "/v1/sprites", management.listed)
        add("POST", "/v1/sprites", management.create)
        add("GET", one, management.shown)
        add("PUT", one, management.update)
        add("DELETE", one, management.destroy)
        add("GET", f"{one}/exec", commands.get)
        add("POST", f"{one}/exec", commands.post)
        add("GET", f"{one}/exec/{{number}}", commands.attach)
        add("POST", f"{one}/exec/{{number}}/kill", commands.kill)
        add("*", f"{one}/fs/{{operation}}", filesystem.answer)
        return app

    @web.middleware
    async def _door(self, request: web.Request, handler: Handler) -> web.StreamResponse:
        self.asked.append((request.method, request.path_qs))
        self.inside += 1
        try:
            await self._enter(request)
            return await handler(request)
        except Refused as exc:
            return refused(*exc.answer)
        finally:
            self.inside -= 1

    async def _enter(self, request: web.Request) -> None:
        if request.headers.get("Authorization") != f"Bearer {TOKEN}":
            raise Refused(401, "authentication failed")
        if self.faults.refuse and self.faults.refuse_times != 0:
            if self.faults.refuse_times is not None:
                self.faults.refuse_times -= 1
            after = self.faults.retry_after
            raise Refused(self.faults.refuse, "failed to retrieve sprite", {"Retry-After": after} if after else None)
        name = request.match_info.get("name")
        if name is None:
            return
        machine = self.machines.get(name)
        if machine is None or machine.faults.vanished:
            raise Refused(404, "sprite not found")
        if machine.faults.refuse:
            raise Refused(machine.faults.refuse, "injected")
        request[MACHINE] = machine
        if request.path.rstrip("/").count("/") > 3:  # all below the sprite itself is answered by the machine
            running = sum(each.status == "running" for each in self.machines.values())
            await machine.wake(running, self.faults.running_limit)
            if self.machines.get(name) is not machine:  # removed while it woke
                raise Refused(404, "sprite not found")


@contextlib.contextmanager
def stand_in(**given: float) -> Iterator[StandIn]:
    """A server that listens, in a directory with a short name."""
    root = Path(tempfile.mkdtemp(prefix="fleet-sprites-", dir="/tmp"))
    try:
        server = StandIn(root, **given)
        server.start()
        try:
            yield server
        finally:
            server.stop()
    finally:
        shutil.rmtree(root, ignore_errors=True)
