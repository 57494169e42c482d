"""A look at a machine whose provider tells of it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from typing import NamedTuple

import pytest

from fleet.errors import NotFound, TransportError
from fleet.hosts.probe import SCRIPT
from fleet.hosts.sight import Look, Patience, look_at
from fleet.hosts.transport import Completed, Transport
from fleet.model.reach import Reach

ANSWER = b"0\nnow=0 disk=97% coder=yes\nfit\n"


class Said(NamedTuple):
    """What a provider says."""

    presence: str
    evidence: str = "it says so"
    asleep: bool = False


class Provided:
    """A machine with a provider. `said` None: the provider never answers."""

    def __init__(self, said: Said | None, answer: Completed | TransportError | None = None) -> None:
        self.said = said
        self.answer = answer if answer is not None else Completed(0, ANSWER, b"")
        self.ran: list[Sequence[str]] = []

    async def seen(self) -> Said:
        if self.said is None:
            await asyncio.Event().wait()
        assert self.said is not None
        return self.said

    async def run(self, argv: Sequence[str], *, stdin: bytes = b"") -> Completed:
        self.ran.append(argv)
        if isinstance(self.answer, TransportError):
            raise self.answer
        return self.answer

    async def put(self, path: str, data: bytes) -> None:
        raise NotImplementedError

    async def get(self, path: str, *, offset: int = 0, limit: int = 1 << 20) -> bytes:
        raise NotImplementedError

    def stream(self, argv: Sequence[str]) -> AsyncIterator[bytes]:
        raise NotImplementedError


def look(machine: Provided, *, wake: bool = False, probe: bool = True) -> Look:
    """One look, with little patience."""
    patience = Patience(api_seconds=0.05, probe_seconds=5, wake=wake, probe=probe)
    return asyncio.run(look_at("a", Reach(kind="sprite"), lambda: machine, "claude", patience))


def test_a_machine_that_runs() -> None:
    """Its state is the provider's word, the rest is what the probe found; the store is told."""
    machine = Provided(Said("running"))
    found = look(machine)
    assert (found.status, found.responsive, found.asleep, found.reason) == ("running", True, False, "")
    assert (found.facts.coder, found.facts.disk_used_pct) == (True, 97)
    assert found.facts.clock_ahead_seconds is not None
    assert found.facts.clock_ahead_seconds < -1_000_000
    assert found.found is not None
    assert found.found.state == "up"
    assert machine.ran == [["sh", "-c", SCRIPT, "probe", "", "", "claude"]]


def test_a_machine_that_sleeps() -> None:
    """It is not woken, nothing is told to the store; with `wake` it is probed and keeps the provider's word."""
    machine = Provided(Said("warm", asleep=True))
    found = look(machine)
    assert (found.status, found.responsive, found.asleep, found.found) == ("warm", None, True, None)
    assert machine.ran == []
    woken = look(machine, wake=True)
    assert (woken.status, woken.responsive, woken.asleep) == ("warm", True, False)


def test_a_machine_that_is_left_to_itself() -> None:
    """It runs, and nothing is sent to it: it may fall asleep."""
    machine = Provided(Said("running"))
    found = look(machine, probe=False)
    assert (found.status, found.responsive, found.found, machine.ran) == ("running", None, None, [])


@pytest.mark.parametrize(
    ("said", "status", "reason"),
    [
        (Said("missing?", "1 of 3 checks"), "not_found", "1 of 3 checks"),
        (Said("missing", "3 checks"), "not_found", "3 checks"),
        (Said("unknown", "the token is not accepted"), "error", "the token is not accepted"),
        (None, "error", "the API did not answer within 0.05 s"),
    ],
)
def test_a_machine_that_its_provider_does_not_show(said: Said | None, status: str, reason: str) -> None:
    """It is not probed; the store hears that its state is unknown, never that it is down."""
    machine = Provided(said)
    found = look(machine, wake=True)
    assert (found.status, found.responsive, found.reason, machine.ran) == (status, None, reason, [])
    assert found.found is not None
    assert found.found.state == "unknown"


def test_a_machine_that_does_not_answer() -> None:
    """Its provider says that it runs, but no command does: it is not responsive, and the reason is told."""
    found = look(Provided(Said("warm"), TransportError("the socket closed")))
    assert (found.status, found.responsive, found.reason) == ("warm", False, "the socket closed")


def test_a_way_that_cannot_be_made() -> None:
    """It is an error of that machine alone."""

    def no_way() -> Transport:
        raise NotFound("there is no such kind")

    patience = Patience(api_seconds=1, probe_seconds=1)
    found = asyncio.run(look_at("a", Reach(kind="sprite"), no_way, "claude", patience))
    assert (found.status, found.reason, found.found) == ("error", "there is no such kind", None)
