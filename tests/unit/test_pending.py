"""Pending: one answer, for whoever waits in a thread or in a loop."""

from __future__ import annotations

import asyncio
import threading
from concurrent.futures import ThreadPoolExecutor

import pytest

from fleet.errors import StoreBusy
from fleet.store.pending import Pending


def test_an_answer_that_is_there() -> None:
    """A value is given at once, as often as it is asked for; an error is raised each time."""
    good: Pending[int] = Pending()
    good.resolve(7)
    assert good.result() == good.result(0) == 7
    bad: Pending[int] = Pending()
    bad.reject(StoreBusy())
    for _ in range(2):
        with pytest.raises(StoreBusy):
            bad.result()


def test_nothing_is_an_answer_too() -> None:
    """None is a value like any other."""
    pending: Pending[None] = Pending()
    pending.resolve(None)
    pending.result(0)


def test_waiting_in_threads() -> None:
    """Any number of threads wait for one answer, and each gets it."""
    pending: Pending[int] = Pending()
    waiting = threading.Barrier(9)

    def wait(_: int) -> int:
        waiting.wait()
        return pending.result(20)

    with ThreadPoolExecutor(8) as pool:
        answers = pool.map(wait, range(8))
        waiting.wait()
        pending.resolve(7)
        assert list(answers) == [7] * 8


def test_waiting_has_an_end() -> None:
    """A deadline that passes is a TimeoutError, and the answer can still come."""
    pending: Pending[int] = Pending()
    with pytest.raises(TimeoutError):
        pending.result(0.01)
    pending.resolve(7)
    assert pending.result(0) == 7


def test_awaiting_what_comes_from_a_thread() -> None:
    """A loop that awaits goes on working, and is woken by the writer's thread with the value or the error."""

    async def both() -> list[object]:
        good, bad = Pending[int](), Pending[int]()

        async def wait(pending: Pending[int]) -> int:
            return await pending

        waiting = [asyncio.ensure_future(wait(pending)) for pending in (good, bad)]
        await asyncio.sleep(0)  # lets both begin to wait

        def write() -> None:
            good.resolve(7)
            bad.reject(StoreBusy())

        writer = threading.Thread(target=write)
        writer.start()
        answers = await asyncio.gather(*waiting, return_exceptions=True)
        writer.join()
        return list(answers)

    value, error = asyncio.run(both())
    assert value == 7
    assert isinstance(error, StoreBusy)


def test_awaiting_what_is_there() -> None:
    """An answer that is there does not wait for the loop."""

    async def take() -> int:
        pending: Pending[int] = Pending()
        pending.resolve(7)
        return await pending

    assert asyncio.run(take()) == 7


def test_one_who_stops_waiting_disturbs_nobody() -> None:
    """A waiter that was cancelled is passed over when the answer comes; the others get it."""

    async def cancel_one() -> int:
        pending: Pending[int] = Pending()

        async def wait() -> int:
            return await pending

        leaving, staying = asyncio.ensure_future(wait()), asyncio.ensure_future(wait())
        await asyncio.sleep(0)
        leaving.cancel()
        writer = threading.Thread(target=pending.resolve, args=(7,))
        writer.start()
        answer = await staying
        writer.join()
        assert leaving.cancelled()
        return answer

    assert asyncio.run(cancel_one()) == 7


def test_an_answer_after_the_loop_is_gone() -> None:
    """A writer that answers a loop which has ended is not hurt by that, and the answer is there for others."""
    pending: Pending[int] = Pending()

    async def give_up() -> None:
        async def wait() -> int:
            return await pending

        with pytest.raises(TimeoutError):
            await asyncio.wait_for(wait(), 0.01)

    asyncio.run(give_up())
    pending.resolve(7)
    assert pending.result(0) == 7
