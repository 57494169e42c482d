"""The clock of a store; tests bring their own."""

from __future__ import annotations

import time
from collections.abc import Callable

Clock = Callable[[], int]


def utc_ms() -> int:
    """UTC, in milliseconds."""
    return time.time_ns() // 1_000_000
