"""The server: its socket, its life from the first request to the last."""

from __future__ import annotations

import asyncio
import contextlib
import ipaddress
import socket
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import uvicorn

from fleet.api.app import make_app
from fleet.api.desk import Desk
from fleet.api.patience import Patient, make_room
from fleet.config.serving import Api
from fleet.errors import Conflict, UsageError

if TYPE_CHECKING:
    from collections.abc import Callable

GRACE_SECONDS = 3  # for requests that were begun
BACKLOG = 2048
MOST_HEADERS = 32 << 10  # bytes
EVERYWHERE = {"0.0.0.0": "127.0.0.1", "::": "::1"}  # no address that a browser takes
BESIDE_STREAMS = 1000  # connections that do not follow the events


def check_place(api: Api, *, insecure: bool) -> None:
    """Refuse to listen where others on the network could read the tokens."""
    if bool(api.tls_cert) != bool(api.tls_key):
        raise UsageError("api.tls_cert and api.tls_key are set together, or not at all")
    if not (insecure or api.tls_cert or _is_loopback(api.host)):
        raise UsageError(
            f"{api.host} can be reached from elsewhere, and tokens would travel in the clear",
            hint="set api.tls_cert and api.tls_key, or say --insecure behind something that encrypts",
        )


def bind(api: Api) -> socket.socket:
    """The socket, bound and listening."""
    host = api.host.strip("[]")
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        bound = socket.create_server((host, api.port), family=family, backlog=BACKLOG)
    except OSError as exc:
        raise Conflict(
            f"cannot listen on {api.host}:{api.port}: {exc.strerror or exc}", hint="--port takes another one"
        ) from exc
    bound.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)  # its connections have it too: else 40 ms an answer
    return bound


def url_of(api: Api, bound: socket.socket) -> str:
    """Where it can be asked, from this machine."""
    host, port = bound.getsockname()[:2]
    host = EVERYWHERE.get(host, host)
    scheme = "https" if api.tls_cert else "http"
    return f"{scheme}://[{host}]:{port}" if ":" in host else f"{scheme}://{host}:{port}"


class Server(uvicorn.Server):
    """uvicorn, whose signals are dealt with by whoever runs it."""

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        """None are taken."""
        yield


async def serve(desk: Desk, api: Api, bound: socket.socket, stop: asyncio.Event, ready: Callable[[], object]) -> None:
    """Answer until told to stop. Clients of the events are let go first: they would not end by themselves."""
    make_room(api.max_streams + BESIDE_STREAMS)
    server = Server(config_of(make_app(desk, api), api))
    async with asyncio.TaskGroup() as group:
        reading = group.create_task(desk.hub.run())
        serving = group.create_task(server.serve(sockets=[bound]))
        told = group.create_task(stop.wait())
        ready()
        await asyncio.wait({reading, serving, told}, return_when=asyncio.FIRST_COMPLETED)
        told.cancel()
        desk.hub.end()
        server.should_exit = True


def config_of(app: Any, api: Api) -> uvicorn.Config:
    """How an application behind the gate is carried."""
    return uvicorn.Config(
        app,
        lifespan="off",
        log_config=None,
        access_log=False,  # addresses may hold what people type; what was done stands in the ledger
        server_header=False,
        proxy_headers=False,
        h11_max_incomplete_event_size=MOST_HEADERS,
        http=Patient,
        limit_concurrency=api.max_streams + BESIDE_STREAMS,
        timeout_graceful_shutdown=GRACE_SECONDS,
        ssl_certfile=api.tls_cert or None,
        ssl_keyfile=api.tls_key or None,
    )


def _is_loopback(host: str) -> bool:
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return False
