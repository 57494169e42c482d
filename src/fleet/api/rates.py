"""How often somebody may ask: a bucket for each, that fills with time."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable
from time import monotonic

MOST_KNOWN = 4096  # who asked long ago is forgotten first


class Rates:
    """Buckets by name. Each holds two seconds' worth, so that a burst is no offence."""

    def __init__(self, per_second: float, *, clock: Callable[[], float] = monotonic) -> None:
        self._per_second = per_second
        self._most = max(1.0, per_second * 2)
        self._clock = clock
        self._levels: OrderedDict[str, tuple[float, float]] = OrderedDict()

    def take(self, name: str) -> float:
        """0 when one more is allowed; else the seconds until one is."""
        level, now = self._level(name)
        allowed = level >= 1
        self._levels[name] = (level - 1 if allowed else level, now)
        self._levels.move_to_end(name)
        if len(self._levels) > MOST_KNOWN:
            self._levels.popitem(last=False)
        return 0.0 if allowed else (1 - level) / self._per_second

    def _level(self, name: str) -> tuple[float, float]:
        now = self._clock()
        level, at = self._levels.get(name, (self._most, now))
        return min(self._most, level + (now - at) * self._per_second), now
