"""The stopwatch of a session: for how long its agent ran, by clocks that nobody sets."""

from __future__ import annotations

import time

from fleet.config.clock import Clock, steady_ms

LATE_MS = 10_000  # that we can be late to learn of a beginning


class Stopwatch:
    """Runs from when it was made, until it is told otherwise."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._began = clock()
        self._ended: int | None = None

    @property
    def elapsed_ms(self) -> int:
        """For how long it ran, or has until now."""
        return max(0, (self._clock() if self._ended is None else self._ended) - self._began)

    def begin(self, ago_ms: int = 0) -> None:
        """What it measures began so long ago."""
        self._began = self._clock() - ago_ms

    def end(self, ago_ms: int = 0) -> None:
        """It ended so long ago. The first word counts: what is seen later was seen later."""
        if self._ended is None:
            self._ended = self._clock() - ago_ms

    def measured(self, ran_ms: int) -> None:
        """What was there measured, whose beginning and end we learned of later. Much more than we did counts as well
        that this machine slept."""
        if self._ended is not None and ran_ms - self.elapsed_ms < LATE_MS:
            self._began = self._ended - ran_ms


def stopwatch(*, here: bool) -> Stopwatch:
    """For an agent on this machine, which sleeps when we do; or on another one, which does not."""
    return Stopwatch(_awake_ms if here else steady_ms)


def _awake_ms() -> int:
    return time.monotonic_ns() // 1_000_000
