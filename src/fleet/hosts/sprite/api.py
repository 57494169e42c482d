"""The management client of sprites: over HTTP, with typed errors, and without waking a machine.

Nothing here needs a websocket: where none is let through, what a sprite is can still be told.
"""

from __future__ import annotations

import asyncio
import contextlib
import functools
import ssl
from collections.abc import AsyncIterator, Mapping
from typing import TypeVar
from urllib.parse import quote

import httpx
import msgspec

from fleet.errors import HostBusy, HostUnfit, TransportError
from fleet.hosts.sprite.answers import Page, Sprite, refusal

T = TypeVar("T")
PAUSES_SECONDS = (0.2, 0.5, 1.0)  # before a question is asked again
PATIENCE_SECONDS = 20.0  # for how long in all we wait when we are told to
MOST_PAGES = 200
CREATION_SECONDS = 120.0
FAILED = 500


class SpriteApi:
    """One account. Raises only TransportError. Connections are kept for as long as the loop that uses them."""

    def __init__(self, url: str, token: str, *, answer_seconds: float = 10.0, token_env: str = "") -> None:
        self.url = url.rstrip("/")
        self._token = token
        self._token_env = token_env
        self._answer_seconds = answer_seconds
        self._trust = _trust()
        self._kept: tuple[asyncio.AbstractEventLoop, AsyncIterator[httpx.AsyncClient], httpx.AsyncClient] | None = None

    # sprites

    async def get(self, name: str) -> Sprite:
        """One of them. HostMissing is no proof that it is gone: see `presence`."""
        return _decoded(await self.ask("GET", path_of(name), f"cannot ask for sprite {name}"), Sprite)

    async def list(self, prefix: str = "") -> tuple[Sprite, ...]:
        """All of them. Ends where the API names no next page, or one that it named before."""
        found: dict[str, Sprite] = {}
        token, seen = "", set[str]()
        for _ in range(MOST_PAGES):
            query = {"prefix": prefix, "max_results": "50"} | ({"continuation_token": token} if token else {})
            page = _decoded(await self.ask("GET", "/v1/sprites", "cannot list the sprites", query=query), Page)
            found |= {sprite.name: sprite for sprite in page.sprites}
            token = page.next_continuation_token or ""
            if not page.has_more or not token or token in seen:
                break
            seen.add(token)
        return tuple(found.values())

    async def create(self, name: str, labels: tuple[str, ...] = ()) -> Sprite:
        """Make one, or take the one that has the name: a creation may be repeated."""
        what, body = f"cannot create sprite {name}", {"name": name, "labels": labels}
        answer = await self.ask("POST", "/v1/sprites", what, json=body, seconds=CREATION_SECONDS, accept={409})
        return await self.get(name) if answer.status_code == 409 else _decoded(answer, Sprite)

    async def label(self, name: str, labels: tuple[str, ...]) -> Sprite:
        """Give it these labels, in the place of those that it had."""
        what = f"cannot label sprite {name}"
        return _decoded(await self.ask("PUT", path_of(name), what, json={"labels": labels}), Sprite)

    async def destroy(self, name: str) -> None:
        """End it, with all that is on it."""
        await self.ask("DELETE", path_of(name), f"cannot destroy sprite {name}")

    # the wire

    def headers(self) -> dict[str, str]:
        """What proves who we are."""
        if not self._token:
            named = self._token_env or "its variable"
            raise HostUnfit(f"there is no token for sprites: {named} is not set", hint=f"set {named} to a token")
        return {"Authorization": f"Bearer {self._token}"}

    async def ask(
        self,
        method: str,
        path: str,
        what: str,
        *,
        query: Mapping[str, str] | None = None,
        content: bytes | None = None,
        json: object = None,
        seconds: float | None = None,
        accept: frozenset[int] | set[int] = frozenset(),
    ) -> httpx.Response:
        """One question, and its answer. What changes nothing is asked again when the API fails.

        When it says to wait, we do, up to a bound: what it refused so was not done.
        """
        headers, patience = self.headers(), PATIENCE_SECONDS
        pauses = iter(PAUSES_SECONDS if method == "GET" else ())
        client = await self._client()
        while True:
            try:
                answer = await client.request(
                    method,
                    path,
                    params=query,
                    content=content,
                    json=json,
                    headers=headers,
                    timeout=seconds or self._answer_seconds,
                )
            except httpx.HTTPError as exc:
                error: TransportError = TransportError(f"{what}: {str(exc) or type(exc).__name__}")
                error.__cause__ = exc
                failed = True
            else:
                if answer.is_success or answer.status_code in accept:
                    return answer
                error = refusal(what, answer.status_code, answer.content, answer.headers)
                failed = answer.status_code >= FAILED
            pause = next(pauses, None) if failed else wait_for(error, patience)
            if pause is None:
                raise error
            patience -= pause
            await pause_after(error, pause)

    @contextlib.asynccontextmanager
    async def reading(self, path: str, what: str, query: Mapping[str, str]) -> AsyncIterator[httpx.Response]:
        """An answer that may be large, to be read as far as it is wanted."""
        client = await self._client()
        try:
            async with client.stream(
                "GET", path, params=query, headers=self.headers(), timeout=self._answer_seconds
            ) as answer:
                yield answer
        except httpx.HTTPError as exc:
            raise TransportError(f"{what}: {str(exc) or type(exc).__name__}") from exc

    async def _client(self) -> httpx.AsyncClient:
        """The client of this loop. It lives in a generator: those are closed with the loop that began them."""
        loop = asyncio.get_running_loop()
        if self._kept is None or self._kept[0] is not loop:
            living = self._living()
            self._kept = (loop, living, await anext(living))
        return self._kept[2]

    async def _living(self) -> AsyncIterator[httpx.AsyncClient]:
        async with httpx.AsyncClient(base_url=self.url, verify=self._trust) as client:
            yield client


@functools.cache
def _trust() -> ssl.SSLContext:
    """Whose certificates are believed. Made once: to read them all takes longer than the API does to answer."""
    return httpx.create_ssl_context()


def path_of(name: str) -> str:
    """The place of a sprite."""
    return f"/v1/sprites/{quote(name, safe='')}"


async def pause_after(error: TransportError, seconds: float) -> None:
    """Wait before it is asked again. Who cancels that is told, as the cause, of the refusal."""
    try:
        await asyncio.sleep(seconds)
    except asyncio.CancelledError as exc:
        raise exc from error


def wait_for(error: TransportError, patience: float) -> float | None:
    """How long to wait before it is asked again; None: not at all."""
    if not isinstance(error, HostBusy):
        return None
    wished = error.retry_after_seconds or PAUSES_SECONDS[-1]
    return wished if wished <= patience else None


def _decoded(answer: httpx.Response, kind: type[T]) -> T:
    try:
        return msgspec.json.decode(answer.content, type=kind)
    except msgspec.DecodeError as exc:
        raise TransportError(f"the API of sprites answered what cannot be read: {exc}") from exc
