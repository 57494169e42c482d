"""What the loops share: the store, the home, the settings in force, and who we are."""

from __future__ import annotations

import asyncio
import os
import random
import traceback
from collections.abc import Callable, Mapping
from typing import Any

import msgspec

from fleet.channels.channel import Channel
from fleet.channels.http import HttpCarrier
from fleet.coders.coder import Coder
from fleet.config.clock import steady_ms
from fleet.config.home import Home
from fleet.config.settings import Settings
from fleet.hosts.transport import Transport
from fleet.model.host import is_local
from fleet.model.session import Defaults
from fleet.sources.source import Source
from fleet.store.store import Store
from fleet.supervisor.faults import Faults
from fleet.supervisor.hosts import Hosts, OpenTransport
from fleet.supervisor.journal import Journal
from fleet.supervisor.site import Site, here


class Only(msgspec.Struct, frozen=True):
    """The one run that a supervisor is there for, and how many tasks it runs at once."""

    run: str
    slots: int


class OnlyPools(msgspec.Struct, frozen=True):
    """A supervisor that is there for the tasks of pools."""


class OnlyVerify(msgspec.Struct, frozen=True):
    """The one task whose verifier a supervisor is there for."""

    task: str


class House:
    """One supervisor's surroundings. `wake` is set by whatever gives the loops something to do."""

    def __init__(
        self,
        *,
        name: str,
        store: Store,
        home: Home,
        settings: Settings,
        transport: Transport,
        machine: str,
        load_coder: Callable[[str, Settings], Coder],
        open_transport: OpenTransport,
        load_channel: Callable[[str], Channel],
        carrier: HttpCarrier,
        secrets: Callable[[str], str | None],
        journal: Journal,
        coder: str | None = None,
        model: str | None = None,
        lease_seconds: float = 30.0,
        at: Callable[[str], object] = lambda _: None,
        mirror: Callable[[], object] = lambda: None,
        source: Source | None = None,
        only: Only | OnlyPools | OnlyVerify | None = None,
    ) -> None:
        self.name = name
        self.store = store
        self.home = home
        self.settings = settings
        self.machine = machine
        self.journal = journal
        self.lease_seconds = lease_seconds
        self.at = at  # told of each step of a session; tests end the process there
        self.wake = asyncio.Event()
        self._load_coder = load_coder
        self.load_channel = load_channel
        self.carrier = carrier  # by which alerts leave
        self._secrets = secrets
        self._coders: dict[str, Coder] = {}
        self._coder, self._model = coder, model
        self.paused_coders: dict[str, int] = {}  # until when, by a clock that nobody sets
        self.mirror = mirror
        self.source = source  # the outside queue that feeds ours, where there is one
        self.only = only
        self.occupied: dict[str, float] = {}  # slots of pools that somebody uses; until when, by the loop's clock
        self.faults = Faults(self)
        self.hosts = Hosts(self, here(machine, transport, home), open_transport)

    @property
    def alone(self) -> bool:
        """Whether no other supervisor can share this queue: SQLite has one at a time."""
        return not self.settings.store.url

    @property
    def slots(self) -> int:
        """How many sessions we run at once."""
        if isinstance(self.only, OnlyVerify):
            return 1
        if isinstance(self.only, OnlyPools):
            return 0
        return self.only.slots if self.only is not None else self.settings.supervisor.max_concurrent

    def runs(self) -> frozenset[str] | None:
        """The runs whose tasks we take: ours, and those that were handed to us since. None: all tasks."""
        if not isinstance(self.only, Only):
            return None
        ours = self.store.run(self.only.run)
        active = self.store.active_runs()
        newer = {run.id for run in active if run.max_workers and run.created_at >= ours.created_at}
        return frozenset({ours.id} | newer)

    @property
    def place(self) -> str:
        """Where our sessions are: this machine, and the directory that they are kept in."""
        return f"{self.machine}:{os.path.realpath(self.home.path)}"

    @property
    def defaults(self) -> Defaults:
        """What a task inherits: what this supervisor was told, else the settings."""
        configured = self.settings.supervisor
        coder = self._coder or configured.coder
        model = self._model or (configured.inherited_model if coder == configured.coder else "")
        return Defaults(coder=coder, model=model)

    @property
    def shares(self) -> bool:
        """Whether several agents may work in one directory at once: by the settings, or each has its own worktree."""
        configured = self.settings.supervisor
        return configured.share_directories or configured.isolation == "worktree" or self.defaults.coder == "command"

    def site(self, host: str) -> Site:
        """A host by its name, as a session keeps it."""
        return self.hosts.site(host)

    def reaches(self, host: str | None) -> bool:
        """Whether work for a host is ours to do: this machine's own, and that of machines that are reached from any."""
        return host is None or host == self.machine or not is_local(host)

    def coder(self, name: str) -> Coder:
        """A coder, loaded once."""
        if name not in self._coders:
            self._coders[name] = self._load_coder(name, self.settings)
        return self._coders[name]

    def take(self, settings: Settings) -> None:
        """New settings are in force from now on."""
        if settings.coders != self.settings.coders:
            self._coders.clear()  # they are made of what it says of them
        self.settings = settings

    def secrets_for(self, names: tuple[str, ...]) -> Mapping[str, str]:
        """The values of the secrets that a launch names, where there are any."""
        found = {name: self._secrets(name) for name in names}
        return {name: value for name, value in found.items() if value is not None}

    def secret(self, name: str) -> str | None:
        """The value of one named secret, where there is one."""
        return self._secrets(name)

    def pause(self, coder: str, until: int) -> None:
        """Start nothing with a coder until then, by the store's clock as it is now."""
        later = steady_ms() + max(0, until - self.store.now())
        self.paused_coders[coder] = max(later, self.paused_coders.get(coder, 0))

    def paused(self) -> frozenset[str]:
        """The coders that must wait now."""
        now = steady_ms()
        self.paused_coders = {name: until for name, until in self.paused_coders.items() if until > now}
        return frozenset(self.paused_coders)

    def jitter(self) -> float:
        """A number from 0 to 1, so that not everybody comes back at once."""
        return random.random()

    def log(self, event: str, **fields: Any) -> None:
        """A line in the supervisor's own log. Nothing reads it to learn state."""
        if not self.alone:
            fields = {"supervisor": self.name} | fields
        self.journal.write(event, **fields)

    def log_fault(self, event: str, exc: Exception, **fields: Any) -> None:
        """The same of what nobody expected: with the place that raised it."""
        told = f"{type(exc).__name__}: {exc}"
        self.log(event, error=told, traceback=traceback.format_exception(exc), **fields)
