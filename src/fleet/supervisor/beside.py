"""What a coder writes beside its stream, read now and then while it runs and once more at its end."""

from __future__ import annotations

import asyncio
from functools import partial

from fleet.coders.coder import Aside
from fleet.model.stream import AnySaid
from fleet.supervisor.attempt import Attempt
from fleet.supervisor.keeping import Keeper

EVERY_SECONDS = 2.0
PIECE, LONGEST = 1 << 20, 1 << 24  # bytes read at once; a line that is longer than that is never reached


class Beside:
    """The file of one session. How far it has been read is part of the parser's state, and committed with it."""

    def __init__(self, attempt: Attempt, keeper: Keeper) -> None:
        self._attempt = attempt
        self._keeper = keeper
        self._path = ""
        self._due = 0.0

    async def run_once(self, *, last: bool = False) -> None:
        """Read what is new, when it is time. A host that does not answer is asked another time, but for the last."""
        if not self._attempt.coder.has_aside:
            return
        now = asyncio.get_running_loop().time()
        if now < self._due and not last:
            return
        self._due = now + EVERY_SECONDS
        while await self._read(last=last):
            pass

    async def _read(self, *, last: bool) -> bool:
        """The next lines. True: there may be more."""
        attempt = self._attempt
        aside = attempt.coder.aside(attempt.state)
        if aside is None:
            return False
        ask = partial(self._next, aside)
        data = await (attempt.insist(ask) if last else attempt.safely(ask())) or b""
        *lines, _ = data.split(b"\n")
        if not lines:
            return False
        said: list[AnySaid] = []
        for line in lines:
            attempt.state, more = attempt.coder.parse_aside(attempt.state, line)
            said += more
        self._keeper.keep([(attempt.progress.cursor, each) for each in said])
        attempt.keep_state(attempt.state)
        await attempt.commit()
        return len(data) >= PIECE

    async def _next(self, aside: Aside) -> bytes:
        """What comes next in the file, if there is one by now."""
        transport = self._attempt.site.transport
        if not self._path:
            done = await transport.run(aside.find)
            self._path = done.stdout.decode("utf-8", "replace").strip() if done.code == 0 else ""
            if not self._path:
                return b""
        data = await transport.get(self._path, offset=aside.cursor, limit=PIECE)
        if len(data) == PIECE and b"\n" not in data:
            data = await transport.get(self._path, offset=aside.cursor, limit=LONGEST)
        return data
