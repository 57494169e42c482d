"""What handlers share: the desk, the roles, the shape of answers and of errors."""

from __future__ import annotations

from collections.abc import Iterable
from http import HTTPStatus
from typing import TYPE_CHECKING, Annotated, Any

import msgspec
from litestar import Request, Response
from litestar.connection import ASGIConnection
from litestar.exceptions import HTTPException
from litestar.handlers import BaseRouteHandler
from litestar.params import PathParameter, QueryParameter

from fleet.api import problems
from fleet.api.desk import Desk, encode
from fleet.api.problems import Problem, Refused
from fleet.config.tokens import Role, Token
from fleet.errors import FleetError, UsageError

if TYPE_CHECKING:
    from litestar.types import Guard

AN_ID = "An id, or any unique beginning of one."
Word = Annotated[str, PathParameter(min_length=1, max_length=256, description=AN_ID)]
OfRun = Annotated[str | None, QueryParameter(min_length=1, max_length=256, description="Of this run alone.")]


def desk_of(request: Request[Any, Any, Any]) -> Desk:
    """What the handler works with."""
    found: Desk = request.app.state.desk
    return found


def token_of(request: Request[Any, Any, Any]) -> Token:
    """The token that was shown at the gate."""
    found: Token = request.auth
    return found


def checked(word: str) -> str:
    """A word that a person could have meant."""
    if not word.isprintable():
        raise UsageError("an id holds characters that cannot be printed")
    return word


def answer(value: object, *, status: int = HTTPStatus.OK, etag: int | None = None) -> Response[Any]:
    """A view as JSON; `etag` is the sequence of the newest event of what it is about."""
    return raw(encode(value), status=status, etag="" if etag is None else f'"{etag}"')


def raw(body: bytes, *, status: int = HTTPStatus.OK, etag: str = "") -> Response[Any]:
    """An answer that is encoded already."""
    headers = {"cache-control": "no-store", **({"etag": etag} if etag else {})}
    return Response(body, status_code=status, media_type="application/json", headers=headers)


def needs(role: Role) -> list[Guard]:
    """Let in only tokens of a role that is enough, and only what the route knows: a filter with a typing error would
    be no filter."""

    def guard(connection: ASGIConnection[Any, Any, Any, Any], handler: BaseRouteHandler) -> None:
        token: Token = connection.auth
        if not token.role.may(role):
            raise Refused(403, f"this needs the role {role.value}, and {token.name} has {token.role.value}")
        if connection.scope["query_string"]:
            _check_names(connection.query_params.keys(), handler)

    return [guard]


def _check_names(asked: Iterable[str], handler: BaseRouteHandler) -> None:
    fields = handler.parsed_fn_signature.parameters
    known = [name for name, field in fields.items() if isinstance(field.kwarg_definition, QueryParameter)]
    for name in asked:
        if name not in known:
            takes = f"this route takes {', '.join(known)}" if known else "this route takes none"
            raise Refused(400, f"there is no parameter `{name[:64]}`", hint=takes)


NEEDS_READ, NEEDS_OPERATE, NEEDS_ADMIN = needs(Role.READ), needs(Role.OPERATE), needs(Role.ADMIN)


def _response(problem: Problem, headers: dict[str, str]) -> Response[Any]:
    body = msgspec.json.encode(problem)
    return Response(body, status_code=problem.status, media_type=problems.MEDIA_TYPE, headers=headers)


def on_refused(_: Request[Any, Any, Any], exc: Refused) -> Response[Any]:
    """A refusal of our own."""
    return _response(problems.of_refused(exc), exc.headers)


def on_fleet_error(_: Request[Any, Any, Any], exc: FleetError) -> Response[Any]:
    """An error of Fleet, with its hint."""
    problem = problems.of_error(exc)
    return _response(problem, problems.headers_of(problem))


def on_http(_: Request[Any, Any, Any], exc: HTTPException) -> Response[Any]:
    """A refusal of the framework: no such route or method, a value that cannot be taken."""
    if exc.status_code >= HTTPStatus.INTERNAL_SERVER_ERROR:
        return _response(problems.of_status(exc.status_code, "something is wrong in the server"), {})
    extra = exc.extra if isinstance(exc.extra, list) else []
    said = "; ".join(f"{each.get('key', '')}: {each.get('message', '')}" for each in extra if isinstance(each, dict))
    detail = said or str(exc.detail).partition(" for http")[0]
    return _response(problems.of_status(exc.status_code, detail), dict(exc.headers or {}))


def on_too_deep(request: Request[Any, Any, Any], exc: Exception) -> Response[Any]:
    """A document in a document in a document, which nobody means."""
    if request.method in ("GET", "HEAD"):
        return on_bug(request, exc)
    return _response(problems.of_status(HTTPStatus.BAD_REQUEST, "the request is nested too deeply"), {})


def on_bug(request: Request[Any, Any, Any], exc: Exception) -> Response[Any]:
    """What nobody expected. Told to the operator, not to the client: it may hold anything."""
    desk_of(request).failed(exc, f"{request.method} {request.scope.get('path_template', '')}")
    return _response(problems.of_status(500, "something is wrong in the server; its log tells what"), {})
