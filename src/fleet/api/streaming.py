"""Routes of the events: followed as they happen, or read again from any position."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator
from typing import Annotated, Any

from litestar import Request, Response, get
from litestar.params import HeaderParameter, QueryParameter
from litestar.response import Stream

from fleet.api.answers import NEEDS_READ, OfRun, checked, desk_of, raw
from fleet.api.hub import line_of, lines_of
from fleet.api.problems import Refused
from fleet.api.views import EventLine, Replay
from fleet.errors import Conflict, UsageError
from fleet.model.event import EVENTS, kind_of
from fleet.projections.feed import Begin, begin
from fleet.projections.happened import EVERYTHING, Names, Only
from fleet.store.reads import Reads

POSITION = re.compile(r"[0-9]{1,18}(?:\.[0-9]{1,18})?")
BEGINNINGS = frozenset({"0", "0.0"})
HEADERS = {"cache-control": "no-store", "x-accel-buffering": "no"}
NOW = Begin()

After = Annotated[str | None, QueryParameter(max_length=64, description="A position: what comes after it is given.")]


@get("/v1/fleet/events", tags=["events"], guards=NEEDS_READ, media_type="text/event-stream")
async def events(
    request: Request[Any, Any, Any],
    *,
    after: After = None,
    seq: Annotated[int | None, QueryParameter(ge=0, le=1 << 62, description="Begin after this event.")] = None,
    since: Annotated[int | None, QueryParameter(ge=0, le=1 << 62, description="Begin there: UTC milliseconds.")] = None,
    newest: Annotated[int | None, QueryParameter(ge=1, le=1000, description="Begin with so many newest.")] = None,
    run: OfRun = None,
    task: Annotated[str | None, QueryParameter(min_length=1, max_length=256, description="Of this task alone.")] = None,
    kind: Annotated[list[str] | None, QueryParameter(max_items=100, description="Of these kinds alone.")] = None,
    last_event_id: Annotated[str | None, HeaderParameter(name="Last-Event-ID", max_length=64)] = None,
) -> Stream:
    """Events as they happen (server-sent events), from a place or from now on; none is left out, none comes twice.

    The id of each is the position to resume from with `Last-Event-ID`. A comment comes every 5 seconds of silence.
    """
    desk = desk_of(request)
    words = [None if word is None else checked(word) for word in (run, task)]
    where = Begin(position=last_event_id or after or None, seq=seq, since=since, newest=newest)

    def look(reads: Reads) -> tuple[str | None, Only]:
        if where.position:
            check_position(reads, where.position)
        only = _only(reads, *words, kinds=tuple(kind or ()), since=since or 0)
        return None if where == NOW and only is EVERYTHING else begin(reads, where, only), only

    position, only = await desk.ask(look)
    if desk.hub.is_full:
        raise Refused(503, "too many clients follow the events", headers={"retry-after": "5"})
    stream: AsyncIterator[bytes] = desk.hub.follow(position, only)
    return Stream(stream, media_type="text/event-stream", headers=HEADERS)


def _only(reads: Reads, run: str | None, task: str | None, *, kinds: tuple[str, ...], since: int) -> Only:
    """What is asked for, by whole ids."""
    unknown = set(kinds) - set(map(kind_of, EVENTS))
    if unknown:
        raise UsageError(f"unknown kind of event `{min(unknown)}`")
    only = Only(
        kinds=kinds,
        run=reads.find_run(run).id if run else None,
        task=reads.find(task).uid if task else None,
        since=since,
    )
    return EVERYTHING if only == EVERYTHING else only


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
        piece = Names().piece(reads, after or "", limit=limit)
        lines = b",".join(map(line_of, piece.happened))
        more = b"true" if len(piece.happened) == limit else b"false"
        return b'{"events":[%s],"next":"%s","more":%s}' % (lines, piece.position.encode(), more)

    return raw(await desk_of(request).ask(look))


@get("/v1/fleet/events/newest", tags=["events"], guards=NEEDS_READ)
async def newest_events(
    request: Request[Any, Any, Any],
    limit: Annotated[int, QueryParameter(ge=1, le=1000, description="At most so many.")] = 20,
    task: Annotated[str | None, QueryParameter(min_length=1, max_length=256, description="Of this task alone.")] = None,
) -> Response[list[EventLine]]:
    """The newest events, oldest of them first, as `fleet ledger tail` prints them."""
    word = None if task is None else checked(task)

    def look(reads: Reads) -> bytes:
        return lines_of(reads, reads.last(limit, subject=reads.find(word).uid if word else None))

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


ROUTES = [events, replay, newest_events]
