"""The channel contract, over every channel that sends by itself."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from fleet import plugins
from fleet.channels.channel import Channel
from fleet.model import alert_spec as spec
from fleet.testing.channel_contract import ChannelContract

HOOK = "https://hooks.example/T0/B0/hunter2"
CASES: dict[str, tuple[Any, dict[str, str]]] = {
    "slack": (spec.Slack(webhook_env="S", channel="#ops"), {"S": HOOK}),
    "discord": (spec.Discord(webhook_env="D"), {"D": HOOK}),
    "webhook": (spec.Webhook(url_env="U", secret_env="K"), {"U": HOOK, "K": "the key"}),
    "pager_duty": (spec.PagerDuty(routing_key_env="R", endpoint_env="E"), {"R": "a routing key", "E": HOOK}),
    "console": (spec.Console(), {}),
}


@pytest.mark.parametrize("kind", list(CASES))
class TestBuiltIn(ChannelContract):
    """Those that Fleet brings."""

    @pytest.fixture
    def channel(self, kind: str) -> Channel:
        made: Channel = plugins.load("channels", kind)
        return made

    @pytest.fixture
    def adapter(self, kind: str) -> Any:
        return CASES[kind][0]

    @pytest.fixture
    def secrets(self, kind: str) -> Mapping[str, str]:
        return CASES[kind][1]


def test_built_ins_are_registered_as_a_strangers_are() -> None:
    """The names that cost no search are those of the entry points."""
    from importlib.metadata import entry_points

    from fleet.channels import BUILT_IN

    assert {point.name: point.value for point in entry_points(group="fleet.channels")} == BUILT_IN
