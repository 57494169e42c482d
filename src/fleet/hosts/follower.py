"""The contract of following a session: what its agent says, asks and ends with, without asking the host for each."""

from __future__ import annotations

from typing import Protocol

from fleet.hosts.facts import Exit
from fleet.hosts.lines import Read
from fleet.hosts.outbox import Request
from fleet.hosts.session import HostedSession


class Followed(Protocol):
    """One session that is followed. What is not known yet reads as nothing new: silence is no evidence of anything."""

    @property
    def printed(self) -> int:
        """How many bytes it has printed, as far as is known here; on this machine, on stderr too."""

    async def read(self, cursor: int, *, ended: bool = False) -> Read:
        """The next lines from the cursor on, which never goes back. `ended`: nothing more can come; asks the host."""

    def pass_over(self) -> None:
        """Nothing more is read but at the end: what comes until then need not be kept."""

    async def exit(self) -> Exit | None:
        """The record of its end; once it is there, `read` and `requests` know all that was before it."""

    def vanished(self) -> bool:
        """Whether its processes are all gone without a record of its end, as far as is known here: worth asking."""

    async def requests(self, after: int, *, ended: bool = False) -> list[Request]:
        """What the agent asked for since request number `after`, in order. `ended`: no more can come; asks the host."""

    async def changed(self, seconds: float) -> None:
        """Wait until there may be something new, but not longer than that."""

    def wake(self) -> None:
        """End the wait for something new: there is something to do."""

    def close(self) -> None:
        """Follow it no more."""


class Follower(Protocol):
    """Follows the sessions of one host."""

    def follow(self, hosted: HostedSession, *, cursor: int, requests: int) -> Followed:
        """Begin with what comes after the cursor and that request."""
