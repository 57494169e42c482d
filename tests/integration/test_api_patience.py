"""Slow clients of the API: they are not waited for without end, and quick ones are not held to their pace."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

from fleet.api.gate import Gate
from fleet.api.patience import Patient
from fleet.api.server import Server, bind, config_of
from fleet.config.serving import Api

SECONDS = 30
HEAD = b"POST /there HTTP/1.1\r\nhost: 127.0.0.1\r\n"


class Hasty(Patient):
    """With so little patience that a test can see its end."""

    head_seconds = 0.3
    body_seconds = 0.4


async def slowly(scope: Any, receive: Any, send: Any) -> None:
    """An application that reads everything, and answers later than a client may take to ask."""
    while (await receive()).get("more_body"):
        pass
    await asyncio.sleep(Hasty.head_seconds * 2)
    await send({"type": "http.response.start", "status": 200, "headers": [(b"content-length", b"2")]})
    await send({"type": "http.response.body", "body": b"ok"})


def met(scene: Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]], app: Any = slowly) -> None:
    """Run a scene on a connection to a server of that application, or of another one."""

    async def run() -> None:
        api = Api(port=0)
        config = config_of(app, api)
        assert config.http is Patient
        config.http = Hasty if app is slowly else Patient
        with bind(api) as bound:
            server = Server(config)
            serving = asyncio.create_task(server.serve(sockets=[bound]))
            reader, writer = await asyncio.open_connection(*bound.getsockname())
            try:
                async with asyncio.timeout(SECONDS):
                    await scene(reader, writer)
            finally:
                writer.close()
                server.should_exit = True
                await serving

    asyncio.run(run())


async def trickle(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, begin: bytes) -> bytes:
    """Say something whole, then a letter at a time; what is answered until the other side ends it."""
    writer.write(begin)
    reading = asyncio.ensure_future(reader.read())
    try:
        while not reading.done():
            writer.write(b"x")
            await asyncio.wait([reading], timeout=0.02)
        return await reading
    except ConnectionError:
        return b""


def test_headers_that_come_a_letter_at_a_time() -> None:
    """The connection ends, and each letter does not buy more time."""

    async def scene(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        assert await trickle(reader, writer, HEAD + b"x-long: ") == b""

    met(scene)


def test_a_body_that_comes_a_letter_at_a_time() -> None:
    """The same, after the headers."""

    async def scene(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        assert await trickle(reader, writer, HEAD + b"content-length: 1000000\r\n\r\n") == b""

    met(scene)


def test_a_client_that_says_nothing() -> None:
    """It has no longer than one that says little."""

    async def scene(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        assert await reader.read() == b""

    met(scene)


def test_a_slow_answer_is_not_the_clients_fault() -> None:
    """Who has asked may wait for as long as the answer takes, and then ask again on the same connection."""

    async def scene(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        for _ in range(2):
            writer.write(HEAD + b"content-length: 3\r\n\r\nabc")
            assert (await reader.readuntil(b"\r\n\r\n")).startswith(b"HTTP/1.1 200")
            assert await reader.readexactly(2) == b"ok"
            await asyncio.sleep(Hasty.head_seconds * 1.5)  # idle between two requests is another matter

    met(scene)


def test_who_sends_too_much_hears_of_it() -> None:
    """Though it sends all of it before it listens; who asks beforehand whether to send is told at once."""
    gate = Gate(slowly, Api(max_body_kib=1), lambda: (), lambda *_: None)
    much = HEAD + b"content-type: application/json\r\ncontent-length: 20000000\r\n"

    async def sends(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(much + b"\r\n" + b"x" * 20_000_000)
        await writer.drain()
        assert (await reader.readline()).startswith(b"HTTP/1.1 413")

    async def asks(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(much + b"expect: 100-continue\r\n\r\n")
        assert (await reader.readline()).startswith(b"HTTP/1.1 413")

    met(sends, gate)
    met(asks, gate)
