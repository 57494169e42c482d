"""How long a session takes to start on this machine, and how much its verbs cost.

python bench/session_bench.py [SESSIONS]
"""

from __future__ import annotations

import asyncio
import sys
import tempfile
import time
from collections.abc import Awaitable
from pathlib import Path
from typing import TypeVar

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT), str(ROOT / "src")]

from bench.report import percentile  # noqa: E402  # the path must be set first
from fleet.hosts.local import LocalTransport  # noqa: E402
from fleet.hosts.session import HostedSession  # noqa: E402
from fleet.model.launch import Launch  # noqa: E402

T = TypeVar("T")
AGENT = Launch(argv=("sleep", "1000"), cwd="/", prompt="Do the work.\n" * 100, prompt_on_stdin=True)


async def measure(sessions: int) -> dict[str, list[float]]:
    """Each session in turn: prepared, started, observed, read, stopped."""
    times: dict[str, list[float]] = {}

    async def timed(what: str, work: Awaitable[T]) -> T:
        began = time.perf_counter()
        done = await work
        times.setdefault(what, []).append((time.perf_counter() - began) * 1000)
        return done

    with tempfile.TemporaryDirectory() as root:
        for number in range(sessions):
            session = HostedSession(LocalTransport(), root, f"bench.{number}", 1)
            began = time.perf_counter()
            await timed("prepare", session.prepare(AGENT))
            await timed("start", session.start())
            times.setdefault("prepare + start, to the pid", []).append((time.perf_counter() - began) * 1000)
            await timed("observe", session.observe())
            await timed("read, nothing new", session.read(0))
            await timed("stop", session.stop(grace_seconds=2))
    return times


def main(sessions: int) -> None:
    """Print the median and the slow tail of each."""
    for what, values in asyncio.run(measure(sessions)).items():
        print(f"{what}: p50 {percentile(values, 0.5):.2f} ms, p95 {percentile(values, 0.95):.2f} ms ({len(values)})")


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 50)
