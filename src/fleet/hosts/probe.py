"""A probe: whether a machine answers, and has what sessions need; a value with its evidence, whatever comes of it."""

from __future__ import annotations

import asyncio
import time

import msgspec

from fleet.errors import TransportError
from fleet.hosts.transport import Transport
from fleet.model.host import Host
from fleet.model.reach import Reach

# Says who we are there; the last word is `fit`, or why it is not.
SCRIPT = """
id -u
if ! cd -- "$1" 2>/dev/null; then echo "there is no directory $1"; exit; fi
if ! mkdir -p .fleet/sessions 2>/dev/null || [ ! -w .fleet/sessions ]; then echo "$1 cannot be written"; exit; fi
if ! command -v "$2" >/dev/null 2>&1; then echo "there is no program $2"; exit; fi
echo fit
"""


class Probed(msgspec.Struct, frozen=True):
    """What a probe found."""

    host: Host
    as_root: bool = False


async def probe(name: str, reach: Reach, transport: Transport, *, seconds: float) -> Probed:
    """Ask a machine once, for not longer than that."""
    now, began = time.time_ns() // 1_000_000, time.monotonic()
    up, took, as_root = False, None, False
    try:
        async with asyncio.timeout(seconds):
            done = await transport.run(["sh", "-c", SCRIPT, "probe", reach.working_directory, reach.agent_binary])
    except TimeoutError:
        evidence = f"no answer within {seconds:g} s"
    except TransportError as exc:
        evidence = str(exc)
    else:
        took = round((time.monotonic() - began) * 1000)
        uid, _, said = done.stdout.decode("utf-8", "replace").strip().partition("\n")
        up, as_root = said == "fit", uid == "0"
        evidence = "it answered, and has what sessions need" if up else said or f"its sh ended with code {done.code}"
    host = Host(
        name=name,
        kind=reach.kind,
        state="up" if up else "down",
        since=now,
        evidence=evidence,
        latency_ms=took,
        probed_at=now,
    )
    return Probed(host, as_root)
