"""The API that a sprite has inside, on a socket of its own: tasks that keep it awake."""

from __future__ import annotations

import time

from aiohttp import web

from tests.support.sprites.machine import Machine
from tests.support.sprites.wire import as_seconds, as_time, refused

LONGEST_SECONDS = 3600.0


class Tasks:
    """The tasks of one machine."""

    def __init__(self, machine: Machine) -> None:
        self._machine = machine
        self.calls: list[tuple[str, str]] = []

    def app(self) -> web.Application:
        """Its routes."""
        app = web.Application()
        app.router.add_get("/v1/tasks", self.listed)
        app.router.add_put("/v1/tasks/{name}", self.hold)
        app.router.add_get("/v1/tasks/{name}", self.shown)
        app.router.add_delete("/v1/tasks/{name}", self.release)
        return app

    async def listed(self, request: web.Request) -> web.Response:
        """All of them."""
        return web.json_response({"tasks": [self._told(name) for name in self._machine.tasks]})

    async def hold(self, request: web.Request) -> web.Response:
        """Make one, or prolong it."""
        name = self._called(request)
        seconds = as_seconds((await request.json()).get("expire"), 300)
        if not 0 < seconds <= LONGEST_SECONDS:
            return refused(400, "expire must be at most 1h")
        self._machine.tasks[name] = time.time() + seconds
        self._machine.touch()
        return web.json_response(self._told(name))

    async def shown(self, request: web.Request) -> web.Response:
        """One of them."""
        name = self._called(request)
        return web.json_response(self._told(name)) if name in self._machine.tasks else refused(404, "no such task")

    async def release(self, request: web.Request) -> web.Response:
        """It keeps the machine awake no more."""
        gone = self._machine.tasks.pop(self._called(request), None)
        return web.Response(status=204) if gone else refused(404, "no such task")

    def _called(self, request: web.Request) -> str:
        name = request.match_info["name"]
        self.calls.append((request.method, name))
        return name

    def _told(self, name: str) -> dict[str, str]:
        return {"name": name, "expires_at": as_time(self._machine.tasks[name])}
