"""The dashboard's files, given without a token, and the exchange of the code in a link for the token it stands for.

The files are the same for everybody and hold nothing of a home: what the page shows it asks for with a token, as every
other client does. They are read when the server starts; a request chooses among the paths that are made here, and
never names a file.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from functools import cache
from http import HTTPStatus
from importlib.resources import files
from typing import Annotated, Any, NamedTuple

import msgspec
from litestar import Request, Response, get, post
from litestar.handlers import HTTPRouteHandler
from litestar.params import JSONBody
from msgspec import Meta

from fleet.api.answers import answer, desk_of
from fleet.config import codes
from fleet.errors import NotFound

INDEX = "index.html"
EXCHANGE = "/page/token"
MOST_BYTES = 1 << 10  # of a request that shows no token
TYPES = {".css": "text/css", ".html": "text/html", ".js": "text/javascript", ".svg": "image/svg+xml"}  # in UTF-8
POLICY = (
    *("default-src 'none'", "script-src 'self'", "style-src 'self'", "connect-src 'self'", "img-src 'self'"),
    *("base-uri 'none'", "form-action 'none'", "frame-ancestors 'none'"),
    "require-trusted-types-for 'script'",  # text cannot become markup, whatever an agent has called its task
)
HEADERS = {
    "cache-control": "no-cache",  # asked about each time, and seldom sent again: see the etag
    "content-security-policy": "; ".join(POLICY),
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "referrer-policy": "no-referrer",
    "x-content-type-options": "nosniff",
}


class Part(NamedTuple):
    """One file of the page."""

    body: bytes
    media_type: str
    etag: str


class Code(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What stood in the link."""

    code: Annotated[str, Meta(min_length=1, max_length=200)]


def open_paths() -> Iterable[str]:
    """What may be asked without a token."""
    return {*parts(), EXCHANGE}


@cache
def parts() -> dict[str, Part]:
    """Every file of the page, by the path that it is asked for with."""
    found = {}
    for file in (files("fleet.api") / "page").iterdir():
        kind = TYPES.get(file.name[file.name.rfind(".") :])
        if kind is not None:
            body = file.read_bytes()
            path = "/" if file.name == INDEX else f"/page/{file.name}"
            found[path] = Part(body, kind, f'"{hashlib.sha256(body).hexdigest()[:32]}"')
    return found


def routes() -> list[HTTPRouteHandler]:
    """A route for each file, and for nothing else. They are no part of the API, nor of its description."""

    @get(sorted(parts()), include_in_schema=False, sync_to_thread=False)
    def part_of_page(request: Request[Any, Any, Any]) -> Response[bytes]:
        part = parts()[request.scope["path"]]
        headers = {**HEADERS, "etag": part.etag}
        known = request.headers.get("if-none-match", "")
        if part.etag in (each.strip().removeprefix("W/") for each in known.split(",")):
            return Response(b"", status_code=HTTPStatus.NOT_MODIFIED, headers=headers)
        return Response(part.body, media_type=part.media_type, headers=headers)

    return [part_of_page, exchange]


@post(
    EXCHANGE, include_in_schema=False, sync_to_thread=True, status_code=HTTPStatus.OK, request_max_body_size=MOST_BYTES
)
def exchange(request: Request[Any, Any, Any], data: JSONBody[Code]) -> Response[Any]:
    """The token that a code stands for, once."""
    token = codes.redeem(desk_of(request).home, data.code)
    if token is None:
        raise NotFound("this link was used before, or is too old", hint="`fleet dashboard` makes a new one")
    return answer({"token": token.secret})
