"""The carrier over HTTP: HTTPS only save loopback, no redirects, a bounded answer, and errors without addresses."""

from __future__ import annotations

import asyncio
import ipaddress
import time
from collections.abc import Callable, Mapping
from email.utils import parsedate_to_datetime
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from fleet.errors import ChannelError, ChannelRefused

if TYPE_CHECKING:
    import httpx

LOOPBACK = ("localhost", "127.0.0.1", "[::1]")
MOST_READ = 4096  # bytes of an answer
AGAIN = frozenset({408, 425, 429})  # answers that ask for another try, beside those of 5xx


class HttpCarrier:
    """Sends for channels. `secrets` looks a variable up; `say` shows a line. Close it in the loop that used it."""

    def __init__(self, secrets: Callable[[str], str | None], say: Callable[[str], object]) -> None:
        self._secrets = secrets
        self._say = say
        self._client: httpx.AsyncClient | None = None

    def secret(self, name: str) -> str:
        """The value of a named variable."""
        value = self._secrets(name)
        if not value:
            raise ChannelRefused(f"{name} is not set, neither in the environment nor in secrets.env")
        return value

    def say(self, line: str) -> None:
        """Show a line."""
        self._say(line)

    async def post(self, url: str, body: bytes, headers: Mapping[str, str]) -> None:
        """One try. The address is never part of an error."""
        check_address(url)
        if self._client is None:
            self._client = await asyncio.to_thread(_client)  # loading certificates takes a while
        import httpx

        try:
            async with self._client.stream("POST", url, content=body, headers=dict(headers)) as answer:
                read = 0
                async for chunk in answer.aiter_raw():
                    read += len(chunk)
                    if read > MOST_READ:
                        break
        except httpx.ConnectError as exc:
            raise ChannelError("it could not be connected to") from exc
        except httpx.TimeoutException as exc:
            raise ChannelError("it did not answer in time") from exc
        except (httpx.InvalidURL, httpx.UnsupportedProtocol) as exc:
            raise ChannelRefused("its address cannot be used") from exc
        except (httpx.HTTPError, UnicodeError) as exc:
            raise ChannelError(f"the connection failed: {type(exc).__name__}") from exc
        _judge(answer.status_code, answer.headers.get("Retry-After"))

    async def close(self) -> None:
        """Let go of connections."""
        if self._client is not None:
            await self._client.aclose()
            self._client = None


def check_address(url: str) -> None:
    """Refuse what is not https, save to this very machine."""
    try:
        parts = urlsplit(url)
        host = parts.hostname or ""
    except ValueError as exc:
        raise ChannelRefused("its address cannot be read") from exc
    if not host or parts.scheme not in ("http", "https"):
        raise ChannelRefused("its address is none of the web: it must begin with https://")
    if parts.scheme == "http" and not is_loopback(host):
        raise ChannelRefused("its address is not https; http is only for this machine itself")


def is_loopback(host: str) -> bool:
    """Whether a host of an address is this machine."""
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host.lower() == "localhost"


def retry_after(value: str | None, now: float) -> float | None:
    """The seconds that a Retry-After asks for: a number, or a date."""
    if not value:
        return None
    try:
        return max(0.0, float(value))
    except ValueError:
        pass
    try:
        return max(0.0, parsedate_to_datetime(value).timestamp() - now)
    except (ValueError, TypeError):
        return None


def _judge(status: int, after: str | None) -> None:
    if 200 <= status < 300:
        return
    if status in AGAIN or status >= 500:
        raise ChannelError(f"it answered {status}", after_seconds=retry_after(after, time.time()))
    raise ChannelRefused(f"it answered {status}")


def _client() -> httpx.AsyncClient:
    import httpx

    direct = {f"all://{host}": None for host in LOOPBACK}  # a proxy is not asked for this machine
    return httpx.AsyncClient(mounts=direct, timeout=None, follow_redirects=False, headers={"User-Agent": "fleet"})
