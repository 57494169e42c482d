"""Routes of the events: followed as they happen, or read again from any position."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator
from typing import Annotated, Any

from litestar import Request, Response, get
from litestar.params import HeaderParameter, QueryParameter
from litestar.response import Stream

from fleet.api.answers import NEEDS_READ, desk_of, raw
from fleet.api.hub import line_of
from fleet.api.problems import Refused
from fleet.api.views import Replay
from fleet.errors import Conflict, UsageError
from fleet.store.reads import Reads

POSITION = re.compile(r"[0-9]{1,18}(?:\.[0-9]{1,18})?")
BEGINNINGS = frozenset({"0", "0.0"})
HEADERS = {"cache-control": "no-store", "x-accel-buffering": "no"}

After = Annotated[str | None, QueryParameter(max_length=64, description="A position: what comes after it is given.")]


@get("/v1/fleet/events", tags=["events"], guards=NEEDS_READ, media_type="text/event-stream")
async def events(
    request: Request[Any, Any, Any],
    after: After = None,
    last_event_id: Annotated[str | None, HeaderParameter(name="Last-Event-ID", max_length=64)] = None,
) -> Stream:
    """Events as they happen (server-sent events), from a position or from now on; none is left out, none comes twice.

    The id of each is the position to resume from with `Last-Event-ID`. A comment comes every 15 seconds of silence.
    """
    desk = desk_of(request)
    position = last_event_id or after
    if position:
        await desk.ask(lambda reads: check_position(reads, position))
    if desk.hub.is_full:
        raise Refused(503, "too many clients follow the events", headers={"retry-after": "5"})
    stream: AsyncIterator[bytes] = desk.hub.follow(position or None)
    return Stream(stream, media_type="text/event-stream", headers=HEADERS)


@get("/v1/fleet/events/replay", tags=["events"], guards=NEEDS_READ)
async def replay(
    request: Request[Any, Any, Any],
    after: After = None,
    limit: Annotated[int, QueryParameter(ge=1, le=1000, description="At most so many.")] = 250,
) -> Response[Replay]:
    """Events that have happened, after a position or from the beginning."""

    def look(reads: Reads) -> bytes:
        if after:
            check_position(reads, after)
        batch = reads.feed(after or "", limit=limit)
        lines = b",".join(line_of(entry, at) for entry, at in zip(batch.entries, batch.positions, strict=True))
        more = b"true" if len(batch.entries) == limit else b"false"
        return b'{"events":[%s],"next":"%s","more":%s}' % (lines, batch.position.encode(), more)

    return raw(await desk_of(request).ask(look))


def check_position(reads: Reads, position: str) -> None:
    """Refuse what is no position of this ledger: going on from it would leave events out, or none would come."""
    if not POSITION.fullmatch(position):
        raise UsageError("that is no position in the feed of this ledger")
    if position in BEGINNINGS:
        return
    place = reads.place(int(position.rpartition(".")[2]))
    if place is None or place[1] != position:
        raise Conflict(
            f"there is no event at the position {position} of this ledger",
            hint="start anew from /v1/fleet/events/replay",
        )


ROUTES = [events, replay]
