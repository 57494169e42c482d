"""The answer to a store verb: `await` it in a loop, `.result()` it elsewhere."""

from __future__ import annotations

import threading
from collections.abc import Generator, Iterable
from typing import TYPE_CHECKING, Any, Generic, TypeAlias, TypeVar

if TYPE_CHECKING:
    from asyncio import AbstractEventLoop, Future

T = TypeVar("T")
Outcome: TypeAlias = "tuple[Any, BaseException | None]"  # the value of a verb, or what it raises
Waiter: TypeAlias = "threading.Event | tuple[AbstractEventLoop, Future[None]]"  # a thread, or somebody in a loop
_lock = threading.Lock()  # between those who begin to wait and the writer; held for a few instructions, so one does


class Pending(Generic[T]):
    """A value that the writer will have after its commit, or the error that it met. Set once."""

    __slots__ = ("_done", "_error", "_value", "_waiting")

    def __init__(self) -> None:
        self._done = False
        self._value: Any = None
        self._error: BaseException | None = None
        self._waiting: tuple[Waiter, ...] = ()

    @classmethod
    def of(cls, outcome: Outcome) -> Pending[T]:
        """One that has its answer before anybody could wait for it."""
        pending = cls()
        pending._value, pending._error = outcome
        pending._done = True
        return pending

    def resolve(self, value: T) -> None:
        """Called by the writer after the commit."""
        answer([(self, (value, None))])

    def reject(self, error: BaseException) -> None:
        """Called by the writer when nothing was written."""
        answer([(self, (None, error))])

    def result(self, timeout: float | None = None) -> T:
        """The value, waiting for it if need be; raises what the verb raised."""
        if not self._done:
            arrived = threading.Event()
            if self._wait(arrived) and not arrived.wait(timeout):
                raise TimeoutError("the store has not answered in time")
        if self._error is not None:
            raise self._error
        value: T = self._value
        return value

    def __await__(self) -> Generator[Any, None, T]:
        if not self._done:
            import asyncio

            loop = asyncio.get_running_loop()
            arrived = loop.create_future()
            if self._wait((loop, arrived)):
                yield from arrived
        return self.result()

    def _wait(self, arrived: Waiter) -> bool:
        """Be told of the answer; False: it is there."""
        with _lock:
            if self._done:
                return False
            self._waiting = (*self._waiting, arrived)
            return True


def answer(batch: Iterable[tuple[Pending[Any], Outcome]]) -> None:
    """Answer a whole batch. Each loop is woken once: woken for every answer, it would fight the writer for the GIL."""
    told: list[Waiter] = []
    with _lock:
        for pending, outcome in batch:
            pending._value, pending._error = outcome
            pending._done = True
            told += pending._waiting
    if told:
        _wake(told)


def _wake(told: list[Waiter]) -> None:
    loops: dict[AbstractEventLoop, list[Future[None]]] = {}
    for arrived in told:
        if isinstance(arrived, tuple):
            loops.setdefault(arrived[0], []).append(arrived[1])
        else:
            arrived.set()
    for loop, futures in loops.items():
        try:
            loop.call_soon_threadsafe(_arrive, futures)
        except RuntimeError:  # the loop is closed: nobody waits any more
            continue


def _arrive(futures: list[Future[None]]) -> None:
    for future in futures:
        if not future.done():
            future.set_result(None)
