"""One thing on many machines: who has answered is told before the last is asked."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence

import pytest

from fleet.hosts.fanout import Command, Ran, across, run_on, stopped
from fleet.hosts.transport import Completed, Course
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


class Held:
    """A transport whose run comes so far, and no farther."""

    def __init__(self, began: bool | None, told: bool = True) -> None:
        self._began = began
        self._told = told

    async def run(self, argv: Sequence[str], *, stdin: bytes = b"") -> Completed:
        with Course("it still woke") as course:
            course.began = self._began
            course.stdout += b"so far"
            try:
                await asyncio.Event().wait()
            except asyncio.CancelledError as exc:
                if not self._told:
                    raise exc from ValueError()
                raise
        raise AssertionError

    async def put(self, path: str, data: bytes) -> None: ...

    async def get(self, path: str, *, offset: int = 0, limit: int = 1 << 20) -> bytes:
        return b""

    async def stream(self, argv: Sequence[str]) -> AsyncIterator[bytes]:
        yield b""


def ran(way: Held) -> Ran:
    return asyncio.run(run_on("a", lambda: way, Command(argv=("true",), seconds=0.01)))


def test_a_timeout_says_only_what_is_known() -> None:
    """What began was killed, and its output is kept; what did not was not; of the rest neither is claimed."""
    killed = ran(Held(True))
    assert (killed.end, killed.reason) == ("timeout", "no end after 0.01 s; it was killed")
    assert (killed.began, killed.stdout, killed.cut_off) == (True, "so far", True)
    waking = ran(Held(False))
    assert (waking.end, waking.reason) == ("unreachable", "it never began: after 0.01 s it still woke")
    assert (waking.began, waking.cut_off) == (False, False)
    for silent in (ran(Held(None)), ran(Held(True, told=False))):
        assert (silent.end, silent.began) == ("timeout", None)
        assert silent.reason == "no end after 0.01 s; it was killed if it had begun"


@pytest.mark.parametrize(
    ("began", "reason"),
    [
        (False, "it never began: it still woke"),
        (True, "it was killed before its end"),
        (None, "it was killed before its end if it had begun"),
    ],
)
def test_who_is_stopped_is_told_the_same(began: bool | None, reason: str) -> None:
    """So is what a person ends."""
    course = Course("it still woke")
    course.began = began
    told = stopped("a", course)
    assert (told.end, told.began, told.reason) == ("stopped", began, reason)
