"""The transport contract, over this machine."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from fleet.errors import TransportError
from fleet.hosts.local import LocalTransport
from fleet.hosts.transport import Transport
from fleet.testing.transport_contract import TransportContract


class TestLocal(TransportContract):
    """This machine, without a way in between."""

    @pytest.fixture
    def transport(self) -> Transport:
        return LocalTransport()

    @pytest.fixture
    def place(self, tmp_path: Path) -> str:
        return str(tmp_path)

    @pytest.mark.parametrize("argv", [["no-such-program"], ["/"], ["printf", "a\0b"], ["true", "x" * 3_000_000]])
    def test_what_cannot_run_raises(self, transport: Transport, argv: list[str]) -> None:
        """A program that cannot be started is an error of the transport, whatever the reason."""
        with pytest.raises(TransportError):
            asyncio.run(transport.run(argv))
