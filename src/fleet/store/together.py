"""Many verbs of one transaction: a commit each would take a second for every few hundred of them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeVar

from fleet.store.engine import Asked, Engine, Over, Tx
from fleet.store.pending import Pending

T = TypeVar("T")


class Together(Over):
    """An engine that gathers what is to be written, until it is told to commit."""

    def __init__(self, engine: Engine) -> None:
        super().__init__(engine)
        self._asked: list[Asked] = []

    def write(self, body: Callable[[Tx], T]) -> Pending[T]:
        pending: Pending[T] = Pending()
        self._asked.append((body, pending))
        return pending

    def write_each(self, asked: Sequence[Asked]) -> None:
        self._asked += asked

    def commit(self) -> None:
        """Have it written; each is told its own outcome."""
        asked, self._asked = self._asked, []
        if asked:
            self._engine.write_each(asked)
