"""The answer to a store verb: `await` it in a loop, `.result()` it elsewhere."""

from __future__ import annotations

import threading
from collections.abc import Generator, Iterable
from typing import TYPE_CHECKING, Any, Generic, TypeAlias, TypeVar

if TYPE_CHECKING:
    from asyncio import AbstractEventLoop, Future

T = TypeVar("T")
Answered: TypeAlias = "tuple[Pending[Any], Any, BaseException | None]"  # with its value, or what it raises
Waiting: TypeAlias = "dict[AbstractEventLoop, list[Future[None]]]"
_lock = threading.Lock()  # between those who begin to wait and the writer; held for a few instructions, so one does


class Pending(Generic[T]):
    """A value that the writer will have after its commit, or the error that it met. Set once."""

    __slots__ = ("_done", "_error", "_loops", "_threads", "_value")

    def __init__(self) -> None:
        self._done = False
        self._value: Any = None
        self._error: BaseException | None = None
        self._threads: list[threading.Event] = []
        self._loops: list[tuple[AbstractEventLoop, Future[None]]] = []

    def resolve(self, value: T) -> None:
        """Called by the writer after the commit."""
        answer([(self, value, None)])

    def reject(self, error: BaseException) -> None:
        """Called by the writer when nothing was written."""
        answer([(self, None, error)])

    def result(self, timeout: float | None = None) -> T:
        """The value, waiting for it if need be; raises what the verb raised."""
        if not self._done:
            arrived = threading.Event()
            with _lock:
                if self._done:
                    arrived.set()
                else:
                    self._threads.append(arrived)
            if not arrived.wait(timeout):
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
            with _lock:
                waits = not self._done
                if waits:
                    self._loops.append((loop, arrived))
            if waits:
                yield from arrived
        return self.result()

    def _finish(self, value: T | None, error: BaseException | None, waiting: Waiting) -> None:
        """Wake the threads that wait; the loops are for the caller to wake, all of a batch at once."""
        with _lock:
            self._value, self._error = value, error
            self._done = True
        for arrived in self._threads:
            arrived.set()
        for loop, future in self._loops:
            waiting.setdefault(loop, []).append(future)


def answer(batch: Iterable[Answered]) -> None:
    """Answer a whole batch. Each loop is woken once: woken for every answer, it would fight the writer for the GIL."""
    waiting: Waiting = {}
    for pending, value, error in batch:
        pending._finish(value, error, waiting)
    for loop, futures in waiting.items():
        try:
            loop.call_soon_threadsafe(_arrive, futures)
        except RuntimeError:  # the loop is closed: nobody waits any more
            continue


def _arrive(futures: list[Future[None]]) -> None:
    for future in futures:
        if not future.done():
            future.set_result(None)
