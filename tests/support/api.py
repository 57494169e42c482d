"""The API of a home, asked in this process: no socket, but all of the application with its gate."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
from msgspec.structs import replace

from fleet import wiring
from fleet.api.app import make_app
from fleet.api.desk import Desk
from fleet.config import tokens
from fleet.config.home import Home
from fleet.config.serving import Api
from fleet.config.settings import Settings
from fleet.config.tokens import Role
from tests.support import homes


class Asked:
    """A home, its store, and one who asks. Each role has a token, and the name `ROLE-person`."""

    def __init__(self, home: Home, desk: Desk, api: Api) -> None:
        self.home = home
        self.desk = desk
        self.store = desk.store
        self.told: list[str] = []
        self.tokens = {role: tokens.add(home, f"{role.value}-person", role).secret for role in Role}
        self._app = make_app(desk, api)

    def ask(
        self, method: str, path: str, *, role: Role | None = Role.ADMIN, headers: Any = (), **how: Any
    ) -> httpx.Response:
        """One request, and the whole answer."""
        shown = {"authorization": f"Bearer {self.tokens[role]}"} if role else {}
        every = [*shown.items(), *(headers.items() if isinstance(headers, dict) else headers)]

        async def send() -> httpx.Response:
            transport = httpx.ASGITransport(self._app, raise_app_exceptions=False)  # type: ignore[arg-type]
            async with httpx.AsyncClient(transport=transport, base_url="http://127.0.0.1:7878") as client:
                return await client.request(method, path, headers=every, timeout=30, **how)

        return asyncio.run(send())

    def get(self, path: str, **how: Any) -> Any:
        """What is answered to a look that must succeed."""
        found = self.ask("GET", f"/v1/fleet{path}", **how)
        assert found.status_code == 200, found.text
        return found.json()

    def post(self, path: str, body: Any = None, **how: Any) -> httpx.Response:
        """The answer to something that is to be done."""
        return self.ask("POST", f"/v1/fleet{path}", json=body, **how)


@contextlib.contextmanager
def asked(path: Path, **settings: Any) -> Iterator[Asked]:
    """The API of a new home."""
    home = homes.make(path / "home")
    home.toml.write_text("")
    home.tasks.mkdir(exist_ok=True)
    api = replace(Api(), **settings)
    told: list[str] = []
    desk = wiring.open_desk(home, replace(Settings(), api=api), report=told.append)
    try:
        found = Asked(home, desk, api)
        found.told = told
        yield found
    finally:
        desk.hub.end()
        desk.close()
