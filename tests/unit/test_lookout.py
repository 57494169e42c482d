"""The lookout: when an agent ended, as far as that can be known."""

from __future__ import annotations

import asyncio
import time
from types import SimpleNamespace
from typing import Any

import pytest

from fleet.hosts.facts import Exit, HostState, Observed
from fleet.supervisor.lookout import Lookout

HOUR_MS = 3_600_000


def an_attempt(seen: Observed) -> Any:
    """What the lookout asks of an attempt on this machine, whose runner sees that."""

    async def observe() -> Observed:
        return seen

    async def safely(asked: Any) -> Any:
        return await asked

    there = SimpleNamespace(is_here=True)
    return SimpleNamespace(
        site=there, hosted=SimpleNamespace(observe=observe), safely=safely, heard=lambda: None, ended_at=None
    )


@pytest.mark.parametrize(("gap_seconds", "ago_ms"), [(600.0, 0), (0.0, HOUR_MS)])
def test_when_an_agent_ended(gap_seconds: float, ago_ms: int) -> None:
    """It ended when that is seen; when nobody could look for long, as long ago as its host says by its own clock."""
    ended = Exit(code=0, ended_at=7 * HOUR_MS, swept=True)
    attempt = an_attempt(Observed(state=HostState.EXITED, now=8 * HOUR_MS, exit=ended))

    async def scene() -> None:
        lookout = Lookout(attempt, gap_seconds=gap_seconds)
        lookout.begins()
        before, known = time.time_ns() // 1_000_000, []
        for record in (None, ended, ended):
            await lookout.sees(record)
            known.append(attempt.ended_at)
        assert before <= known[1] + ago_ms <= time.time_ns() // 1_000_000
        assert known == [None, known[1], known[1]]

    asyncio.run(scene())


def test_how_long_ago_an_agent_ended() -> None:
    """By the host's clock alone; it is never negative, and nothing where its record has no time."""
    running = Observed(state=HostState.RUNNING, now=9)
    assert running.ended_ms_ago is None
    for ended_at, ago in ((4, 5), (12, 0), (0, 0)):
        seen = Observed(state=HostState.EXITED, now=9, exit=Exit(code=0, ended_at=ended_at))
        assert seen.ended_ms_ago == ago
