"""The clocks: the one on the wall, which somebody may set; and the one that only goes on."""

from __future__ import annotations

import time
from collections.abc import Callable

Clock = Callable[[], int]
# The former is of Linux, and goes on while the machine sleeps.
_STEADY = getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC)


def utc_ms() -> int:
    """UTC in milliseconds: what is recorded and shown. Two of them tell how much time passed only if nobody set it."""
    return time.time_ns() // 1_000_000


def steady_ms() -> int:
    """Milliseconds of a clock that nobody sets: how much time passed, within one boot of the machine."""
    return time.clock_gettime_ns(_STEADY) // 1_000_000


def unhurried(utc: Clock = utc_ms, steady: Clock = steady_ms) -> Clock:
    """UTC for those who remove what is old: set forward from now on, it makes nothing older than it is."""
    ahead = utc() - steady()
    return lambda: min(utc(), steady() + ahead)
