"""The clock of a store; tests bring their own."""

from __future__ import annotations

import time
from collections.abc import Callable

Clock = Callable[[], int]


def utc_ms() -> int:
    """UTC, in milliseconds."""
    return int(time.time() * 1000)
