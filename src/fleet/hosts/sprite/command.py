"""One command on a sprite, over a websocket: opened with patience, fed, heard to its end, killed if we leave before it.

The words of a command travel in the address, so no secret may be among them; what is secret goes on stdin.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Sequence
from typing import NamedTuple
from urllib.parse import urlencode

from websockets.asyncio.client import ClientConnection, connect
from websockets.exceptions import ConnectionClosed, InvalidHandshake, InvalidStatus, InvalidURI

from fleet.errors import HostUnfit, TransportError
from fleet.hosts.sprite.answers import fields_of, refusal
from fleet.hosts.sprite.api import (
    FAILED,
    PATIENCE_SECONDS,
    PAUSES_SECONDS,
    SpriteApi,
    path_of,
    pause_after,
    wait_for,
)
from fleet.hosts.transport import Course

STDIN, STDOUT, STDERR, EXIT, STDIN_END = range(5)
OPEN_SECONDS = 60.0  # it is the opening that wakes a sprite
PING_SECONDS, PONG_SECONDS = 15.0, 20.0
GRACE_SECONDS = 2.0  # for the last output, when the end was told as text only
KILL_SECONDS = 10.0
LINGER = "5s"  # how long it may run on over there when we are cut off
CHUNK = 1 << 16
LONGEST_FRAME = 1 << 24
NO_UPGRADE = frozenset({400, 405, 426, 501})
# The machine may start what was asked for when it has woken, though we have left: nothing begins before a line from us.
GATE = ("sh", "-c", 'read -r x && exec "$@"', "sh")
GO = b"\n"


class Piece(NamedTuple):
    """Something that the command printed."""

    stream: int
    data: bytes


class Command:
    """A command that was begun. `code` is its end, once it is known."""

    def __init__(self, socket: ClientConnection, what: str, course: Course) -> None:
        self.code: int | None = None
        self.session = ""  # its number over there, by which it is killed
        self.broken = False  # the connection ended before the command
        self.error = ""  # what the machine says about it
        self._socket = socket
        self._what = what
        self._course = course
        self._told: int | None = None  # the end as text: not to be believed while output still comes

    async def next(self) -> Piece | None:
        """What it prints next; None at its end."""
        while self.code is None:
            try:
                async with asyncio.timeout(None if self._told is None else GRACE_SECONDS):
                    message = await self._socket.recv()
            except (TimeoutError, ConnectionClosed) as exc:
                if self._told is None:
                    self.broken = True
                    ran = "it began; whether it ran to its end" if self._course.began else "whether it ran"
                    raise TransportError(
                        f"{self._what}: the connection broke before its end; {ran} is not known"
                    ) from exc
                self.code = self._told
                break
            if isinstance(message, str):
                self._hear(message)
            elif message[:1] == bytes([EXIT]) and len(message) > 1:
                self.code = message[1]
            elif message and message[0] in {STDOUT, STDERR}:
                return Piece(message[0], message[1:])
        return None

    async def feed(self, data: bytes) -> None:
        """Let it begin, and give it its input, and the end of that. One that reads no more is no error."""
        with contextlib.suppress(ConnectionClosed):
            given = GO + data
            for begin in range(0, len(given), CHUNK):
                await self._socket.send(bytes([STDIN]) + given[begin : begin + CHUNK])
            await self._socket.send(bytes([STDIN_END]))

    def _hear(self, message: str) -> None:
        said = fields_of(message.encode())
        match said.get("type"):
            case "session_info":
                self.session = str(said.get("session_id", ""))
                self._course.began = True
            case "exit" if isinstance(said.get("exit_code"), int):
                self._told = said["exit_code"]
            case "error":
                self.error = str(said.get("error") or said.get("message") or "")


@contextlib.asynccontextmanager
async def running(
    api: SpriteApi, name: str, argv: Sequence[str], stdin: bytes, course: Course
) -> AsyncIterator[Command]:
    """A command that is killed over there if we leave before its end. Its course is told whether it began."""
    what = f"cannot run `{argv[0]}` on sprite {name}"
    socket = await _opened(api, name, (*GATE, *argv), what)
    course.began = None  # until the machine says so
    command = Command(socket, what, course)
    feeding = asyncio.ensure_future(command.feed(stdin))
    try:
        yield command
    finally:
        feeding.cancel()
        await asyncio.shield(_ended(api, name, socket, command, feeding))


async def _ended(
    api: SpriteApi, name: str, socket: ClientConnection, command: Command, feeding: asyncio.Future[None]
) -> None:
    """Leave. The server would keep the connection for seconds after the end: it is not waited for.

    After a broken connection nothing is killed by us: that would wake a sprite that fell asleep. The machine does it.
    """
    if command.code is None and command.session and not command.broken:
        path, signal = f"{path_of(name)}/exec/{command.session}/kill", {"signal": "SIGKILL", "timeout": "5s"}
        with contextlib.suppress(TransportError):  # then its time runs out over there
            await api.ask("POST", path, "cannot kill a command", query=signal, json=signal, seconds=KILL_SECONDS)
    socket.transport.abort()
    await socket.wait_closed()
    await asyncio.gather(feeding, return_exceptions=True)


async def _opened(api: SpriteApi, name: str, argv: Sequence[str], what: str) -> ClientConnection:
    """The connection. A refusal is asked again within bounds: nothing was run then."""
    words = [("cmd", word) for word in argv] + [("path", argv[0]), ("stdin", "true")]
    query = urlencode([*words, ("max_run_after_disconnect", LINGER)], errors="surrogateescape")
    address = f"{api.url.replace('http', 'ws', 1)}{path_of(name)}/exec?{query}"
    pauses, patience = iter(PAUSES_SECONDS), PATIENCE_SECONDS
    while True:
        try:
            return await connect(
                address,
                additional_headers=api.headers(),
                open_timeout=OPEN_SECONDS,
                ping_interval=PING_SECONDS,
                ping_timeout=PONG_SECONDS,
                max_size=LONGEST_FRAME,
                compression=None,
            )
        except InvalidStatus as exc:
            status = exc.response.status_code
            error = _refused(what, status, bytes(exc.response.body or b""), dict(exc.response.headers.raw_items()))
            pause = next(pauses, None) if status >= FAILED else wait_for(error, patience)
            if pause is None:
                raise error from exc
            patience -= pause
            await pause_after(error, pause)
        except TimeoutError as exc:
            raise TransportError(f"{what}: it did not wake within {OPEN_SECONDS:.0f} s") from exc
        except (OSError, InvalidHandshake, InvalidURI, ConnectionClosed) as exc:
            raise TransportError(f"{what}: {str(exc) or type(exc).__name__}") from exc


def _refused(what: str, status: int, body: bytes, headers: dict[str, str]) -> TransportError:
    if status in NO_UPGRADE:
        return HostUnfit(
            f"{what}: no websocket is let through (status {status}); its status can still be told",
            hint="commands on sprites need websockets: see that no proxy on the way stops them",
        )
    return refusal(what, status, body, headers)
