"""The verbs of hosts: declare one, take it out, probe it, let it drain, use it again."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from fnmatch import fnmatchcase
from typing import Any

from msgspec.structs import replace

from fleet.config import declaring
from fleet.config.home import Home
from fleet.config.machines import Health
from fleet.config.machines import Host as Declared
from fleet.errors import Ambiguous, Conflict, NotFound
from fleet.hosts.probe import probe
from fleet.hosts.transport import Transport
from fleet.model.host import Host
from fleet.model.ids import some_of
from fleet.model.reach import Reach
from fleet.policy.health import denial, denied, fault_of
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
        name = self._one(self._meant(name) or [name])
        live = [session.id for session in self._store.sessions(live=True) if session.host == name]
        if live:
            raise Conflict(
                f"host {name} has {'a session' if len(live) == 1 else f'{len(live)} sessions'}: {', '.join(live[:5])}",
                hint=f"`fleet hosts drain {name}` gives it no more; remove it when they have ended",
            )
        declaring.remove_host(self._home, name)

    def drain(self, name: str) -> Host:
        """Give a host no new work; what runs on it goes on."""
        return self._drain(name, draining=True)

    def resume(self, name: str) -> Host:
        """Give a host work again."""
        return self._drain(name, draining=False)

    def probe(self, names: Sequence[str] = ()) -> list[Host]:
        """Ask hosts whether they answer and have what sessions need, all at once; what they say is kept."""
        wanted = {name: self._declared[name] for word in names for name in self._known(word)} or dict(self._declared)
        return asyncio.run(self._probe(wanted))

    def _drain(self, word: str, *, draining: bool) -> Host:
        name = self._one(self._known(word))
        return self._store.drain(name, self._declared[name].kind, draining=draining, by=self._by).result()

    async def _probe(self, wanted: Mapping[str, Reach]) -> list[Host]:
        asked = (probe(name, reach, self._open(reach), seconds=self._seconds) for name, reach in wanted.items())
        found = await asyncio.gather(*asked)
        known = {host.name: host for host in self._store.hosts()}
        return [
            await self._store.probed(
                _judged(each.host, known),
                by=self._by,
                alert_after=self._health.alert_after,
                keep_days=self._health.keep_days,
            )
            for each in found
        ]

    def _one(self, found: list[str]) -> str:
        if len(found) > 1:
            raise Ambiguous(f"several hosts are meant: {', '.join(found)}", hint="name one of them")
        return found[0]

    def _known(self, word: str) -> list[str]:
        """The hosts that a word means; raises NotFound where there is none."""
        found = self._meant(word)
        if not found:
            hint = f"there are: {some_of(self._declared)}; `fleet hosts add` adds one"
            raise NotFound(f"no host `{word}` that sessions run on", hint=hint)
        return found

    def _meant(self, word: str) -> list[str]:
        """By its own name, by what its provider calls it, or by * and ? in either."""
        if word in self._declared:
            return [word]
        called = {name: reach.api_name for name, reach in self._declared.items() if isinstance(reach, Declared)}
        exact = [name for name, api_name in called.items() if api_name == word]
        return exact or [
            name for name in self._declared if fnmatchcase(name, word) or fnmatchcase(called.get(name, ""), word)
        ]


def _judged(host: Host, known: Mapping[str, Host]) -> Host:
    """As a probe found it; of one that its provider denies, as every other look would tell it."""
    if host.state != "unknown":
        return host
    before = known.get(host.name)
    reason = denial(host.evidence, (before.failures if before else 0) + 1)
    return denied(replace(host, status="not_found"), before, reason, api_fault=fault_of(known))
