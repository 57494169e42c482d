"""The verbs of hosts: declare one, take it out, probe it, let it drain, use it again."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from fleet.config import declaring
from fleet.config.home import Home
from fleet.config.machines import Health
from fleet.errors import Conflict, NotFound
from fleet.hosts.probe import probe
from fleet.hosts.transport import Transport
from fleet.model.host import Host
from fleet.model.reach import Reach
from fleet.store.store import Store


class HostVerbs:
    """Verbs, in one person's name. `declared` are the machines that the settings describe, by name."""

    def __init__(
        self,
        store: Store,
        home: Home,
        *,
        by: str,
        declared: Mapping[str, Reach],
        open_transport: Callable[[Reach], Transport],
        probe_seconds: float,
        health: Health,
    ) -> None:
        self._store = store
        self._home = home
        self._by = by
        self._declared = declared
        self._open = open_transport
        self._seconds = probe_seconds
        self._health = health

    def close(self) -> None:
        """Let go of the store."""
        self._store.close()

    def add(self, name: str, assignments: Sequence[str]) -> dict[str, Any]:
        """Declare a host in fleet.toml. A supervisor that is up takes it at once."""
        return declaring.add_host(self._home, name, assignments)

    def remove(self, name: str) -> None:
        """Take a host out of fleet.toml; refused while a session is on it."""
        live = [session.id for session in self._store.sessions(live=True) if session.host == name]
        if live:
            raise Conflict(
                f"host {name} has {len(live)} sessions: {', '.join(live[:5])}",
                hint=f"`fleet hosts drain {name}` gives it no more; remove it when they have ended",
            )
        declaring.remove_host(self._home, name)

    def drain(self, name: str) -> Host:
        """Give a host no new work; what runs on it goes on."""
        return self._store.drain(name, self._reach(name).kind, draining=True, by=self._by).result()

    def resume(self, name: str) -> Host:
        """Give a host work again."""
        return self._store.drain(name, self._reach(name).kind, draining=False, by=self._by).result()

    def probe(self, names: Sequence[str] = ()) -> list[Host]:
        """Ask hosts whether they answer and have what sessions need, all at once; what they say is kept."""
        wanted = {name: self._reach(name) for name in names} or dict(self._declared)
        return asyncio.run(self._probe(wanted))

    async def _probe(self, wanted: Mapping[str, Reach]) -> list[Host]:
        asked = (probe(name, reach, self._open(reach), seconds=self._seconds) for name, reach in wanted.items())
        found = await asyncio.gather(*asked)
        return [
            await self._store.probed(
                each.host, by=self._by, alert_after=self._health.alert_after, keep_days=self._health.keep_days
            )
            for each in found
        ]

    def _reach(self, name: str) -> Reach:
        if name not in self._declared:
            known = ", ".join(sorted(self._declared)) or "none"
            hint = f"there are: {known}; `fleet hosts add` adds one"
            raise NotFound(f"no host `{name}` that sessions run on", hint=hint)
        return self._declared[name]
