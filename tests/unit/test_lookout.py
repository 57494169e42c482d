"""The lookout: when an agent ended, as far as that can be known."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace
from typing import Any

import pytest

from fleet.config.clock import utc_ms
from fleet.hosts.facts import Exit, HostState, Observed
from fleet.model.session import Session
from fleet.supervisor.lookout import Lookout
from fleet.supervisor.stopwatch import Stopwatch

HOUR_MS = 3_600_000


def an_attempt(seen: Observed) -> Any:
    """What the lookout asks of an attempt on this machine, whose runner sees that."""

    async def observe() -> Observed:
        return seen

    async def safely(asked: Any) -> Any:
        return await asked

    there = SimpleNamespace(is_here=True)
    return SimpleNamespace(
        site=there,
        hosted=SimpleNamespace(observe=observe),
        safely=safely,
        heard=lambda: None,
        ended_at=None,
        stopwatch=Stopwatch(lambda: 5 * HOUR_MS),
        house=SimpleNamespace(store=SimpleNamespace(now=lambda: 9 * HOUR_MS)),
    )


@pytest.mark.parametrize(("gap_seconds", "ago_ms"), [(600.0, 0), (0.0, HOUR_MS)])
def test_when_an_agent_ended(gap_seconds: float, ago_ms: int) -> None:
    """It ended when that is seen; when nobody could look for long, as long ago as its host says by its own clock."""
    ended = Exit(code=0, ended_at=7 * HOUR_MS, swept=True)
    attempt = an_attempt(Observed(state=HostState.EXITED, now=8 * HOUR_MS, exit=ended))

    async def scene() -> None:
        lookout = Lookout(attempt, gap_seconds=gap_seconds)
        lookout.begins()
        before, known = utc_ms(), []
        for record in (None, ended, ended):
            await lookout.sees(record)
            known.append(attempt.ended_at)
        assert before <= known[1] + ago_ms <= utc_ms()
        assert known == [None, known[1], known[1]]

    asyncio.run(scene())


@pytest.mark.parametrize(("record", "took_ms"), [(Exit(code=0, ran_ms=1510), 1510), (Exit(code=0), 0)])
def test_for_how_long_an_agent_ran_that_was_followed(record: Exit, took_ms: int) -> None:
    """As the record of its end says: we may have learned late that it began, and that it ended."""
    attempt = an_attempt(Observed(state=HostState.EXITED, exit=record))

    async def scene() -> None:
        lookout = Lookout(attempt, gap_seconds=600)
        lookout.begins()
        await lookout.sees(record)
        assert attempt.stopwatch.elapsed_ms == took_ms

    asyncio.run(scene())


def test_a_host_is_asked_at_once_when_the_processes_are_gone() -> None:
    """However seldom it is asked of a silent agent: that its processes are not to be seen is not waited out."""
    attempt = an_attempt(Observed(state=HostState.RUNNING, runner_lives=True))
    asked, observe = [], attempt.hosted.observe

    async def counted() -> Observed:
        asked.append(1)
        seen: Observed = await observe()
        return seen

    attempt.hosted.observe = counted

    async def scene() -> list[int]:
        lookout = Lookout(attempt)
        lookout.begins()
        counts = []
        for vanished in (False, True, True):
            assert not await lookout.sees_it_ended(vanished=vanished)
            counts.append(len(asked))
        return counts

    assert asyncio.run(scene()) == [0, 1, 1]


def test_how_long_ago_an_agent_ended() -> None:
    """By the host's clock alone; it is never negative, and nothing where its record has no time."""
    running = Observed(state=HostState.RUNNING, now=9)
    assert running.ended_ms_ago is None
    for ended_at, ago in ((4, 5), (12, 0), (0, 0)):
        seen = Observed(state=HostState.EXITED, now=9, exit=Exit(code=0, ended_at=ended_at))
        assert seen.ended_ms_ago == ago


@pytest.mark.parametrize(
    ("seen", "took_ms"),
    [
        (Observed(state=HostState.RUNNING, now=99 * HOUR_MS, ran_ms=7), 7),
        (Observed(state=HostState.RUNNING, now=99 * HOUR_MS), HOUR_MS),
        (Observed(state=HostState.EXITED, now=3, ran_ms=7, exit=Exit(code=0, ended_at=9, ran_ms=7)), 7),
        (Observed(state=HostState.EXITED, now=9 * HOUR_MS, ran_ms=7, exit=Exit(code=0, ended_at=1, ran_ms=7)), 7),
        (Observed(state=HostState.EXITED, now=HOUR_MS, exit=Exit(code=0, ended_at=HOUR_MS - 5)), HOUR_MS - 5),
    ],
)
def test_for_how_long_an_agent_ran_whose_supervisor_was_gone(seen: Observed, took_ms: int) -> None:
    """As its host measured, whose clock may be days off and set at any time; else by the times of the ledger."""
    attempt = an_attempt(seen)
    session = Session(
        id="a.1",
        task="a",
        epoch=1,
        worker="w#1",
        host="h",
        supervisor="s",
        coder="c",
        claimed_at=1,
        started_at=8 * HOUR_MS,
    )

    async def scene() -> None:
        Lookout(attempt).resumes(seen, session)
        assert attempt.stopwatch.elapsed_ms == took_ms

    asyncio.run(scene())
