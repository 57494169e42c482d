"""The writer threads of a process that lives long."""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from fleet.errors import StoreError
from fleet.store.pending import Pending

if TYPE_CHECKING:
    from fleet.store.engine import Tx

WRITERS = 4


class Writers:
    """A few threads, each with its own connection."""

    def __init__(self, commit: Callable[[Callable[[Tx], Any], Pending[Any]], None], idle: Callable[[], None]) -> None:
        self._commit = commit
        self._idle = idle
        self._closed = False
        self._queue: queue.SimpleQueue[tuple[Callable[[Tx], Any], Pending[Any]] | None] = queue.SimpleQueue()
        self._threads = [
            threading.Thread(target=self._loop, name=f"fleet-writer-{n}", daemon=True) for n in range(WRITERS)
        ]
        for thread in self._threads:
            thread.start()

    def put(self, body: Callable[[Tx], Any], pending: Pending[Any]) -> None:
        if self._closed:
            pending.reject(StoreError("the store is closed; nothing was written"))
            return
        self._queue.put((body, pending))

    def close(self) -> None:
        self._closed = True
        for _ in self._threads:
            self._queue.put(None)
        for thread in self._threads:
            thread.join()

    def _loop(self) -> None:
        while True:
            if self._queue.empty():
                self._idle()
            item = self._queue.get()
            if item is None:
                self._idle()
                return
            self._commit(*item)
