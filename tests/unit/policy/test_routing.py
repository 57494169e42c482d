"""Who hears of an alert, and when a trouble is over."""

from __future__ import annotations

from typing import get_args

import msgspec
import pytest
from msgspec.structs import replace

from fleet.config.settings import Settings
from fleet.model import event as ev
from fleet.model.alert import AlertEvent, AlertKind, of_host
from fleet.model.alert_spec import Alerts, Discord, Route, Slack, Webhook
from fleet.model.delivery import Delivery
from fleet.model.host import Host
from fleet.policy import routing
from fleet.testing.channel_contract import A_NOTICE

SEED = {
    "enabled": True,
    "dry_run": True,
    "routes": [
        {"events": ["stale", "restart_exhausted", "verifier_failed"], "adapter": "ops-slack"},
        {"events": ["restart_exhausted"], "adapter": "pager"},
    ],
    "adapters": {
        "ops-slack": {"kind": "slack", "webhook_env": "CODEWHALE_FLEET_SLACK_WEBHOOK", "channel": "#codewhale-fleet"},
        "pager": {
            "kind": "pager_duty",
            "routing_key_env": "CODEWHALE_FLEET_PAGERDUTY_ROUTING_KEY",
            "severity": "critical",
        },
    },
}
SENT = Delivery(
    id="1.pager",
    channel="pager",
    about="fleet-abc",
    alert=AlertKind.NEEDS_HUMAN,
    reason="look",
    raised_at=1000,
    by="sup-1",
    resolvable=True,
    outcome="sent",
)


def test_the_seeds_own_alerts() -> None:
    """Each class goes where its routes say, each channel once; nothing else goes anywhere."""
    alerts = msgspec.convert(SEED, Alerts)
    names = {kind: [target.name for target in routing.targets(alerts, kind, {})] for kind in AlertKind}
    assert names.pop(AlertKind.RESTART_EXHAUSTED) == ["ops-slack", "pager"]
    assert names.pop(AlertKind.STALE) == names.pop(AlertKind.VERIFIER_FAILED) == ["ops-slack"]
    assert not any(names.values())
    assert all(target.dry_run for target in routing.targets(alerts, AlertKind.STALE, {}))
    assert routing.targets(replace(alerts, enabled=False), AlertKind.STALE, {}) == []


@pytest.mark.parametrize(
    ("route", "labels", "told"),
    [
        (Route(adapter="a"), {}, True),
        (Route(adapter="a", teams=("web", "ops")), {"team": "web"}, True),
        (Route(adapter="a", teams=("web",)), {"team": "ops"}, False),
        (Route(adapter="a", teams=("web",)), {}, False),
        (Route(adapter="a", labels={"env": "prod"}), {"env": "prod", "x": "y"}, True),
        (Route(adapter="a", labels={"env": "prod", "x": "z"}), {"env": "prod", "x": "y"}, False),
    ],
)
def test_labels_and_teams(route: Route, labels: dict[str, str], told: bool) -> None:
    """A route that names teams or labels is for those alone."""
    assert routing.matches(route, AlertKind.STALE, labels) is told


@pytest.mark.parametrize(
    ("url", "kind"),
    [
        ("https://hooks.slack.com/services/T/B/x", Slack),
        ("https://discord.com/api/webhooks/1/x", Discord),
        ("https://hooks.example/x", Webhook),
        ("https://discord.com.evil.example/x", Webhook),
        ("", Webhook),
        ("http://[", Webhook),
    ],
)
def test_a_plain_webhook_is_known_by_its_address(url: str, kind: type) -> None:
    """The one webhook of [alerts] speaks as its receiver does, and hears of everything."""
    settings = msgspec.convert({"alerts": {"enabled": True, "webhook_env": "HOOK"}}, Settings)
    alerts = routing.of_settings(settings, lambda name: url if name == "HOOK" else None)
    (target,) = routing.targets(alerts, AlertKind.HOST_UNHEALTHY, {})
    assert (target.name, type(target.adapter)) == ("webhook", kind)


def test_settings_say_the_same_as_a_spec() -> None:
    """Channels and routes of fleet.toml become adapters and routes."""
    table = {
        "alerts": {"enabled": True},
        "channels": {"ops": {"kind": "webhook", "url_env": "U", "secret_env": "K"}, "log": {"kind": "console"}},
        "routes": [{"channel": "ops", "events": ["stale"], "labels": ["env=prod"]}, {"channel": "log"}],
    }
    alerts = routing.of_settings(msgspec.convert(table, Settings), lambda _: None)
    assert [t.name for t in routing.targets(alerts, AlertKind.STALE, {"env": "prod"})] == ["ops", "log"]
    assert [t.name for t in routing.targets(alerts, AlertKind.STALE, {})] == ["log"]
    assert alerts.adapters["ops"] == Webhook(url_env="U", secret_env="K")


def test_what_ends_a_trouble() -> None:
    """An answer, a restart by a person, a completion; not another automatic attempt, and not another task's end."""
    answered = ev.TaskAnswered(subject="fleet-abc", at=1, by="ana", text="yes")
    again = ev.TaskRequeued(subject="fleet-abc", at=1, by="sup-1", reason="again")
    assert routing.ends(answered, SENT)
    assert not routing.ends(ev.TaskAnswered(subject="fleet-xyz", at=1, by="ana", text="yes"), SENT)
    stale = replace(SENT, alert=AlertKind.STALE)
    assert not routing.ends(again, stale)
    assert routing.ends(replace(again, restart=True), stale)
    assert routing.ends(again, SENT)


def test_a_host_that_is_back_ends_its_incident() -> None:
    """And nothing else of it does."""
    down = replace(SENT, about="host/b", alert=AlertKind.HOST_UNHEALTHY)
    back = ev.AlertRaised(subject="host/b", at=1, by="sup-1", alert=AlertKind.HOST_RECOVERED, reason="up")
    assert routing.ends(back, down)
    assert not routing.ends(replace(back, alert=AlertKind.HOST_UNHEALTHY), down)


@pytest.mark.parametrize(
    ("alerted", "now", "failures", "told"),
    [
        (False, "down", 1, []),
        (False, "down", 2, ["host_unhealthy"]),
        (False, "down", 3, ["host_unhealthy"]),
        (False, "up", 0, []),
        (False, "unknown", 9, []),
        (True, "up", 0, ["host_recovered"]),
        (True, "down", 9, []),
        (True, "unknown", 9, []),
    ],
)
def test_what_is_raised_of_a_host(alerted: bool, now: str, failures: int, told: list[str]) -> None:
    """Only that it went down, often enough, and that it is up again: silence is not evidence."""
    host = Host(name="b", kind="ssh", state=now, since=0, failures=failures)
    assert [alert.kind.value for alert in of_host(host, alerted=alerted, after=2)] == told


@pytest.mark.parametrize(
    ("change", "duplicate"),
    [
        ({}, True),
        ({"reason": "another"}, False),
        ({"session": "fleet-abc.2"}, False),
        ({"channel": "other"}, False),
        ({"alert": AlertKind.STALE}, False),
        ({"raised_at": 1000 + 300_001}, False),
    ],
)
def test_the_same_is_not_told_twice_in_a_moment(change: dict[str, object], duplicate: bool) -> None:
    """The same words about the same thing to the same channel; anything else is news."""
    later = replace(SENT, **({"id": "2.pager", "raised_at": 2000, "outcome": None} | change))
    assert routing.is_duplicate(later, [SENT], within_ms=300_000) is duplicate
    assert not routing.is_duplicate(later, [replace(SENT, outcome="failed")], within_ms=300_000)
    assert not routing.is_duplicate(replace(SENT, id="9"), [SENT], within_ms=0), "in the same millisecond"
    over = replace(SENT, id="3.pager", action="resolve")
    assert not routing.is_duplicate(later, [over, SENT], within_ms=300_000)


def test_a_notice_tells_what_the_delivery_holds() -> None:
    """Nothing is lost between the record and what is said."""
    notice = routing.notice_of(replace(SENT, task="fleet-abc", run="r", worker="w", repeat=True))
    assert (notice.task_id, notice.run_id, notice.worker_id, notice.repeat) == ("fleet-abc", "r", "w", True)
    assert notice.key == A_NOTICE.key
    assert routing.notice_of(replace(SENT, about="host/b")).host == "b"


def test_every_alert_can_be_named_where_routes_are() -> None:
    """The settings and specs know the same classes as the ledger: none can be raised that no route could name."""
    assert list(get_args(AlertEvent)) == [kind.value for kind in AlertKind]
