"""The postbox: one bounded queue and one task for each channel, which sends what was announced and records the end."""

from __future__ import annotations

import asyncio

from fleet.channels.channel import Channel, Rendered
from fleet.channels.sending import Sent, render, send
from fleet.errors import FleetError, NotFound
from fleet.model.alert_spec import Adapter, channel_kind
from fleet.model.delivery import Came, Delivery
from fleet.policy import routing
from fleet.supervisor.house import House

MOST_WAITING = 1000  # alerts for one channel; more are dropped, each with a record
AGAIN_SECONDS = 1.0


class Postbox:
    """Where announced deliveries wait for their channel."""

    def __init__(self, house: House) -> None:
        self._house = house
        self._queues: dict[tuple[str | None, str], asyncio.Queue[Delivery]] = {}
        self._group: asyncio.TaskGroup | None = None
        self._senders: list[asyncio.Task[None]] = []

    def open(self, group: asyncio.TaskGroup) -> None:
        """From now on there are tasks that send; what was put before is sent now."""
        self._group = group
        for queue in self._queues.values():
            self._senders.append(group.create_task(self._send_all(queue)))

    def close(self) -> None:
        """Send no more; what is under way is given up."""
        for sender in self._senders:
            sender.cancel()

    def put(self, delivery: Delivery) -> int:
        """Let a delivery wait for its turn; returns 1. Nobody waits for room: what finds none is dropped."""
        place = (delivery.scope, delivery.channel)
        if place not in self._queues:
            self._queues[place] = asyncio.Queue(MOST_WAITING)
            if self._group is not None:
                self._senders.append(self._group.create_task(self._send_all(self._queues[place])))
        try:
            self._queues[place].put_nowait(delivery)
        except asyncio.QueueFull:
            full = Sent(ok=False, attempts=0, detail=f"{MOST_WAITING} alerts wait for this channel")
            assert self._group is not None  # nothing can wait that long before there are tasks
            self._group.create_task(self._record(delivery, "dropped", full))
        return 1

    async def empty(self) -> None:
        """Wait until all that was put is ended."""
        for queue in list(self._queues.values()):
            await queue.join()

    def log_rendered(self, delivery: Delivery) -> None:
        """What a dry run would have sent, in the supervisor's log."""
        try:
            _, rendered = self._rendered(delivery)
        except FleetError as exc:
            self._house.log("alert_dry_run", channel=delivery.channel, error=str(exc))
            return
        self._house.log("alert_dry_run", channel=delivery.channel, target=rendered.target, body=rendered.body)

    async def _send_all(self, queue: asyncio.Queue[Delivery]) -> None:
        while True:
            delivery = await queue.get()
            outcome, sent = await self._end_of(delivery)
            await self._record(delivery, outcome, sent)
            queue.task_done()

    async def _end_of(self, delivery: Delivery) -> tuple[Came, Sent]:
        """Send it, unless it is too late for that."""
        configured = self._house.settings.alerts
        if self._house.store.now() - delivery.raised_at > configured.max_age_seconds * 1000:
            return "dropped", Sent(ok=False, attempts=0, detail=f"it is older than {configured.max_age_seconds} s")
        try:
            channel, rendered = self._rendered(delivery)
        except FleetError as exc:
            return "failed", Sent(ok=False, attempts=0, detail=str(exc))
        self._house.at("alert_announced")
        sent = await send(
            channel,
            rendered,
            self._house.carrier,
            attempts=configured.attempts,
            timeout_seconds=configured.timeout_seconds,
        )
        self._house.at("alert_sent")
        return ("sent" if sent.ok else "failed"), sent

    async def _record(self, delivery: Delivery, outcome: Came, sent: Sent) -> None:
        """What came of it is written down, however long the store is away."""
        house = self._house
        house.log("alert", channel=delivery.channel, delivery=delivery.id, outcome=outcome, detail=sent.detail)
        while True:
            try:
                await house.store.delivered(
                    delivery.id, outcome, by=house.name, attempts=sent.attempts, detail=sent.detail
                )
            except (FleetError, OSError) as exc:
                house.log("alert_not_recorded", delivery=delivery.id, error=str(exc))
                if isinstance(exc, FleetError) and not exc.retryable:
                    return
                await asyncio.sleep(AGAIN_SECONDS)
            else:
                return

    def _rendered(self, delivery: Delivery) -> tuple[Channel, Rendered]:
        """The channel of a delivery and what it is to send. FleetError: it cannot be told, and why not."""
        adapter = self._adapter(delivery)
        channel = self._house.load_channel(channel_kind(adapter))
        return channel, render(channel, adapter, routing.notice_of(delivery))

    def _adapter(self, delivery: Delivery) -> Adapter:
        """The channel as it is declared now."""
        house = self._house
        if delivery.scope is None:
            alerts = routing.of_settings(house.settings, house.secret)
        else:
            alerts = routing.of_run(house.store.run(delivery.scope))
        if delivery.channel not in alerts.adapters:
            raise NotFound(f"the channel `{delivery.channel}` is not declared any more")
        return alerts.adapters[delivery.channel]
