"""The contract of following a session: what its agent says, asks and ends with, without asking the host for each."""

from __future__ import annotations

import asyncio
from typing import Protocol

from fleet.hosts.facts import Exit
from fleet.hosts.lines import Read
from fleet.hosts.outbox import Request
from fleet.hosts.session import HostedSession

QUICK_SECONDS, CALM_SECONDS = 0.02, 0.25  # between two looks: soon after something was new, and after silence


class Followed(Protocol):
    """One session that is followed. What is not known yet reads as nothing new: silence is no evidence of anything."""

    async def read(self, cursor: int, *, ended: bool = False) -> Read:
        """The next lines from the cursor on, which never goes back. `ended`: nothing more can come; asks the host."""

    async def exit(self) -> Exit | None:
        """The record of its end; once it is there, `read` knows all that was said before it."""

    async def requests(self, after: int) -> list[Request]:
        """What the agent asked for since request number `after`, in order."""

    async def changed(self, seconds: float) -> None:
        """Wait until there may be something new, but not longer than that."""

    def close(self) -> None:
        """Follow it no more."""


class Follower(Protocol):
    """Follows the sessions of one host."""

    def follow(self, hosted: HostedSession, *, cursor: int, requests: int) -> Followed:
        """Begin with what comes after the cursor and that request."""


class Looking:
    """A follower that looks by itself, at each session: right where looking costs nothing, as on this machine."""

    def follow(self, hosted: HostedSession, *, cursor: int, requests: int) -> Followed:  # noqa: ARG002  # the host knows
        return _Looked(hosted)


class _Looked:
    def __init__(self, hosted: HostedSession) -> None:
        self._hosted = hosted
        self._pause = QUICK_SECONDS

    async def read(self, cursor: int, *, ended: bool = False) -> Read:
        got = await self._hosted.read(cursor, ended=ended)
        self._pause = QUICK_SECONDS if got.lines else min(CALM_SECONDS, self._pause * 1.5)
        return got

    async def exit(self) -> Exit | None:
        return await self._hosted.exit()

    async def requests(self, after: int) -> list[Request]:
        return await self._hosted.requests(after)

    async def changed(self, seconds: float) -> None:
        await asyncio.sleep(min(seconds, self._pause))

    def close(self) -> None:
        pass
