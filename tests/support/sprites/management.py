"""The management half of the stand-in: sprites made, listed, shown, changed and destroyed. It wakes none."""

from __future__ import annotations

import re
import time
from collections import Counter
from collections.abc import Awaitable, Callable

from aiohttp import web

from tests.support.sprites.faults import ApiFaults
from tests.support.sprites.machine import MACHINE, Machine
from tests.support.sprites.wire import refused

NAME = re.compile(r"[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?")
MOST_LISTED = 50


class Management:
    """The sprites of one account."""

    def __init__(
        self,
        machines: dict[str, Machine],
        faults: ApiFaults,
        make: Callable[[str], Awaitable[Machine]],
        destroy: Callable[[Machine], Awaitable[None]],
    ) -> None:
        self._machines = machines
        self._faults = faults
        self._make = make
        self._destroy = destroy
        self._made: list[float] = []

    async def listed(self, request: web.Request) -> web.Response:
        """A page of them, by name."""
        faults, token = self._faults, request.query.get("continuation_token", "")
        shown = {} if faults.nothing_listed else self._machines
        names = sorted(name for name, machine in shown.items() if not machine.faults.vanished)
        names = [name for name in names if name.startswith(request.query.get("prefix", ""))]
        left = [name for name in names if name > token] if not faults.same_token else names
        page = left[: min(int(request.query.get("max_results") or MOST_LISTED), MOST_LISTED)]
        more = len(page) < len(left)
        counts = Counter(machine.status for machine in shown.values())
        following = token or "again" if faults.same_token else page[-1] if more else None
        return web.json_response(
            {
                "sprites": [shown[name].told() for name in page],
                "has_more": more or faults.endless_pages or faults.same_token,
                "next_continuation_token": following,
                **{status: counts[status] for status in ("running", "warm", "cold")},
            }
        )

    async def create(self, request: web.Request) -> web.Response:
        """Make one; a name is given once."""
        body = await request.json()
        name = body.get("name", "")
        if not NAME.fullmatch(name):
            return refused(400, {"errors": ["invalid sprite name format"]})
        if name in self._machines:
            return refused(409, f"A sprite named '{name}' already exists. Please choose a different name.")
        limit = self._faults.creation_limit
        recent = [when for when in self._made if when > time.time() - 60]
        if limit is not None and len(recent) >= limit:
            told = {"error": "sprite_creation_rate_limited", "limit": limit, "window_seconds": 60}
            return refused(429, {**told, "retry_after_seconds": 30}, {"Retry-After": "30"})
        self._made.append(time.time())
        machine = await self._make(name)
        machine.labels = body.get("labels") or []
        machine.url_auth = (body.get("url_settings") or {}).get("auth", "sprite")
        return web.json_response(machine.told(), status=201)

    async def shown(self, request: web.Request) -> web.Response:
        """One of them."""
        return web.json_response(request[MACHINE].told())

    async def update(self, request: web.Request) -> web.Response:
        """Change what may be changed."""
        machine, body = request[MACHINE], await request.json()
        if settings := body.get("url_settings"):
            if settings.get("auth") not in ("sprite", "public"):
                return refused(400, {"errors": ["invalid auth type, must be one of: sprite, public"]})
            machine.url_auth = settings["auth"]
        machine.labels = body.get("labels", machine.labels)
        machine.updated = time.time()
        return web.json_response(machine.told())

    async def destroy(self, request: web.Request) -> web.Response:
        """End it, with all that is on it."""
        await self._destroy(request[MACHINE])
        return web.Response(status=204)
