"""PagerDuty: its Events API, version 2. One trouble is one incident: triggered and resolved under the same key."""

from __future__ import annotations

from typing import Any

from fleet.channels.channel import JSON as JSON_HEADERS
from fleet.channels.channel import Carrier, Rendered, encoded, filled, mark
from fleet.model import alert_spec
from fleet.model.notice import Notice

ENDPOINT = "https://events.pagerduty.com/v2/enqueue"
LONGEST_KEY = 255


class PagerDuty:
    """Posts an event."""

    resolves = True

    def render(self, adapter: alert_spec.PagerDuty, notice: Notice) -> Rendered:
        """A trigger, or the resolve of one."""
        body: dict[str, Any] = {
            "routing_key": mark(adapter.routing_key_env),
            "event_action": notice.action,
            "dedup_key": key(notice.key or f"fleet/{notice.alert}"),
        }
        if notice.action == "trigger":
            body["client"] = "Fleet"
            body["payload"] = {
                "summary": notice.summary[:1024],
                "source": "fleet",
                "severity": "info" if notice.alert == "run_completed" else adapter.severity,
                "class": notice.alert,
                "group": notice.run_id or notice.host or "fleet",
                "custom_details": notice.event(),
            }
        return Rendered(target=mark(adapter.endpoint_env) if adapter.endpoint_env else ENDPOINT, body=body)

    async def send(self, rendered: Rendered, carrier: Carrier) -> None:
        """One post; the routing key is put in only now."""
        body = rendered.body | {"routing_key": filled(rendered.body["routing_key"], carrier)}
        await carrier.post(filled(rendered.target, carrier), encoded(body), JSON_HEADERS)


def key(words: str) -> str:
    """A key that is no longer than the service takes."""
    if len(words) <= LONGEST_KEY:
        return words
    from hashlib import sha256

    return f"{words[:180]}/{sha256(words.encode()).hexdigest()}"
