"""A deed: one verb asked for by HTTP. Done once for each key, only while its subject is as it was seen, in the name of
the token's owner; and told with the status and the ETag that fit what came of it."""

from __future__ import annotations

from collections.abc import Callable
from http import HTTPStatus
from typing import Annotated, Any, TypeAlias, cast

from litestar import Request, Response
from litestar.params import HeaderParameter

from fleet.api.answers import desk_of, raw, token_of
from fleet.api.desk import Desk, encode
from fleet.api.once import KEY, Answer, digest
from fleet.api.views import Stopped
from fleet.errors import Conflict, FleetError, UsageError
from fleet.front.front import Front
from fleet.front.views import Created, Decided
from fleet.model.ids import run_subject
from fleet.model.intent import Intent
from fleet.projections.queue import TaskDetail
from fleet.projections.whole import whole
from fleet.store.reads import Reads

Subject = Callable[[Reads], str]
Done: TypeAlias = TaskDetail | Intent | Created | list[Decided]
Verb = Callable[[Front], Done]
Key = Annotated[
    str | None,
    HeaderParameter(
        name="Idempotency-Key",
        description="The same key again gives the same answer, and does nothing.",
        schema_extra={"pattern": f"^{KEY.pattern}$"},
    ),
]
Match = Annotated[
    str | None,
    HeaderParameter(name="If-Match", description="The ETag under which it was seen; 409 where it has moved on since."),
]


class Deed:
    """What a request said beside its body: who, with which key, having seen what."""

    def __init__(self, request: Request[Any, Any, Any], key: str | None, match: str | None) -> None:
        self._request = request
        self._desk = desk_of(request)
        self._who = token_of(request).name
        self._key = key
        self._match = match

    async def do(self, verb: Verb, about: Subject | None = None, *, made: bool = False) -> Response[Any]:
        """Do it. `about` names what it changes; without, there is nothing yet that it could be fenced by. `made` says
        that the task which comes of it is new."""
        request, key, who = self._request, self._key, self._who
        asked = digest(request.method, request.url.path, request.scope["query_string"], await request.body())

        def done() -> Answer:
            front = self._front(about)
            return self._answer(asked, front, verb(front), made=made)

        found = await self._desk.act(done if key is None else lambda: _once(self._desk, who, key, asked, done))
        return raw(found.body, status=found.status, etag=found.etag)

    def _front(self, about: Subject | None) -> Front:
        store = self._desk.store
        if self._match is not None and self._match.strip() != "*":
            if about is None:
                raise UsageError("there is nothing yet that If-Match could be about")
            store = store.unmoved(about(store), _sequence(self._match))
        return self._desk.front(store, self._who)

    def _answer(self, asked: str, front: Front, found: Done, *, made: bool) -> Answer:
        reads, etag, view = self._desk.store, "", cast("object", found)
        if isinstance(found, list):
            status = HTTPStatus.ACCEPTED if any(isinstance(one, Intent) for one in found) else HTTPStatus.OK
            view = Stopped(stopped=[whole(one) for one in found])
        elif isinstance(found, Intent):
            status, etag = HTTPStatus.ACCEPTED, f'"{reads.newest(found.target)}"'
        elif isinstance(found, Created):
            status, etag = HTTPStatus.CREATED, f'"{reads.newest(run_subject(found.run.id))}"'
        else:
            status = HTTPStatus.CREATED if made else HTTPStatus.OK
            etag = f'"{reads.newest(found.id)}"'
            view = front.task(found.id)  # after the ETag: what is shown is no older than what it stands for
        return Answer(request=asked, status=status, body=encode(view), etag=etag)


async def deed(request: Request[Any, Any, Any], key: Key = None, match: Match = None) -> Deed:
    """Of a verb on something that is there."""
    return Deed(request, key, match)


async def first_deed(request: Request[Any, Any, Any], key: Key = None) -> Deed:
    """Of a verb that makes something."""
    return Deed(request, key, None)


def _once(desk: Desk, who: str, key: str, asked: str, done: Callable[[], Answer]) -> Answer:
    before = desk.once.begin(who, key, asked)
    if before is not None:
        return before
    try:
        made = done()
    except FleetError:  # what raises has changed nothing
        desk.once.undone(who, key)
        raise
    desk.once.done(who, key, made)
    return made


def _sequence(match: str) -> int:
    word = match.strip().removeprefix('"').removesuffix('"')
    if not (word.isascii() and word.isdecimal()) or len(word) > 18:
        raise Conflict("that is no ETag of this thing as it is now")
    return int(word)
