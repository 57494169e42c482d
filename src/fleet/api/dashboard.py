"""The dashboard's files: read from the package when the server starts, answered from memory, without a token.

They are the same for everybody and hold nothing of a home: what the page shows it asks for with a token, as every
other client does. A request chooses among them by one of the paths that are made here, and never names a file.
"""

from __future__ import annotations

import hashlib
from functools import cache
from http import HTTPStatus
from importlib.resources import files
from typing import Any, NamedTuple

from litestar import Request, Response, get
from litestar.handlers import HTTPRouteHandler

INDEX = "index.html"
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

    return [part_of_page]
