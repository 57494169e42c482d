"""The HTTP client of a served fleet: one request, its answer, and every way in which it can fail, in words.

The token is read from the environment, travels in a header, and is in no address, message or log.
"""

from __future__ import annotations

import contextlib
import re
import socket
import ssl
import time
import uuid
from collections.abc import Callable, Iterator, Mapping
from http import HTTPStatus
from typing import Any, TypeVar
from urllib.parse import quote

import httpx
import msgspec

from fleet import __version__, errors
from fleet.errors import FleetError, ServerError, ServerRefused, ServerUnreachable, UsageError
from fleet.front.address import broken_off, unreachable, words

S = TypeVar("S")
T = TypeVar("T")
BASE = "/v1/fleet"
CONNECT_SECONDS, READ_SECONDS = 10.0, 60.0
SILENCE_SECONDS = 12.0  # after which events come no more: the server says something every 5
TOKEN = re.compile(r"[\x21-\x7e]+")
PATIENCE = 3  # times that a server may ask to wait
LONGEST_WAIT = 5.0  # seconds that are waited each time
URN = "urn:fleet:problem:"
AWAY = frozenset({429, 502, 503, 504})  # what is said while a server is full, or starts anew behind a proxy


class _Problem(msgspec.Struct, kw_only=True):
    type: str = ""
    detail: str = ""
    hint: str = ""
    problems: tuple[str, ...] = ()


class Client:
    """One for a command. The address was checked: the token is sent there."""

    def __init__(self, url: str, token: str) -> None:
        self._url = url
        if not TOKEN.fullmatch(token):
            raise UsageError("the token holds characters that no token has")
        self._http = httpx.Client(
            base_url=self._url + BASE,
            headers={"authorization": f"Bearer {token}", "accept": "application/json"},
            timeout=httpx.Timeout(READ_SECONDS, connect=CONNECT_SECONDS),
            trust_env=False,  # no proxy and no .netrc comes between
            verify=ssl.create_default_context() if self._url.startswith("https:") else True,
        )

    @property
    def url(self) -> str:
        """Where the server is."""
        return self._url

    def close(self) -> None:
        """Let go of the connection."""
        self._http.close()

    def expect(self, seconds: float) -> None:
        """An answer within so long; a server that takes longer is away."""
        self._http.timeout = httpx.Timeout(seconds, connect=CONNECT_SECONDS)

    def get(self, kind: type[T], *path: str, **query: Any) -> T:
        """Ask, and read the answer as what it must be."""
        return self._read(self._send("GET", path, query).content, kind)

    def bytes_of(self, *path: str, **query: Any) -> bytes:
        """Ask for bytes."""
        return self._send("GET", path, query).content

    def post(self, *path: str, body: object = None, **query: Any) -> httpx.Response:
        """Have something done, once: where the connection breaks, it is asked for again with the same key."""
        headers = {"idempotency-key": uuid.uuid4().hex, "content-type": "application/json"}
        data = b"null" if body is None else msgspec.json.encode(body)
        return self._send("POST", path, query, headers=headers, content=data)

    def read(self, answer: httpx.Response, kind: type[T]) -> T:
        """An answer to what was done, as what it must be."""
        return self._read(answer.content, kind)

    def stream(self, query: Mapping[str, Any], last: str) -> httpx.Response:
        """The events, as they come; after the position up to which they are known."""
        headers = {"accept": "text/event-stream", **({"last-event-id": last} if last else {})}
        timeout = httpx.Timeout(CONNECT_SECONDS, read=SILENCE_SECONDS)
        asked = self._http.build_request("GET", "/events", params=query, headers=headers, timeout=timeout)
        try:
            answer = self._http.send(asked, stream=True)
            if answer.is_success:
                return answer
            answer.read()
        except httpx.TimeoutException as exc:
            raise ServerUnreachable(f"{self._url} did not answer in time") from exc
        except httpx.HTTPError as exc:
            raise unreachable(self._url, exc) from exc
        try:
            return self._good(answer)
        except FleetError as exc:
            if answer.status_code in AWAY:
                raise ServerUnreachable(str(exc), hint=exc.hint) from exc
            raise

    def pieces(self, answer: httpx.Response) -> Iterator[bytes]:
        """What comes of an answer that is not over."""
        try:
            yield from answer.iter_bytes()
        except httpx.TimeoutException as exc:
            raise ServerUnreachable(f"{self._url} says nothing any more") from exc
        except (httpx.HTTPError, httpx.StreamError) as exc:
            raise ServerUnreachable(f"{self._url} broke off: {words(exc)}") from exc

    def cut(self, answer: httpx.Response) -> None:
        """End an answer that another thread is reading: it comes to its end there."""
        found = answer.extensions["network_stream"].get_extra_info("socket")
        with contextlib.suppress(OSError):  # it ended by itself
            socket.socket.shutdown(found, socket.SHUT_RDWR)

    def made(self, data: S, how: Callable[[S], T]) -> T:
        """What an answer says, as what it must be."""
        try:
            return how(data)
        except (msgspec.DecodeError, ValueError) as exc:
            hint = self._other_version() or "is there something between that changes what it says?"
            raise ServerError(f"the answer of {self._url} makes no sense: {exc}", hint=hint) from exc

    def _send(self, method: str, path: tuple[str, ...], query: Mapping[str, Any], **how: Any) -> httpx.Response:
        address = "/" + "/".join(quote(part, safe="") for part in path)
        said = {name: value for name, value in query.items() if value is not None}
        broken, waited = 0, 0
        while True:
            try:
                answer = self._http.request(method, address, params=said, **how)
            except (httpx.RemoteProtocolError, httpx.ReadError, httpx.WriteError) as exc:
                broken += 1
                if broken > 1:
                    raise broken_off(self._url, exc) from exc
                continue
            except httpx.TimeoutException as exc:
                raise ServerUnreachable(f"{self._url} did not answer in time", hint="try again") from exc
            except httpx.HTTPError as exc:
                raise unreachable(self._url, exc) from exc
            after = _retry_after(answer)
            if after is None or waited >= PATIENCE:
                return self._good(answer)
            waited += 1
            time.sleep(after)

    def _good(self, answer: httpx.Response) -> httpx.Response:
        if answer.status_code < HTTPStatus.MULTIPLE_CHOICES:
            return answer
        try:
            problem = msgspec.json.decode(answer.content, type=_Problem)
        except msgspec.DecodeError:
            problem = _Problem()
        if not problem.type.startswith(URN):
            raise ServerError(
                f"{self._url} is no server of Fleet: it answered {answer.status_code}",
                hint="--url takes what `fleet serve` prints, without /v1/fleet",
            )
        if answer.status_code == HTTPStatus.UNAUTHORIZED:
            raise ServerRefused(f"{self._url} does not take the token", hint="`fleet serve token NAME` makes one there")
        if answer.status_code in (HTTPStatus.FORBIDDEN, HTTPStatus.MISDIRECTED_REQUEST):
            raise ServerRefused(f"{self._url}: {problem.detail}", hint=problem.hint)
        raise self._error(problem, answer.status_code)

    def _error(self, problem: _Problem, status: int) -> FleetError:
        """The error that it was there, so that it reads and ends as it would here."""
        name = problem.type.removeprefix(URN).title().replace("-", "")
        kind = getattr(errors, name, None)
        if not (isinstance(kind, type) and issubclass(kind, FleetError)):
            kind = UsageError if status == HTTPStatus.BAD_REQUEST else ServerError
        made = kind.__new__(kind)
        other = self._other_version() if status in (HTTPStatus.NOT_FOUND, HTTPStatus.METHOD_NOT_ALLOWED) else ""
        FleetError.__init__(made, problem.detail, hint=other or problem.hint)
        if isinstance(made, errors.SpecError):
            made.problems = problem.problems
        return made

    def _read(self, data: bytes, kind: type[T]) -> T:
        return self.made(data, lambda said: msgspec.json.decode(said, type=kind))

    def _other_version(self) -> str:
        """Where the server is another Fleet than this one: that, in words."""
        try:
            found = msgspec.json.decode(self._http.get("/health").content, type=dict[str, str])
        except (httpx.HTTPError, msgspec.DecodeError):
            return ""
        there = found.get("version", "")
        return f"the server is Fleet {there}, and this is {__version__}" if there not in ("", __version__) else ""


def _retry_after(answer: httpx.Response) -> float | None:
    """How long the server asks to wait; None: it does not."""
    if answer.status_code not in (HTTPStatus.TOO_MANY_REQUESTS, HTTPStatus.SERVICE_UNAVAILABLE):
        return None
    said = answer.headers.get("retry-after", "")
    return min(float(said), LONGEST_WAIT) if said.isdecimal() else None
