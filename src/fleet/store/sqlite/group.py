"""Group commit: one thread writes for everybody in a process."""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeAlias, TypeVar

from fleet.errors import StoreError
from fleet.store.pending import Outcome, Pending, answer

if TYPE_CHECKING:
    from fleet.store.engine import Tx

T = TypeVar("T")
Body: TypeAlias = "Callable[[Tx], Any]"  # a verb
MOST_IN_A_BATCH = 512


class Group:
    """The writer thread: takes all that was asked for while the last commit was on its way.

    `afterwards` is done once those who wait have their answers.
    """

    def __init__(self, commit: Callable[[list[Body]], list[Outcome]], afterwards: Callable[[], None]) -> None:
        self._commit = commit
        self._afterwards = afterwards
        self._closed = False
        self._queue: queue.SimpleQueue[tuple[Body, Pending[Any]] | None] = queue.SimpleQueue()
        self._thread = threading.Thread(target=self._loop, name="fleet-writer", daemon=True)
        self._thread.start()

    def put(self, body: Callable[[Tx], T], pending: Pending[T]) -> None:
        if self._closed:
            pending.reject(StoreError("the store is closed; nothing was written"))
        else:
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
                outcomes = self._commit([body for body, _ in batch])
                answer([(pending, outcome) for (_, pending), outcome in zip(batch, outcomes, strict=True)])
                self._afterwards()
