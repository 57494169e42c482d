"""How long a client may take to say what it wants: one that says a letter now and then must not hold a connection."""

from __future__ import annotations

import asyncio
import resource

import h11
from uvicorn.protocols.http.h11_impl import H11Protocol

SPARE = 256  # descriptors beside those of clients: the store, the bells, programs


class Patient(H11Protocol):
    """HTTP with an end of patience. What comes meanwhile does not prolong it."""

    head_seconds = 10.0  # from the first byte of a request, or the connection, to the end of its headers
    body_seconds = 60.0  # from there to its end

    _ending: asyncio.TimerHandle | None = None
    _awaited: object = None  # what the client owes us: IDLE its headers, SEND_BODY the rest

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self._await(h11.IDLE, self.head_seconds)

    def data_received(self, data: bytes) -> None:
        super().data_received(data)
        state = self.conn.their_state
        if state is h11.IDLE:
            self._await(state, self.head_seconds)
        elif state is h11.SEND_BODY:
            self._await(state, self.body_seconds)
        else:
            self._await(None, 0)

    def connection_lost(self, exc: Exception | None) -> None:
        self._await(None, 0)
        super().connection_lost(exc)

    def _await(self, what: object, seconds: float) -> None:
        if what is self._awaited:
            return
        if self._ending is not None:
            self._ending.cancel()
        self._awaited = what
        self._ending = None if what is None else self.loop.call_later(seconds, self.transport.abort)


def make_room(clients: int) -> None:
    """Have descriptors for so many clients, as far as the system lets us; shells give 1024 by habit."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = clients + SPARE
    if soft != resource.RLIM_INFINITY and soft < wanted:
        most = wanted if hard == resource.RLIM_INFINITY else min(wanted, hard)
        resource.setrlimit(resource.RLIMIT_NOFILE, (most, hard))
