"""The gate: who may come in, from where, how often, and with how much. Nothing behind it is reached otherwise.

A page in a browser can send requests to this machine in its user's name, under any host name that it makes point here.
So the Host must be one of ours and the Origin, where there is one, too; and no request is trusted for where it comes
from: all but the health check and the dashboard's files, which tell nothing, need a token, which browsers do not add by
themselves, or the code for one.
"""

from __future__ import annotations

import hmac
from collections.abc import Callable, Iterable
from http import HTTPStatus
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qsl, urlsplit

import msgspec
from litestar.enums import ScopeType

from fleet.api import problems
from fleet.api.problems import Refused
from fleet.api.rates import Rates
from fleet.config.serving import Api
from fleet.config.tokens import Token
from fleet.errors import FleetError

if TYPE_CHECKING:
    from litestar.types import ASGIApp, Receive, Scope, Send

LOOPBACK = frozenset({"localhost", "127.0.0.1", "[::1]"})
HEALTH = "/v1/fleet/health"
FAILURES_PER_SECOND = 5.0  # of one address, that show no token or a wrong one
MOST_PASSED_OVER = 64 << 20  # bytes of a request that is too large
SECRET_PARAMETERS = frozenset({"token", "access_token", "api_key", "apikey", "authorization"})


class Gate:
    """Wraps the application. `tokens` gives those that are good now; `failed` is told when it cannot.

    `page` are the paths of the dashboard, which may be asked without a token.
    """

    def __init__(
        self,
        app: ASGIApp,
        api: Api,
        tokens: Callable[[], Iterable[Token]],
        failed: Callable[[Exception, str], object],
        *,
        page: Iterable[str] = (),
    ) -> None:
        self._app = app
        self._page = frozenset(page)
        self._tokens = tokens
        self._failed = failed
        self._names = LOOPBACK | {_bracketed(api.host)} | {_bracketed(name) for name in api.names}
        self._origins = frozenset(api.origins)
        self._most_bytes = api.max_body_kib << 10
        self._rates = Rates(api.requests_per_second)
        self._failures = Rates(FAILURES_PER_SECOND)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != ScopeType.HTTP:
            return  # there are no websockets here, and no lifespan
        waits = False
        try:
            headers = _single(scope["headers"])
            waits = b"expect" in headers  # it sends nothing more before it is asked to
            self._check_place(headers, scope["path"])
            self._check_body(headers, scope["method"])
            if scope["path"] != HEALTH:
                self._check_query(scope["query_string"])
            if scope["path"] != HEALTH and scope["path"] not in self._page:
                token = self._shown(headers, scope)
                self._check_rate(token.name)
                scope["auth"] = token
        except Refused as exc:
            if exc.status == HTTPStatus.REQUEST_ENTITY_TOO_LARGE and not waits:
                await _pass_over(receive)
            await _refuse(exc, send)
            return
        except FleetError as exc:  # the tokens cannot be read; who asks is told nothing about the home
            self._failed(exc, f"{exc.hint or 'tokens'}")
            await _refuse(Refused(500, "the tokens of this home cannot be read; its operator is told why"), send)
            return
        await self._app(scope, receive, send)

    def _check_place(self, headers: dict[bytes, bytes], path: str) -> None:
        host = _host_of(headers.get(b"host", b"").decode("latin-1"))
        if host not in self._names:
            raise Refused(421, "this is not the host that was asked for", hint="[api] names lists further ones")
        origin = headers.get(b"origin")
        if origin is not None and not self._is_ours(origin.decode("latin-1"), host):
            raise Refused(403, "requests from other origins are refused", hint="[api] origins lists those allowed")
        if origin is None and headers.get(b"sec-fetch-site") == b"cross-site" and not self._is_visit(headers, path):
            raise Refused(403, "requests from other sites are refused")

    def _is_visit(self, headers: dict[bytes, bytes], path: str) -> bool:
        """Whether a link, or the file that `fleet dashboard` opens, has led a person to the page, in no frame."""
        return path in self._page and headers.get(b"sec-fetch-dest") == b"document"

    def _is_ours(self, origin: str, host: str) -> bool:
        return origin in self._origins or _host_of(urlsplit(origin).netloc) == host

    def _check_body(self, headers: dict[bytes, bytes], method: str) -> None:
        """What a form of a web page could send by itself is no JSON; what is compressed may be endless."""
        kind = headers.get(b"content-type", b"application/json").partition(b";")[0].strip().lower()
        if method not in ("GET", "HEAD") and kind != b"application/json":
            raise Refused(415, "requests are read as application/json alone")
        if b"content-encoding" in headers:
            raise Refused(415, "compressed requests are not read")
        length = headers.get(b"content-length", b"0")
        if not length.isdigit() or int(length[:20]) > self._most_bytes:
            raise Refused(413, f"a request may have {self._most_bytes} bytes", hint="[api] max_body_kib sets it")

    def _check_query(self, query: bytes) -> None:
        """A token in an address would end up in histories and logs, so it is not even looked at."""
        if query and any(name.lower() in SECRET_PARAMETERS for name, _ in parse_qsl(query.decode("latin-1"))):
            raise Refused(400, "a token has no place in an address", hint="send it as `Authorization: Bearer ...`")

    def _shown(self, headers: dict[bytes, bytes], scope: Any) -> Token:
        """The token that was shown. Every one is compared, and in the same time, whichever fits.

        Who shows none that is good is slowed; others at the same address, which all of a machine share, are not.
        """
        kind, _, shown = headers.get(b"authorization", b"").partition(b" ")
        found = None
        for token in self._tokens():
            if hmac.compare_digest(token.secret.encode(), shown.strip()):
                found = token
        if kind.lower() != b"bearer" or found is None:
            if self._failures.take(str((scope.get("client") or ("?",))[0])):
                raise Refused(429, "too many requests without a good token", headers={"retry-after": "1"})
            raise Refused(
                401,
                "no good token was shown",
                hint="send `Authorization: Bearer TOKEN`; tokens are in api-tokens, in the home",
                headers={"www-authenticate": 'Bearer realm="fleet"'},
            )
        return found

    def _check_rate(self, name: str) -> None:
        seconds = self._rates.take(name)
        if seconds:
            after = str(max(1, round(seconds)))
            raise Refused(429, "too many requests", hint="[api] requests_per_second", headers={"retry-after": after})


def _single(headers: Iterable[tuple[bytes, bytes]]) -> dict[bytes, bytes]:
    """The headers by name. Of those that decide here there may be one: two would be read differently by others."""
    found: dict[bytes, bytes] = {}
    for name, value in headers:
        if name in found and name in (b"host", b"origin", b"authorization", b"content-length"):
            raise Refused(400, f"the header {name.decode('latin-1')} is given twice")
        found[name] = value
    return found


def _host_of(netloc: str) -> str:
    """The host without its port, in small letters."""
    if netloc.startswith("["):
        return netloc[: netloc.find("]") + 1].lower()
    return netloc.partition(":")[0].lower()


def _bracketed(name: str) -> str:
    return f"[{name}]".lower() if ":" in name and not name.startswith("[") else name.lower()


async def _pass_over(receive: Receive) -> None:
    """Read what nobody wants, up to an end: many clients look at the answer only once all of theirs was taken."""
    read = 0
    while read < MOST_PASSED_OVER:
        message = await receive()
        if message["type"] != "http.request":
            return
        read += len(message["body"])
        if not message["more_body"]:
            return


async def _refuse(exc: Refused, send: Send) -> None:
    problem = problems.of_refused(exc)
    body = msgspec.json.encode(problem)
    named = {"content-type": problems.MEDIA_TYPE, "content-length": str(len(body)), **exc.headers}
    if exc.status == HTTPStatus.REQUEST_ENTITY_TOO_LARGE:
        named["connection"] = "close"  # what was to come is not read
    headers = [(name.encode(), value.encode()) for name, value in named.items()]
    await send({"type": "http.response.start", "status": exc.status, "headers": headers})
    await send({"type": "http.response.body", "body": body, "more_body": False})
