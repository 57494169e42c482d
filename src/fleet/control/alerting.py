"""The verbs of alerts: test a channel, and send what was drafted. Each is recorded as any other delivery is."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable

import msgspec
from msgspec.structs import replace

from fleet.channels.channel import Channel, Rendered, SupportsResolve
from fleet.channels.http import HttpCarrier
from fleet.channels.sending import Sent, render, send
from fleet.config.clock import utc_ms
from fleet.config.settings import Settings
from fleet.errors import Conflict, NotFound
from fleet.model.alert import AlertKind
from fleet.model.alert_spec import Alerts, channel_kind
from fleet.model.delivery import Came, Delivery
from fleet.model.notice import Notice
from fleet.policy import routing
from fleet.store.store import Store

TEST_ATTEMPTS = 2  # a person waits for it


class Told(msgspec.Struct, frozen=True, kw_only=True):
    """What came of telling one channel."""

    channel: str
    kind: str
    outcome: Came
    attempts: int
    detail: str
    rendered: Rendered


class Alerting:
    """Verbs, in one person's name."""

    def __init__(
        self,
        store: Store,
        settings: Settings,
        *,
        by: str,
        load_channel: Callable[[str], Channel],
        secrets: Callable[[str], str | None],
        carrier: Callable[[], HttpCarrier],
    ) -> None:
        self._store = store
        self._settings = settings
        self._by = by
        self._load_channel = load_channel
        self._alerts = routing.of_settings(settings, secrets)
        self._carrier = carrier

    def close(self) -> None:
        """Let go of the store."""
        self._store.close()

    def test(self, channel: str | None = None) -> list[Told]:
        """Tell one channel, or each, that this is a test. A pager's incident is resolved at once."""
        _require_enabled(self._alerts)
        names = [channel] if channel is not None else sorted(self._alerts.adapters)
        if not names:
            raise Conflict("no channel is configured", hint="add a table [channels.NAME] to fleet.toml")
        delivery = self._delivery("test", AlertKind.RUN_COMPLETED, "this is a test of Fleet's alerts; nothing happened")
        return asyncio.run(self._all(names, delivery, "", then_resolve=True))

    def send(self, delivery: Delivery, text: str) -> list[Told]:
        """Send what was drafted about a task to whoever hears that it needs a person. The settings must allow it."""
        _require_enabled(self._alerts)
        if not self._settings.alerts.send_drafts:
            raise Conflict("the settings do not allow to send drafts", hint="fleet config set alerts.send_drafts=true")
        task = self._store.task(delivery.about)
        run = self._store.run(task.run) if task.run else None
        labels = {**(run.labels if run else {}), **task.labels}
        found = routing.targets(self._alerts, AlertKind.NEEDS_HUMAN, labels)
        if not found:
            raise Conflict("no route leads `needs_human` to a channel", hint="add a table [[routes]] to fleet.toml")
        stamped = replace(delivery, by=self._by, raised_at=utc_ms())
        return asyncio.run(self._all([target.name for target in found], stamped, text, then_resolve=False))

    def _delivery(self, about: str, alert: AlertKind, reason: str) -> Delivery:
        return Delivery(
            id="", channel="", about=about, alert=alert, reason=reason, status=about, raised_at=utc_ms(), by=self._by
        )

    async def _all(self, names: list[str], delivery: Delivery, text: str, *, then_resolve: bool) -> list[Told]:
        carrier = self._carrier()
        try:
            told = []
            for name in names:
                told.append(await self._one(name, delivery, text, carrier))
                adapter = self._alerts.adapters[name]
                if then_resolve and isinstance(self._load_channel(channel_kind(adapter)), SupportsResolve):
                    await self._one(name, replace(delivery, action="resolve"), text, carrier)
            return told
        finally:
            await carrier.close()

    async def _one(self, name: str, delivery: Delivery, text: str, carrier: HttpCarrier) -> Told:
        if name not in self._alerts.adapters:
            known = ", ".join(sorted(self._alerts.adapters)) or "none"
            raise NotFound(f"no channel `{name}`", hint=f"there are: {known}")
        adapter = self._alerts.adapters[name]
        kind = channel_kind(adapter)
        channel = self._load_channel(kind)
        made = replace(delivery, id=f"{os.urandom(6).hex()}.{name}", channel=name)
        notice: Notice = replace(routing.notice_of(made), text=text)
        rendered = render(channel, adapter, notice)
        if self._alerts.dry_run:
            await self._store.announce([replace(made, outcome="dry_run")])
            return Told(channel=name, kind=kind, outcome="dry_run", attempts=0, detail="", rendered=rendered)
        await self._store.announce([made])
        seconds = self._settings.alerts.timeout_seconds
        sent: Sent = await send(channel, rendered, carrier, attempts=TEST_ATTEMPTS, timeout_seconds=seconds)
        outcome: Came = "sent" if sent.ok else "failed"
        await self._store.delivered(made.id, outcome, by=self._by, attempts=sent.attempts, detail=sent.detail)
        return Told(
            channel=name, kind=kind, outcome=outcome, attempts=sent.attempts, detail=sent.detail, rendered=rendered
        )


def _require_enabled(alerts: Alerts) -> None:
    if not alerts.enabled:
        raise Conflict("alerts are off, so nothing is sent", hint="fleet config set alerts.enabled=true")
