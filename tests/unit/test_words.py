"""Times and amounts in words."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fleet.cli.words import ago, aligned, count, now_ms, span, when

SECOND, MINUTE, HOUR, DAY = 1000, 60_000, 3_600_000, 86_400_000


@pytest.mark.parametrize(
    ("milliseconds", "words"),
    [
        (-5, "0s"),
        (0, "0s"),
        (999, "0s"),
        (59 * SECOND, "59s"),
        (MINUTE, "1m00s"),
        (61 * SECOND, "1m01s"),
        (HOUR - 1, "59m59s"),
        (HOUR, "1h00m"),
        (DAY - 1, "23h59m"),
        (DAY, "1d00h"),
        (400 * DAY + 5 * HOUR, "400d05h"),
    ],
)
def test_spans(milliseconds: int, words: str) -> None:
    """A duration is told by its two largest parts, rounded down; one in the future is none."""
    assert span(milliseconds) == words


@given(st.integers(0, 10**12), st.integers(0, 10**12))
def test_a_longer_span_is_never_told_as_a_shorter_one(one: int, two: int) -> None:
    """Read back, what is told is within one of its smallest part of the truth, and in order."""
    units = {"s": SECOND, "m": MINUTE, "h": HOUR, "d": DAY}

    def back(milliseconds: int) -> int:
        return sum(int(n) * units[unit] for n, unit in re.findall(r"(\d+)([smhd])", span(milliseconds)))

    assert back(one) <= one
    if one <= two:
        assert back(one) <= back(two)


def test_counts() -> None:
    """One is singular, all others are plural."""
    assert [count(n, "task") for n in (0, 1, 2)] == ["0 tasks", "1 task", "2 tasks"]


def test_moments() -> None:
    """A moment is told to the second, and how long ago it was from now on."""
    assert re.fullmatch(r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d", when(now_ms()))
    assert ago(now_ms()) == "0s ago"
    assert ago(now_ms() - 3 * HOUR) == "3h00m ago"
    assert ago(now_ms() + HOUR) == "0s ago"


def test_rows_are_aligned() -> None:
    """By what a terminal shows, also of wide letters; numbers stand to the right; nothing follows the last word."""
    rows = [("NAME", "COST"), ("日本", "7"), ("a", "1,000")]
    assert aligned(rows) == ["NAME  COST", "日本  7", "a     1,000"]
    assert aligned(rows, right=True) == ["NAME   COST", "日本      7", "a     1,000"]
    assert aligned([]) == []
