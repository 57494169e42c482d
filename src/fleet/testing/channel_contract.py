"""ChannelContract: what every channel must do. Subclass it and give it `channel`, `adapter` and `secrets` fixtures."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec
import pytest

from fleet.channels.channel import Channel
from fleet.model.notice import Notice

A_NOTICE = Notice(
    alert="needs_human",
    run_id="nightly-abc",
    worker_id="nightly-abc-local-1",
    task_id="fleet-abc",
    status="blocked",
    reason="permission: may it push? <!channel> @everyone & so on",
    commands=("fleet status", "fleet inspect nightly-abc-local-1"),
    at=1_794_770_382_587,
    id="0123456789ab.mine",
    key="fleet/needs_human/fleet-abc",
)


class ChannelContract:
    """One suite over every implementation."""

    @pytest.fixture
    def channel(self) -> Channel:
        raise NotImplementedError

    @pytest.fixture
    def adapter(self) -> Any:
        raise NotImplementedError

    @pytest.fixture
    def secrets(self) -> Mapping[str, str]:
        """What the variables of the adapter hold."""
        return {}

    def test_rendering_is_pure(self, channel: Channel, adapter: Any) -> None:
        """The same notice renders to the same, and it can be written as JSON."""
        first = channel.render(adapter, A_NOTICE)
        assert first == channel.render(adapter, A_NOTICE)
        assert msgspec.json.decode(msgspec.json.encode(first))["target"]

    def test_what_is_rendered_tells_enough(self, channel: Channel, adapter: Any) -> None:
        """Run, worker, task, reason and a command to paste are in it."""
        text = msgspec.json.encode(channel.render(adapter, A_NOTICE)).decode()
        for word in ("needs_human", "nightly-abc", "nightly-abc-local-1", "fleet-abc", "may it push?", "fleet status"):
            assert word in text, word

    def test_what_is_rendered_holds_no_secret(self, channel: Channel, adapter: Any, secrets: Mapping[str, str]) -> None:
        """Each variable is a mark; its value comes in at the sending."""
        text = msgspec.json.encode(channel.render(adapter, A_NOTICE)).decode()
        for name, value in secrets.items():
            assert f"<redacted:env:{name}>" in text
            assert value not in text

    async def sent(self, channel: Channel, adapter: Any, carrier: Any) -> None:
        await channel.send(channel.render(adapter, A_NOTICE), carrier)

    def test_sending_resolves_every_variable(self, channel: Channel, adapter: Any, secrets: Mapping[str, str]) -> None:
        """What leaves has the values, and no mark is left in it."""
        import asyncio

        carrier = Remembers(secrets)
        asyncio.run(self.sent(channel, adapter, carrier))
        assert carrier.asked == set(secrets)
        assert carrier.left
        assert not any("<redacted:" in text for text in carrier.left)


class Remembers:
    """A carrier that goes nowhere."""

    def __init__(self, secrets: Mapping[str, str]) -> None:
        self._secrets = secrets
        self.asked: set[str] = set()
        self.left: list[str] = []

    def secret(self, name: str) -> str:
        """The value."""
        self.asked.add(name)
        return self._secrets[name]

    async def post(self, url: str, body: bytes, headers: Mapping[str, str]) -> None:
        """Taken."""
        self.left.append(f"{url} {dict(headers)} {body.decode()}")

    def say(self, line: str) -> None:
        """Taken."""
        self.left.append(line)
