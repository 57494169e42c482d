"""How the MCP server is reached: by stdin and stdout, or by streamable HTTP behind the gate of the API."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Callable
from typing import Any

from mcp.server.lowlevel import Server
from mcp.server.stdio import stdio_server
from mcp.server.streamable_http_manager import StreamableHTTPASGIApp, StreamableHTTPSessionManager

from fleet.api.gate import Gate
from fleet.api.server import Server as HttpServer
from fleet.api.server import config_of
from fleet.config.serving import Api
from fleet.config.tokens import Token

PATH = "/mcp"
MOST_SESSIONS = 1000


async def over_stdio(server: Server[Any]) -> None:
    """Until stdin ends."""
    async with stdio_server() as (read, write):
        await server.run(read, write, server.create_initialization_options())


async def over_http(
    server: Server[Any],
    api: Api,
    bound: socket.socket,
    stop: asyncio.Event,
    *,
    tokens: Callable[[], list[Token]],
    failed: Callable[[Exception, str], object],
    ready: Callable[[], object],
) -> None:
    """Until told to stop. Every request passes the gate first: Host, Origin, token, rate, size."""
    manager = StreamableHTTPSessionManager(
        server, max_request_body_size=api.max_body_kib << 10, max_sessions=MOST_SESSIONS
    )
    inner = StreamableHTTPASGIApp(manager)

    async def at_its_path(scope: Any, receive: Any, send: Any) -> None:
        if scope["path"].rstrip("/") == PATH:
            await inner(scope, receive, send)
            return
        await send({"type": "http.response.start", "status": 404, "headers": []})
        await send({"type": "http.response.body", "body": b""})

    http = HttpServer(config_of(Gate(at_its_path, api, tokens, failed), api))
    async with manager.run(), asyncio.TaskGroup() as group:
        serving = group.create_task(http.serve(sockets=[bound]))
        told = group.create_task(stop.wait())
        ready()
        await asyncio.wait({serving, told}, return_when=asyncio.FIRST_COMPLETED)
        told.cancel()
        http.should_exit = True
