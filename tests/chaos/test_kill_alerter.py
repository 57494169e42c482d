"""A supervisor is killed on the way from an alert's record to its receiver. It is told at least once, and marked."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from fleet.config import secrets
from fleet.testing.audit import audit
from tests.support.receiver import Receiver, receiving
from tests.support.supervised import Campaign

CHANNELS = """
[alerts]
enabled = true

[channels.ops]
kind = "webhook"
url_env = "OPS_URL"

[[routes]]
channel = "ops"
events = ["restart_exhausted"]
"""


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    """A receiver that is up."""
    with receiving() as made:
        yield made


@pytest.mark.parametrize(("point", "before"), [("alert_announced", 0), ("alert_sent", 1)])
def test_an_alert_survives_its_sender(tmp_path: Path, receiver: Receiver, point: str, before: int) -> None:
    """Killed before the sending, it is sent by the next; killed before the record, it is sent again. Both say so."""
    campaign = Campaign(tmp_path)
    campaign.home.toml.write_text(campaign.home.toml.read_text() + CHANNELS)
    campaign.cli.ok("config", "set", "supervisor.max_attempts=1")
    secrets.put(campaign.home, "OPS_URL", receiver.url)
    uid = campaign.cli.add("give up", "--coder", "command", "-d", "exit 1")
    campaign.killed_at(point)
    assert [got.body["event"]["repeat"] for got in receiver.got] == [False] * before
    with campaign.supervisor("--drain") as process:
        process.wait(60)
    told = [got.body["event"] for got in receiver.wait(before + 1)]
    assert [(event["task_id"], event["repeat"]) for event in told] == [(uid, False)] * before + [(uid, True)]
    assert len({event["id"] for event in told}) == 1
    (kept,) = campaign.ask(lambda store: store.deliveries(about=uid))
    assert (kept.outcome, kept.repeat) == ("sent", True)
    campaign.ask(audit)
