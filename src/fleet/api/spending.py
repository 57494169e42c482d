"""What was spent, for those who ask often: sums are kept, and only what has ended since is added to them."""

from __future__ import annotations

import threading
from collections.abc import Callable

from fleet.projections.cost import Cost, Spending
from fleet.store.reads import Reads

MOST = 32  # questions whose sums are kept: the same is asked again and again, until the day ends


class Sums:
    """One for a server. Asked by several threads, one at a time."""

    def __init__(self, clock: Callable[[], int]) -> None:
        self._clock = clock
        self._known: dict[tuple[object, ...], Spending] = {}  # the one that was asked for last is the last
        self._lock = threading.Lock()

    def cost(self, reads: Reads, since: int, by: str, days: tuple[str, ...]) -> Cost:
        """What was spent, up to now."""
        with self._lock:
            asked = (since, by, days)
            spending = self._known.pop(asked, None) or Spending(*asked)
            found = spending.cost(reads, self._clock())
            self._known[asked] = spending
            while len(self._known) > MOST:
                del self._known[next(iter(self._known))]
            return found
