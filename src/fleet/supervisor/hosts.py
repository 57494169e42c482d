"""Hosts: every machine that this supervisor reaches, followed and probed, each by itself: one cannot slow another."""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import Callable, Coroutine
from functools import partial
from typing import TYPE_CHECKING, Any

from msgspec.structs import replace

from fleet.config.settings import Settings
from fleet.errors import FleetError
from fleet.hosts.probe import probe, sighted
from fleet.hosts.transport import SupportsSight, Transport
from fleet.hosts.watcher import Watcher
from fleet.model.host import Host
from fleet.model.reach import Reach
from fleet.policy.health import held
from fleet.policy.placement import reach_of
from fleet.supervisor.site import Nowhere, Site, place_of, there

if TYPE_CHECKING:
    from fleet.supervisor.house import House

CALM_SECONDS = 15.0  # between two probes of a host that answers
RETRY_SECONDS = (1.0, 2.0, 5.0, 10.0, 15.0)  # of one that does not
OpenTransport = Callable[[Reach, Settings], Transport]
TOLD_SECONDS = 60.0  # how old what the store knows may be, while nothing changes


class Hosts:
    """The sites of one supervisor. `run` is the loop: it watches and probes whatever was asked for."""

    def __init__(self, house: House, here: Site, open_transport: OpenTransport) -> None:
        self.here = here
        self.health: dict[str, Host] = {}  # as our own probes found them
        self._house = house
        self._open = open_transport
        self._sites: dict[str, Site] = {}
        self._probed: set[str] = set()
        self._doubted: dict[str, asyncio.Event] = {}  # set: probe it at once
        self._new: asyncio.Queue[Callable[[], Coroutine[Any, Any, None]]] = asyncio.Queue()  # what to begin with a host

    def site(self, name: str) -> Site:
        """A host by its name. One that nothing describes any more is there, but does not answer."""
        if name == self.here.name:
            return self.here
        reach = self._reach(name)
        known = self._sites.get(name)
        if known is not None and (known.reach == reach or (reach is None and isinstance(known.transport, Nowhere))):
            return known
        if reach is None:
            lost = Reach(kind="sprite", working_directory="/nowhere")
            site = there(name, Nowhere(name), lost, self._house.log)
        else:
            site = there(name, self._open(reach, self._house.settings), reach, self._house.log)
        self._sites[name] = site
        if isinstance(site.follower, Watcher):
            self._new.put_nowait(site.follower.run)
        return site

    def is_at(self, name: str, site: Site) -> bool:
        """Whether a host is the machine and directory of a site; each run that describes a machine names it anew."""
        if name == site.name or site.reach is None:
            return name == site.name
        reach = self._reach(name)
        return reach is not None and place_of(reach) == place_of(site.reach)

    def attend(self, name: str) -> None:
        """See to it that a host is probed from now on."""
        if name not in self._probed:
            self._probed.add(name)
            self._new.put_nowait(partial(self._probing, name))

    def may_answer(self, name: str) -> bool:
        """Whether a host answered its last probe; one that was never probed is from now on."""
        if name == self.here.name:
            return True
        self.attend(name)
        known = self.health.get(name)
        return known is not None and known.state == "up"

    def doubt(self, name: str, evidence: str) -> None:
        """A host did not do what it should: it takes nothing new until a probe says otherwise."""
        known = self.health.get(name)
        if known is not None and known.state == "up":
            self.health[name] = replace(known, state="down", evidence=evidence)
            self._doubted.setdefault(name, asyncio.Event()).set()

    async def run(self) -> None:
        """Until cancelled."""
        async with asyncio.TaskGroup() as group:
            while True:
                begin = await self._new.get()
                group.create_task(begin())

    async def _probing(self, name: str) -> None:
        """Probe a host for as long as something describes it; what does is in the store, which may be away."""
        while True:
            try:
                await self._probe_on(name)
                break
            except (FleetError, OSError) as exc:
                self._house.log("probes_delayed", host=name, error=str(exc))
            except Exception as exc:  # of one host; the others are probed all the same
                self._house.log_fault("probes_delayed", exc, host=name)
                self.health.pop(name, None)  # what was known of it is old
            await asyncio.sleep(RETRY_SECONDS[0])
        self._probed.discard(name)
        self.health.pop(name, None)

    async def _probe_on(self, name: str) -> None:
        failures, told_at = 0, 0.0
        while self._reach(name) is not None:
            found = await self.probe(name)
            before = self.health.get(name)
            self.health[name] = found
            if found.status and self._probed <= self.health.keys():  # else not all of them were asked yet
                found = self.health[name] = held(found, await self._house.faults.of_machines(self.health))
            failures = 0 if found.state == "up" else failures + 1
            changed = before is None or (before.state, before.evidence) != (found.state, found.evidence)
            if changed or time.monotonic() - told_at > TOLD_SECONDS:
                told_at = time.monotonic()
                await self._tell(found)
            if changed:
                self._house.log("host_probed", host=name, state=found.state, evidence=found.evidence)
                self._house.wake.set()
            wait = RETRY_SECONDS[min(failures, len(RETRY_SECONDS)) - 1] if failures else CALM_SECONDS
            doubted = self._doubted.setdefault(name, asyncio.Event())
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(wait):
                    await doubted.wait()
            doubted.clear()

    async def _tell(self, found: Host) -> None:
        try:
            kept = self._house.settings.health
            await self._house.store.probed(
                found, by=self._house.name, alert_after=kept.alert_after, keep_days=kept.keep_days
            )
        except (FleetError, OSError) as exc:  # it is told again when something changes, or in a while
            self._house.log("probe_not_told", host=found.name, error=str(exc))

    async def probe(self, name: str) -> Host:
        """One probe. What it finds is a value, whatever it is."""
        site = self.site(name)
        assert site.reach is not None
        known = self.health.get(name)
        status = ""
        if isinstance(site.transport, SupportsSight):
            seen = await sighted(name, site.reach, site.transport)
            if seen.state != "up" or (known is not None and known.state == "up"):
                return seen  # a provider that fails says nothing of its machines: none of them is down for it
            status = seen.status
        found = await probe(name, site.reach, site.transport, seconds=self._house.settings.timeouts.health_probe)
        site.as_root = found.as_root
        return replace(found.host, status=status)

    def _reach(self, name: str) -> Reach | None:
        """How a host is reached: by the settings, or by the run that brought it."""
        return reach_of(name, self._house.settings, self._house.store.run)
