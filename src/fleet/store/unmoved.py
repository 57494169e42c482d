"""A fence for people: a verb happens only while its subject is where the person last saw it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeVar

from fleet.errors import Fenced
from fleet.store import ledger
from fleet.store.engine import Asked, Engine, Over, Tx
from fleet.store.pending import Pending

T = TypeVar("T")


class Unmoved(Over):
    """An engine whose first write finds the newest event of a subject to be the expected one, or raises Fenced.

    The look and the write are one transaction. Later writes belong to the same verb and are not held up.
    """

    def __init__(self, engine: Engine, subject: str, seq: int) -> None:
        super().__init__(engine)
        self._subject = subject
        self._seq = seq
        self._passed = False

    def write(self, body: Callable[[Tx], T]) -> Pending[T]:
        if self._passed:
            return self._engine.write(body)
        self._passed = True

        def fenced(tx: Tx) -> T:
            found = self._newest(tx)
            if found != self._seq:
                raise Fenced(
                    f"{self._subject} has moved on: its newest event is {found}, not {self._seq}; nothing was done",
                    hint="look at it again, then decide",
                )
            return body(tx)

        return self._engine.write(fenced)

    def write_each(self, asked: Sequence[Asked]) -> None:
        if not self._passed:
            raise AssertionError("the first write of a verb is one by itself: it is that which is held up")
        self._engine.write_each(asked)

    def _newest(self, tx: Tx) -> int:
        """Held to the end of the transaction, so that nobody moves it meanwhile."""
        where = "tasks WHERE uid = ?" if ledger.is_task(self._subject) else "heads WHERE subject = ?"
        rows = tx.rows(f"SELECT head FROM {where}{tx.for_update}", self._subject)
        return int(rows[0][0]) if rows else 0
