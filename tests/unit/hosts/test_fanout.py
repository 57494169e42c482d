"""One thing on many machines: who has answered is told before the last is asked."""

from __future__ import annotations

import asyncio

from fleet.hosts.fanout import across
from fleet.projections.machines import time_left


def test_answers_are_told_while_others_are_asked() -> None:
    """To ask hundreds takes a while; the first answer does not wait for it."""
    happened: list[tuple[str, int]] = []

    async def ask(number: int) -> int:
        happened.append(("asked", number))
        await asyncio.sleep(0)
        return number

    asyncio.run(across(range(9), ask, parallel=9, tell=lambda number: happened.append(("told", number))))
    assert happened.index(("told", 0)) < happened.index(("asked", 8))
    assert sorted(number for what, number in happened if what == "told") == list(range(9))


def test_who_is_asked_late_ends_with_the_others() -> None:
    """A machine has its whole time when it is asked at once, what is left of it later, and never less than half."""
    assert time_left(15, 0.1) == 15
    assert time_left(15, 4.0) == 11
    assert time_left(15, 14.0) == 7.5
