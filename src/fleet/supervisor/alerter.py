"""The alerter: reads the feed with a cursor of its own, and announces what channels are to be told.

An alert is recorded before it is sent, with how far the feed was read, in one transaction: it is told at least once,
and what a dead supervisor may have told already says so. The reading happens in a thread and each channel has a task of
its own, so that a receiver that hangs delays neither the supervisor nor the other channels.
"""

from __future__ import annotations

import asyncio
import contextlib

import msgspec
from msgspec.structs import replace

from fleet.channels.channel import SupportsResolve
from fleet.errors import FleetError, NotFound
from fleet.model import event as ev
from fleet.model.alert import AlertKind
from fleet.model.alert_spec import channel_kind
from fleet.model.delivery import Delivery
from fleet.model.ids import run_subject
from fleet.model.notice import short
from fleet.model.run import Run
from fleet.model.task import Task
from fleet.policy import routing
from fleet.policy.redaction import redact
from fleet.store.reads import BEGINNING
from fleet.supervisor.house import House
from fleet.supervisor.postbox import Postbox

READER = "alerts"
KINDS = ("alert.raised", "task.answered", "task.requeued", "task.settled")
BATCH = 500
LOOK_SECONDS, REST_SECONDS = 5.0, 0.2  # the safety net; and between two looks, however often the bell rings
SAVE_SECONDS = 60.0  # how much may be read again after a crash that had nothing to tell
FLUSH_SECONDS = 5.0


class Looked(msgspec.Struct, frozen=True, kw_only=True):
    """What one look at the feed found."""

    announced: int  # deliveries that are ours to send
    position: str


class Alerter:
    """Announces alerts, and has them sent."""

    def __init__(self, house: House) -> None:
        self._house = house
        self._boxes = Postbox(house)
        self._position = BEGINNING
        self._saved_at = 0.0
        self.wake = asyncio.Event()

    async def begin(self) -> None:
        """Find the place in the feed. Of what was raised before a home had an alerter, nobody is told."""
        store = self._house.store
        self._position = store.cursor(READER)
        if self._position == BEGINNING:
            self._position = store.end()
            await store.advance(READER, self._position)

    async def run(self) -> None:
        """Look when the bell rings. What fails is told and tried again."""
        async with contextlib.AsyncExitStack() as stack:
            stack.push_async_callback(self._house.carrier.close)
            group = await stack.enter_async_context(asyncio.TaskGroup())
            self._boxes.open(group)
            while True:
                self.wake.clear()
                try:
                    await self.run_once()
                except (FleetError, OSError) as exc:
                    self._house.log("alerts_delayed", error=str(exc))
                except Exception as exc:  # nobody's session ends for it
                    self._house.log_fault("alerts_delayed", exc)
                await asyncio.sleep(REST_SECONDS)
                with contextlib.suppress(TimeoutError):
                    async with asyncio.timeout(LOOK_SECONDS):
                        await self.wake.wait()

    async def run_once(self) -> Looked:
        """Announce what is new in the feed, and take over what others left."""
        store = self._house.store
        announced = 0
        if any(each.by != self._house.name for each in await asyncio.to_thread(store.undelivered)):
            for delivery in await store.take_over(by=self._house.name):
                announced += self._boxes.put(delivery)
        while True:
            new, position = await asyncio.to_thread(self._look)
            if position == self._position:
                return Looked(announced=announced, position=position)
            if new or self._is_due():
                for delivery in await store.announce(new, reader=READER, position=position):
                    if delivery.outcome is None:
                        announced += self._boxes.put(delivery)
                    elif delivery.outcome == "dry_run":
                        self._boxes.log_rendered(delivery)
            self._position = position

    async def flush(self, seconds: float = FLUSH_SECONDS) -> None:
        """Wait a little for what is under way. What is left is recorded, and the next supervisor sends it."""
        with contextlib.suppress(TimeoutError, FleetError):
            async with asyncio.timeout(seconds):
                await self.run_once()
                await self._boxes.empty()

    async def once(self, seconds: float) -> None:
        """Send what is new, and end: for a command that may find no supervisor up. `begin` was long before it."""
        await self.begin()
        try:
            async with asyncio.TaskGroup() as group:
                self._boxes.open(group)
                await self.flush(seconds)
                self._boxes.close()
        finally:
            await self._house.carrier.close()

    def _is_due(self) -> bool:
        now = asyncio.get_running_loop().time()
        if now - self._saved_at < SAVE_SECONDS:
            return False
        self._saved_at = now
        return True

    def _look(self) -> tuple[list[Delivery], str]:
        """What the next piece of the feed gives to tell; in a thread, on the store's own snapshot."""
        store = self._house.store
        batch = store.feed(self._position, limit=BATCH, kinds=KINDS)
        new: list[Delivery] = []
        incidents = store.incidents() if batch.entries else []
        for entry in batch.entries:
            new += self._resolving(entry, [*incidents, *new])
            if isinstance(entry.event, ev.AlertRaised):
                new += self._telling(entry, entry.event, new)
        return new, batch.position

    def _resolving(self, entry: ev.Entry, incidents: list[Delivery]) -> list[Delivery]:
        """The incidents that an event ends, where their channel can be told."""
        return [
            replace(
                incident,
                id=f"{entry.hash.hex()[:12]}.{incident.id}",
                action="resolve",
                reason="it is over",
                raised_at=entry.event.at,
                by=self._house.name,
                repeat=False,
                outcome=None,
                attempts=0,
                detail="",
                ended_at=None,
            )
            for incident in incidents
            if incident.resolvable
            and incident.action == "trigger"
            and incident.outcome in (None, "sent")
            and routing.ends(entry.event, incident)
        ]

    def _telling(self, entry: ev.Entry, event: ev.AlertRaised, beside: list[Delivery]) -> list[Delivery]:
        """A delivery for each channel that is to hear of an alert."""
        task, run = self._about(event.subject)
        labels = {**(run.labels if run else {}), **(task.labels if task else {})}
        made = []
        for target in self._targets(event.alert, labels, run):
            try:
                channel = self._house.load_channel(channel_kind(target.adapter))
                can_resolve = isinstance(channel, SupportsResolve)
            except FleetError:
                can_resolve = False  # the sending will tell
            if can_resolve and event.alert is AlertKind.HOST_RECOVERED:
                continue  # it is told by the end of the incident
            scope = f"{target.scope}/" if target.scope else ""
            delivery = Delivery(
                id=f"{entry.hash.hex()[:12]}.{scope}{target.name}",
                channel=target.name,
                scope=target.scope,
                about=event.subject,
                alert=event.alert,
                reason=short(redact(event.reason)),
                run=run.id if run else None,
                task=task.uid if task else None,
                worker=event.worker,
                session=event.session,
                status=task.state.value if task else run.state.value if run else "",
                raised_at=event.at,
                by=self._house.name,
                resolvable=can_resolve,
                outcome="dry_run" if target.dry_run else None,
            )
            made.append(self._once(delivery, beside))
        return made

    def _once(self, delivery: Delivery, beside: list[Delivery]) -> Delivery:
        """A delivery, marked as a duplicate where the same was just told."""
        window = self._house.settings.alerts.repeat_seconds * 1000
        earlier = [*beside[::-1], *self._house.store.deliveries(about=delivery.about, limit=50)]
        if routing.is_duplicate(delivery, earlier, within_ms=window):
            return replace(delivery, outcome="duplicate", detail="the same was told a moment ago")
        return delivery

    def _targets(self, alert: AlertKind, labels: dict[str, str], run: Run | None) -> list[routing.Target]:
        house = self._house
        found = routing.targets(routing.of_settings(house.settings, house.secret), alert, labels)
        if run is not None:
            found += routing.targets(routing.of_run(run), alert, labels, scope=run.id)
        return found

    def _about(self, subject: str) -> tuple[Task | None, Run | None]:
        store = self._house.store
        try:
            if subject.startswith(run_subject("")):
                return None, store.run(subject.partition("/")[2])
            if "/" in subject:
                return None, None
            task = store.task(subject)
            return task, store.run(task.run) if task.run else None
        except NotFound:
            return None, None
