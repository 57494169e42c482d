"""Reading a followed session to its end, as a supervisor does."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator

from fleet.hosts.follower import Followed
from fleet.hosts.lines import Line
from fleet.hosts.watcher import Watcher


@contextlib.asynccontextmanager
async def running(watcher: Watcher) -> AsyncIterator[Watcher]:
    """The watcher's loop, in the background."""
    loop = asyncio.create_task(watcher.run())
    try:
        yield watcher
    finally:
        loop.cancel()
        await asyncio.gather(loop, return_exceptions=True)


async def lines_of(followed: Followed, cursor: int = 0) -> list[Line]:
    """Every line to the end."""
    return [line async for line in each_line(followed, cursor)]


async def each_line(followed: Followed, cursor: int = 0) -> AsyncIterator[Line]:
    """Every line as it comes, to the end."""
    while True:
        record = await followed.exit()
        ended = record is not None and record.swept
        got = await followed.read(cursor, ended=ended)
        for line in got.lines:
            yield line
        if got.cursor == cursor:
            if ended:
                return
            await followed.changed(1.0)
        cursor = got.cursor
