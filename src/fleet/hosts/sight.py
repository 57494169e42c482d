"""A look at a machine, for a person: what its provider says of it, then a probe, unless that would wake it."""

from __future__ import annotations

import asyncio
import time

import msgspec

from fleet.config.clock import utc_ms
from fleet.errors import FleetError
from fleet.hosts.fanout import Way
from fleet.hosts.probe import Facts, probe, status_of
from fleet.hosts.transport import SupportsSight, Transport, refusal_behind
from fleet.model.host import Host
from fleet.model.reach import Reach

FAULTS = frozenset({"not_found", "error"})


class Patience(msgspec.Struct, frozen=True, kw_only=True):
    """How long a look may take, and whether it may wake a machine."""

    api_seconds: float
    probe_seconds: float
    wake: bool = False
    probe: bool = True  # False: what the provider says is enough, so that the machine may fall asleep


class Look(msgspec.Struct, frozen=True, kw_only=True):
    """What a look found. `found` is for the store; None where nothing was learned that it should keep."""

    name: str
    status: str  # running, warm, cold, not_found or error of a provider; else up or down
    responsive: bool | None = None  # whether a command ran on it; None where none was sent
    asleep: bool = False
    ms: int | None = None  # of the provider's answer, else of the machine's own
    reason: str = ""  # what is wrong, or why it is not known
    facts: Facts = Facts()
    found: Host | None = None


async def look_at(name: str, reach: Reach, way: Way, coder: str, patience: Patience) -> Look:
    """Look at one machine. Raises nothing but a cancellation."""
    try:
        transport = way()
    except FleetError as exc:
        return Look(name=name, status="error", reason=str(exc))
    if not isinstance(transport, SupportsSight):
        return await _probed(name, reach, transport, coder, patience)
    seen = await _seen(name, reach.kind, transport, patience.api_seconds)
    if seen.status in FAULTS or not patience.probe or (seen.asleep and not patience.wake):
        return seen
    tried = await _probed(name, reach, transport, coder, patience)
    return msgspec.structs.replace(tried, status=seen.status, ms=seen.ms)


async def _seen(name: str, kind: str, transport: SupportsSight, seconds: float) -> Look:
    began = time.monotonic()
    status, asleep, evidence = "error", False, f"the API did not answer within {seconds:g} s"
    took = None
    try:
        async with asyncio.timeout(seconds):
            seen = await transport.seen()
    except TimeoutError as exc:
        evidence = str(refusal_behind(exc) or evidence)
    else:
        status, asleep, evidence = status_of(seen), seen.asleep, seen.evidence
        if status != "error":  # else it was not asked, or asked again and again, and has not said
            took = round((time.monotonic() - began) * 1000)
    if status not in FAULTS:
        return Look(name=name, status=status, asleep=asleep, ms=took)
    now = utc_ms()
    found = Host(name=name, kind=kind, state="unknown", since=now, evidence=evidence, probed_at=now)
    return Look(name=name, status=status, ms=took, reason=evidence, found=found)


async def _probed(name: str, reach: Reach, transport: Transport, coder: str, patience: Patience) -> Look:
    probed = await probe(name, reach, transport, seconds=patience.probe_seconds, coder=coder)
    host = probed.host
    answered = host.latency_ms is not None
    return Look(
        name=name,
        status="up" if answered else "down",
        responsive=answered,
        ms=host.latency_ms,
        reason="" if host.state == "up" else host.evidence,
        facts=probed.facts,
        found=host,
    )
