"""A webhook: JSON to an address, signed with HMAC-SHA256 over the time and the body, so that it cannot be forged."""

from __future__ import annotations

import hmac
import time
from collections.abc import Callable

from fleet.channels.channel import JSON, Carrier, Rendered, encoded, filled, mark
from fleet.model import alert_spec
from fleet.model.notice import Notice

SIGNATURE, TIMESTAMP, DELIVERY = "X-Fleet-Signature", "X-Fleet-Timestamp", "X-Fleet-Delivery"


class Webhook:
    """Posts the event as JSON."""

    def __init__(self, clock: Callable[[], float] = time.time) -> None:
        self._clock = clock

    def render(self, adapter: alert_spec.Webhook, notice: Notice) -> Rendered:
        """The event; where it is signed, the mark of the key stands in the place of the signature."""
        headers = {DELIVERY: notice.id} if notice.id else {}
        if adapter.secret_env:
            headers[SIGNATURE] = mark(adapter.secret_env)
        return Rendered(
            target=mark(adapter.url_env), headers=headers, body={"source": "fleet", "event": notice.event()}
        )

    async def send(self, rendered: Rendered, carrier: Carrier) -> None:
        """One post; each try is signed anew."""
        body = encoded(rendered.body)
        headers = JSON | rendered.headers
        if SIGNATURE in rendered.headers:
            stamp, secret = str(int(self._clock())), filled(rendered.headers[SIGNATURE], carrier)
            headers |= {TIMESTAMP: stamp, SIGNATURE: signature(secret, stamp, body)}
        await carrier.post(filled(rendered.target, carrier), body, headers)


def signature(secret: str, stamp: str, body: bytes) -> str:
    """What a receiver computes too: `v1=` and the HMAC of the time in seconds, a dot, and the body."""
    return "v1=" + hmac.digest(secret.encode(), stamp.encode() + b"." + body, "sha256").hex()
