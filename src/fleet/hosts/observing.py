"""Observing many sessions of a host at once: those that are asked for at the same moment share one process there."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import NamedTuple
from weakref import WeakKeyDictionary

from fleet.errors import TransportError
from fleet.hosts.transport import Transport

MOST_AT_ONCE = 100  # so that no answer waits for a thousand others
# Any of the runners can speak for all; a directory without one is one that the host knows nothing of.
CALL = """for each; do if [ -f "$each/runner.sh" ]; then exec {shell} "$each/runner.sh" observe; fi; done
while read -r _; do echo state=absent; done"""


class Asked(NamedTuple):
    """Who wants to know of which directory."""

    directory: str
    epoch: int
    answer: asyncio.Future[str]


class Observers:
    """Those who wait for the next look at a host, each by the shell that it uses."""

    def __init__(self, transport: Transport) -> None:
        self._transport = transport
        self._waiting: dict[tuple[str, ...], list[Asked]] = {}

    async def ask(self, shell: tuple[str, ...], directory: str, epoch: int) -> str:
        """The line of facts about a session, or what went wrong with it, as the runner says it."""
        asked = Asked(directory, epoch, asyncio.get_running_loop().create_future())
        if shell in self._waiting:
            self._waiting[shell].append(asked)
        else:
            self._waiting[shell] = [asked]
            await self._look(shell)
        return await asked.answer

    async def _look(self, shell: tuple[str, ...]) -> None:
        """The first to ask waits for those who ask at the same moment, and looks for all of them."""
        together: list[Asked] = []
        error = TransportError("the look at the host was broken off")
        try:
            try:
                await asyncio.sleep(0)
            finally:
                together = self._waiting.pop(shell)
            parts = range(0, len(together), MOST_AT_ONCE)
            await asyncio.gather(*(self._look_at(shell, together[at : at + MOST_AT_ONCE]) for at in parts))
        except TransportError as exc:
            error = exc
        finally:
            for one in together:
                if not one.answer.done():
                    one.answer.set_exception(error)
                    one.answer.exception()  # seen: who asked may be gone

    async def _look_at(self, shell: tuple[str, ...], together: Sequence[Asked]) -> None:
        argv = [*shell, "-c", CALL.format(shell=" ".join(shell)), "observe", *(one.directory for one in together)]
        given = "".join(f"{one.epoch} {one.directory}\n" for one in together)
        done = await self._transport.run(argv, stdin=given.encode("utf-8", "surrogateescape"))
        lines = done.stdout.decode("utf-8", "replace").splitlines()
        if done.code or len(lines) != len(together):
            said = done.stderr.decode("utf-8", "replace").strip() or f"{len(lines)} answers for {len(together)}"
            raise TransportError(f"cannot observe sessions: {said}")
        for one, line in zip(together, lines, strict=True):
            if not one.answer.done():
                one.answer.set_result(line)


_of: WeakKeyDictionary[Transport, Observers] = WeakKeyDictionary()


def observers(transport: Transport) -> Observers:
    """Those of a host."""
    if transport not in _of:
        _of[transport] = Observers(transport)
    return _of[transport]
