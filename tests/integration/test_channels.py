"""Sending for real: HTTP on loopback, to a receiver that refuses, asks for time, breaks or hangs."""

from __future__ import annotations

import asyncio
import hashlib
import hmac
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any

import pytest

from fleet import plugins
from fleet.channels.http import HttpCarrier, check_address, retry_after
from fleet.channels.sending import Sent, send
from fleet.errors import ChannelRefused
from fleet.model import alert_spec as spec
from fleet.testing.channel_contract import A_NOTICE
from tests.support.receiver import Answer, Receiver, receiving

HOOK = spec.Webhook(url_env="URL", secret_env="KEY")


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    """A receiver that is up."""
    with receiving() as made:
        yield made


def delivered(adapter: Any, secrets: dict[str, str], **how: Any) -> Sent:
    """Send a notice as a supervisor does, with short waits."""

    async def work() -> Sent:
        carrier = HttpCarrier(secrets.get, lambda _: None)
        channel = plugins.load("channels", spec.channel_kind(adapter))
        try:
            terms = {"attempts": 3, "timeout_seconds": 5, "first_wait": 0.01} | how
            return await send(channel, channel.render(adapter, A_NOTICE), carrier, **terms)
        finally:
            await carrier.close()

    return asyncio.run(work())


def test_a_signed_webhook_arrives(receiver: Receiver) -> None:
    """The receiver computes the same signature over the time and the bytes that it got."""
    assert delivered(HOOK, {"URL": f"{receiver.url}/in", "KEY": "hunter2"}) == Sent(ok=True, attempts=1)
    (got,) = receiver.got
    stamp = got.headers["X-Fleet-Timestamp"]
    expected = hmac.new(b"hunter2", stamp.encode() + b"." + got.raw, hashlib.sha256).hexdigest()
    assert got.headers["X-Fleet-Signature"] == f"v1={expected}"
    assert abs(int(stamp) - datetime.now(UTC).timestamp()) < 60
    assert got.headers["Content-Type"] == "application/json"
    assert got.body["event"]["task_id"] == "fleet-abc"
    assert b"hunter2" not in got.raw
    assert "hunter2" not in str(got.headers)


@pytest.mark.parametrize(
    ("adapter", "variable"),
    [
        (spec.Slack(webhook_env="URL"), "text"),
        (spec.Discord(webhook_env="URL"), "content"),
        (spec.PagerDuty(routing_key_env="KEY", endpoint_env="URL"), "dedup_key"),
    ],
)
def test_the_others_arrive(receiver: Receiver, adapter: Any, variable: str) -> None:
    """In the shape that their service takes; a routing key is put in at the sending."""
    assert delivered(adapter, {"URL": receiver.url, "KEY": "R0KEY"}).ok
    (got,) = receiver.got
    assert got.body[variable]
    assert got.body.get("routing_key") in (None, "R0KEY")


def test_retry_after_is_honoured(receiver: Receiver) -> None:
    """A receiver that asks for a second of rest gets it, then the alert."""
    receiver.answers = [Answer(429, {"Retry-After": "1"})]
    assert delivered(HOOK, {"URL": receiver.url, "KEY": "k"}) == Sent(ok=True, attempts=2)
    first, second = receiver.got
    assert second.at - first.at >= 0.9
    assert first.headers["X-Fleet-Delivery"] == second.headers["X-Fleet-Delivery"]


def test_a_receiver_that_wants_to_be_left_alone_is_given_up(receiver: Receiver) -> None:
    """Nobody waits for an hour with an alert in hand."""
    receiver.answers = [Answer(503, {"Retry-After": "3600"})]
    sent = delivered(HOOK, {"URL": receiver.url, "KEY": "k"})
    assert (sent.ok, sent.attempts) == (False, 1)
    assert "3600" in sent.detail


def test_a_broken_receiver_is_tried_again(receiver: Receiver) -> None:
    """As often as is allowed, and then given up with its answer."""
    receiver.answers = [Answer(500)] * 3
    assert delivered(HOOK, {"URL": receiver.url, "KEY": "k"}) == Sent(ok=False, attempts=3, detail="it answered 500")
    assert len(receiver.got) == 3


@pytest.mark.parametrize("status", [301, 400, 401, 404, 410])
def test_a_refusal_is_final(receiver: Receiver, status: int) -> None:
    """What will not be better is not tried again; a redirect is not followed."""
    receiver.answers = [Answer(status, {"Location": f"{receiver.url}/elsewhere"})]
    sent = delivered(HOOK, {"URL": receiver.url, "KEY": "k"})
    assert sent == Sent(ok=False, attempts=1, detail=f"it answered {status}")
    assert len(receiver.got) == 1


def test_a_receiver_that_hangs_meets_a_deadline(receiver: Receiver) -> None:
    """Each try ends in time, and says so without the address."""
    receiver.answers = [Answer(hangs=True)] * 2
    sent = delivered(HOOK, {"URL": receiver.url, "KEY": "k"}, attempts=2, timeout_seconds=0.3)
    assert sent == Sent(ok=False, attempts=2, detail="it did not answer within 0.3 s")


def test_nobody_listens() -> None:
    """An error names no address."""
    with receiving() as gone:
        url = gone.url
    sent = delivered(HOOK, {"URL": url, "KEY": "k"}, attempts=2)
    assert sent == Sent(ok=False, attempts=2, detail="it could not be connected to")


@pytest.mark.parametrize(
    "url",
    [
        "http://hooks.example/x",
        "http://127.0.0.1.evil.example/",
        "http://10.0.0.1/",
        "ftp://127.0.0.1/",
        "hooks.example/x",
        "https://",
        "http://[::1",
        "",
    ],
)
def test_only_https_leaves_this_machine(url: str) -> None:
    """Anything else is refused before a byte is sent, and the address is not repeated."""
    sent = delivered(HOOK, {"URL": url, "KEY": "k"})
    assert (sent.ok, sent.attempts) == (False, 1)
    assert "evil" not in sent.detail
    assert "hooks.example" not in sent.detail


@pytest.mark.parametrize(
    "url", ["https://hooks.example/x", "http://localhost:1/", "http://[::1]:1/", "http://127.0.0.2/"]
)
def test_what_may_be_sent_to(url: str) -> None:
    """HTTPS to anywhere; plain HTTP to this machine itself."""
    check_address(url)


def test_a_variable_that_is_not_set() -> None:
    """It is named, so that it can be set; nothing is tried."""
    sent = delivered(HOOK, {"KEY": "k"})
    assert sent.detail == "URL is not set, neither in the environment nor in secrets.env"
    with pytest.raises(ChannelRefused):
        HttpCarrier({"URL": ""}.get, lambda _: None).secret("URL")


@pytest.mark.parametrize(
    ("value", "seconds"),
    [
        ("3", 3.0),
        ("0.5", 0.5),
        ("-4", 0.0),
        ("Thu, 01 Jan 1970 00:01:10 GMT", 10.0),
        ("soon", None),
        (None, None),
    ],
)
def test_retry_after_is_read_as_seconds_or_a_date(value: str | None, seconds: float | None) -> None:
    """What cannot be read is as if it were not said."""
    assert retry_after(value, 60.0) == seconds


def test_a_strangers_channel_may_break(receiver: Receiver) -> None:
    """Its error is final, and its words, which may hold a secret, are not repeated."""

    class Broken:
        def render(self, adapter: Any, notice: Any) -> Any:
            return plugins.load("channels", "console").render(adapter, notice)

        async def send(self, rendered: Any, carrier: Any) -> None:
            raise RuntimeError("hunter2")

    async def work() -> Sent:
        carrier = HttpCarrier(lambda _: None, lambda _: None)
        broken = Broken()
        return await send(broken, broken.render(spec.Console(), A_NOTICE), carrier, attempts=3, timeout_seconds=1)

    assert asyncio.run(work()) == Sent(ok=False, attempts=1, detail="the channel failed: RuntimeError")


@pytest.mark.filterwarnings("ignore::DeprecationWarning")  # the library's own
def test_apprise_delivers(receiver: Receiver) -> None:
    """A service of the apprise library gets title and text; an address that it does not know is refused."""
    address = receiver.url.replace("http://", "json://")
    assert delivered(spec.Apprise(url_env="URL"), {"URL": address}).ok
    (got,) = receiver.got
    assert got.body["title"] == "Fleet needs_human"
    assert "fleet-abc" in got.body["message"]
    refused = delivered(spec.Apprise(url_env="URL"), {"URL": "nonsense"})
    assert (refused.ok, refused.attempts) == (False, 1)
