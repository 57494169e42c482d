"""The clock of a PostgreSQL server, which all who share it record by: theirs may be apart."""

from __future__ import annotations

import threading
from collections.abc import Callable

from fleet.config.clock import Clock, steady_ms

ASK_MS = 30_000  # it is asked as often; in between, a clock of ours goes on that nobody sets


class ServerClock:
    """What the server's clock says, for any thread."""

    def __init__(self, ask: Callable[[], int], steady: Clock = steady_ms) -> None:
        self._ask = ask
        self._steady = steady
        self._asked_at: int | None = None
        self._ahead = 0  # of our own
        self._asking = threading.Lock()

    def __call__(self) -> int:
        first = self._asked_at is None
        if self._is_due() and self._asking.acquire(blocking=first):  # else another asks: what was said last will do
            try:
                if self._is_due():
                    self._follow()
            finally:
                self._asking.release()
        return self._steady() + self._ahead

    def _is_due(self) -> bool:
        return self._asked_at is None or self._steady() - self._asked_at > ASK_MS

    def _follow(self) -> None:
        before = self._steady()
        said = self._ask()
        after = self._steady()
        self._ahead, self._asked_at = said - (before + after) // 2, after
