"""Routing: which channels hear of an alert, by its class, labels and team; and when a trouble is over."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from urllib.parse import urlsplit

import msgspec

from fleet.config.alerting import Channel
from fleet.config.settings import Settings
from fleet.model import event as ev
from fleet.model.alert import AlertKind
from fleet.model.alert_spec import Adapter, Alerts, Discord, Route, Slack, Webhook
from fleet.model.delivery import Delivery
from fleet.model.ids import host_subject
from fleet.model.notice import Notice, safe_commands
from fleet.model.run import Run
from fleet.model.states import TaskState

PLAIN_WEBHOOK = "webhook"  # the name of the channel that alerts.webhook_env makes
TEAM = "team"


class Target(msgspec.Struct, frozen=True, kw_only=True):
    """A channel that hears of an alert."""

    name: str
    adapter: Adapter
    scope: str | None = None  # the run that declares it; None: fleet.toml
    dry_run: bool = False


def of_settings(settings: Settings, secret: Callable[[str], str | None]) -> Alerts:
    """What fleet.toml says, as a spec would."""
    adapters = {name: adapter_of(channel) for name, channel in settings.channels.items()}
    routes = [
        Route(
            adapter=route.channel,
            events=route.events,
            teams=route.teams,
            labels={name: value for name, _, value in (label.partition("=") for label in route.labels)},
        )
        for route in settings.routes
    ]
    variable = settings.alerts.webhook_env
    if variable and PLAIN_WEBHOOK not in adapters:
        adapters[PLAIN_WEBHOOK] = of_address(variable, secret(variable) or "")
        routes.append(Route(adapter=PLAIN_WEBHOOK))
    configured = settings.alerts
    return Alerts(enabled=configured.enabled, dry_run=configured.dry_run, routes=tuple(routes), adapters=adapters)


def of_run(run: Run) -> Alerts:
    """What the spec of a run says."""
    return msgspec.convert(run.alerts or {}, Alerts)


def adapter_of(channel: Channel) -> Adapter:
    """A channel of fleet.toml, as a spec would declare it."""
    given = {name: value for name, value in msgspec.structs.asdict(channel).items() if value}
    made: Adapter = msgspec.convert(given, Adapter)
    return made


def of_address(variable: str, url: str) -> Adapter:
    """The adapter that an address asks for by itself: Slack's and Discord's are known by their hosts."""
    try:
        host = (urlsplit(url).hostname or "").lower()
    except ValueError:
        host = ""
    if host == "hooks.slack.com":
        return Slack(webhook_env=variable)
    if host in ("discord.com", "discordapp.com") or host.endswith(".discord.com"):
        return Discord(webhook_env=variable)
    return Webhook(url_env=variable)


def targets(alerts: Alerts, alert: AlertKind, labels: Mapping[str, str], *, scope: str | None = None) -> list[Target]:
    """The channels that hear of an alert, each once; none where alerts are not enabled."""
    if not alerts.enabled:
        return []
    names = dict.fromkeys(route.adapter for route in alerts.routes if matches(route, alert, labels))
    return [
        Target(name=name, adapter=alerts.adapters[name], scope=scope, dry_run=alerts.dry_run)
        for name in names
        if name in alerts.adapters
    ]


def matches(route: Route, alert: AlertKind, labels: Mapping[str, str]) -> bool:
    """Whether a route is for an alert of something with these labels."""
    if route.events and alert.value not in route.events:
        return False
    if route.teams and labels.get(TEAM) not in route.teams:
        return False
    return all(labels.get(name) == value for name, value in route.labels.items())


def ends(event: ev.AnyEvent, incident: Delivery) -> bool:
    """Whether an event ends the trouble that an incident tells of."""
    if event.subject != incident.about:
        return False
    match event:
        case ev.AlertRaised(alert=AlertKind.HOST_RECOVERED):
            return incident.alert is AlertKind.HOST_UNHEALTHY
        case ev.TaskAnswered():
            return True
        case ev.TaskRequeued(restart=restart):  # what is blocked, and goes on, needs nobody any more
            return restart or incident.alert is AlertKind.NEEDS_HUMAN
        case ev.TaskSettled(state=state):
            return state in (TaskState.COMPLETED, TaskState.CANCELLED)
    return False


def is_duplicate(delivery: Delivery, earlier: Sequence[Delivery], *, within_ms: int) -> bool:
    """Whether the same was told to the same channel a moment ago, and was not over since. The newest comes first."""
    for other in earlier:
        if (other.channel, other.scope, other.key) != (delivery.channel, delivery.scope, delivery.key):
            continue
        if other.id == delivery.id or other.outcome not in (None, "sent", "dry_run"):
            continue
        if other.action == "resolve":
            return False
        same = (other.session, other.reason) == (delivery.session, delivery.reason)
        if same and 0 <= delivery.raised_at - other.raised_at < within_ms:  # so with none, nothing
            return True
    return False


def notice_of(delivery: Delivery) -> Notice:
    """What a delivery tells."""
    host = delivery.about.partition("/")[2] if delivery.about.startswith(host_subject("")) else None
    return Notice(
        alert=delivery.alert.value,
        run_id=delivery.run,
        worker_id=delivery.worker,
        task_id=delivery.task,
        host=host,
        status=delivery.status,
        reason=delivery.reason,
        commands=safe_commands(task=delivery.task, worker=delivery.worker, run=delivery.run, host=host),
        at=delivery.raised_at,
        id=delivery.id,
        key=delivery.key,
        action=delivery.action,
        repeat=delivery.repeat,
    )
