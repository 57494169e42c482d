"""What each channel makes of a notice: the vendors' shapes."""

from __future__ import annotations

import hashlib
import hmac

from msgspec.structs import replace

from fleet.channels.discord import Discord
from fleet.channels.pager_duty import PagerDuty, key
from fleet.channels.slack import Slack
from fleet.channels.webhook import Webhook, signature
from fleet.model import alert_spec as spec
from fleet.model.notice import safe_commands, short
from fleet.testing.channel_contract import A_NOTICE


def test_slack() -> None:
    """A text, a section and a context of commands; what Slack would read as its own is escaped."""
    body = Slack().render(spec.Slack(webhook_env="S", channel="#ops"), A_NOTICE).body
    assert list(body) == ["text", "blocks", "channel"]
    assert body["channel"] == "#ops"
    assert "&lt;!channel&gt; @everyone &amp; so on" in body["text"]
    section, context = body["blocks"]
    assert section == {"type": "section", "text": {"type": "mrkdwn", "text": body["text"]}}
    assert context["elements"][0]["text"] == "`fleet status` | `fleet inspect nightly-abc-local-1`"
    assert "channel" not in Slack().render(spec.Slack(webhook_env="S"), A_NOTICE).body


def test_discord() -> None:
    """One message within Discord's bound, which mentions nobody."""
    body = Discord().render(spec.Discord(webhook_env="D"), replace(A_NOTICE, text="x" * 3000)).body
    assert len(body["content"]) == 2000
    assert body["allowed_mentions"] == {"parse": []}


def test_pager_duty_triggers_and_resolves_under_one_key() -> None:
    """The resolve has the key of the trigger, and no payload."""
    adapter = spec.PagerDuty(routing_key_env="R", severity="critical")
    triggered = PagerDuty().render(adapter, A_NOTICE)
    resolved = PagerDuty().render(adapter, replace(A_NOTICE, action="resolve"))
    assert triggered.target == resolved.target == "https://events.pagerduty.com/v2/enqueue"
    assert triggered.body["payload"]["severity"] == "critical"
    assert triggered.body["payload"]["custom_details"]["task_id"] == "fleet-abc"
    assert resolved.body == {
        "routing_key": "<redacted:env:R>",
        "event_action": "resolve",
        "dedup_key": triggered.body["dedup_key"],
    }
    assert triggered.body["dedup_key"] == "fleet/needs_human/fleet-abc"


def test_a_long_key_is_cut_and_stays_its_own() -> None:
    """PagerDuty takes 255 characters; two long keys that differ at their ends stay apart."""
    one, two = key("a" * 300 + "1"), key("a" * 300 + "2")
    assert max(len(one), len(two)) <= 255
    assert one != two


def test_the_end_of_a_run_is_no_emergency() -> None:
    """A pager hears of it as information."""
    notice = replace(A_NOTICE, alert="run_completed")
    body = PagerDuty().render(spec.PagerDuty(routing_key_env="R", severity="critical"), notice).body
    assert body["payload"]["severity"] == "info"


def test_a_webhook_gets_the_event() -> None:
    """Every field that a receiver may need is there, also where it is empty; a repeat says so."""
    rendered = Webhook().render(spec.Webhook(url_env="U"), replace(A_NOTICE, repeat=True))
    assert rendered.body["source"] == "fleet"
    event = rendered.body["event"]
    assert {"class", "run_id", "worker_id", "task_id", "status", "reason", "commands"} <= event.keys()
    assert (event["repeat"], event["id"], event["host"]) == (True, A_NOTICE.id, None)
    assert rendered.headers == {"X-Fleet-Delivery": A_NOTICE.id}


def test_the_signature_is_over_time_and_body() -> None:
    """Anybody with the key computes the same."""
    expected = hmac.new(b"key", b'1794770382.{"a":1}', hashlib.sha256).hexdigest()
    assert signature("key", "1794770382", b'{"a":1}') == f"v1={expected}"


def test_a_reason_is_short_and_on_one_line() -> None:
    """At most 240 characters are told, of however much."""
    assert short("a\n  b\tc") == "a b c"
    assert short("x" * 500) == "x" * 237 + "..."


def test_commands_only_look_and_are_safe_to_paste() -> None:
    """Whatever an id says, a shell takes it as one word."""
    assert safe_commands(task="fleet-abc", worker="w-1", run="r") == (
        "fleet status",
        "fleet inspect w-1",
        "fleet why fleet-abc",
    )
    assert safe_commands(task=None, worker=None, run="a; rm -rf /") == (
        "fleet status",
        "fleet status --run 'a; rm -rf /'",
    )


def test_a_repeat_says_so_to_people() -> None:
    """Whoever reads it knows that it may be old news."""
    assert replace(A_NOTICE, repeat=True).summary.endswith("(may be a repeat)")
    assert A_NOTICE.summary.startswith("Fleet needs_human: run=nightly-abc worker=nightly-abc-local-1 task=fleet-abc ")
