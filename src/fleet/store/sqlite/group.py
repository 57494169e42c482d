"""Group commit: one thread writes for everybody in a process."""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeAlias

from fleet.errors import StoreError
from fleet.store.pending import Pending

if TYPE_CHECKING:
    from fleet.store.engine import Tx

Asked: TypeAlias = "tuple[Callable[[Tx], Any], Pending[Any]]"  # a verb, and where its answer goes
MOST_IN_A_BATCH = 512


class Group:
    """The writer thread: takes all that was asked for while the last commit was on its way."""

    def __init__(self, commit: Callable[[list[Asked]], None]) -> None:
        self._commit = commit
        self._closed = False
        self._queue: queue.SimpleQueue[Asked | None] = queue.SimpleQueue()
        self._thread = threading.Thread(target=self._loop, name="fleet-writer", daemon=True)
        self._thread.start()

    def put(self, body: Callable[[Tx], Any], pending: Pending[Any]) -> None:
        if self._closed:
            pending.reject(StoreError("the store is closed; nothing was written"))
            return
        self._queue.put((body, pending))

    def close(self) -> None:
        self._closed = True
        self._queue.put(None)
        self._thread.join()

    def _loop(self) -> None:
        closing = False
        while not closing:
            item = self._queue.get()
            batch = []
            while item is not None:
                batch.append(item)
                if len(batch) == MOST_IN_A_BATCH or self._queue.empty():
                    break
                item = self._queue.get()
            closing = item is None
            if batch:
                self._commit(batch)
