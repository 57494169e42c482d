"""Commands on a stand-in sprite: by websocket with the true frames, by POST; listed, attached to, killed."""

from __future__ import annotations

import asyncio
import contextlib
import json
from typing import Any

from aiohttp import WSMsgType, web

from tests.support.sprites.faults import ApiFaults
from tests.support.sprites.machine import MACHINE, Machine
from tests.support.sprites.process import Piece, Process
from tests.support.sprites.wire import EXIT, STDERR, STDIN, STDIN_END, VERSION, Refused, as_seconds

HOLD_SECONDS = 5.0  # how long a connection stays open after the end, as over there
LINGER_SECONDS = 10.0  # how long a command without a terminal runs on when nobody is attached


class Commands:
    """The commands of every machine."""

    def __init__(self, faults: ApiFaults) -> None:
        self._faults = faults

    async def get(self, request: web.Request) -> web.StreamResponse:
        """The list; or, as a websocket, a new command."""
        machine = request[MACHINE]
        if not _is_websocket(request):
            sessions = [process.told() for process in machine.processes.values()]
            return web.json_response({"count": len(sessions), "sessions": sessions})
        self._check(machine)
        if machine.faults.hang or machine.faults.close_early:
            return await self._say_nothing(request, machine)
        try:
            process = await begin(machine, request)
        except OSError as exc:
            return await self._cannot(request, exc)
        try:
            socket = await _opened(request)
            told = {"type": "debug", "msg": f"session_created cmd={process.argv[0]}", "pid": int(process.id)}
            await socket.send_json(told)
        except BaseException:  # who asked for it has left meanwhile
            process.let_linger()
            raise
        return await self._serve(request, socket, process, owner=True)

    async def attach(self, request: web.Request) -> web.StreamResponse:
        """To a command that runs; without a websocket, only what it is."""
        process = _known(request)
        if not _is_websocket(request):
            return web.json_response(process.told())
        self._check(request[MACHINE])
        return await self._serve(request, await _opened(request), process, owner=False)

    async def kill(self, request: web.Request) -> web.StreamResponse:
        """Signal it, and tell what came of it, line by line."""
        process, given = _known(request), dict(request.query)
        with contextlib.suppress(ValueError):
            given = {**(await request.json()), **given}
        name = given.get("signal") or "SIGTERM"
        response = web.StreamResponse(headers={"Content-Type": "application/x-ndjson"})
        await response.prepare(request)

        async def tell(kind: str, **more: object) -> None:
            await response.write(json.dumps({"type": kind, **more}).encode() + b"\n")

        await tell("signal", message=f"Signaling {name}", pid=int(process.id), signal=name)
        process.signal(name)
        try:
            async with asyncio.timeout(as_seconds(str(given.get("timeout") or ""), 10)):
                await process.exited.wait()
            await tell("exited", message="Process exited")
        except TimeoutError:
            await tell("timeout", message="Timed out waiting for process to exit")
            process.signal("KILL")
            await process.exited.wait()
            await tell("killed", message="Process killed")
        await tell("complete", exit_code=process.code)
        return response

    async def post(self, request: web.Request) -> web.StreamResponse:
        """A command without a websocket: each chunk of the answer is one frame."""
        if "tty" in request.query:
            return web.Response(status=400, text="TTY not supported on POST /exec\n")
        try:
            process = await begin(request[MACHINE], request)
        except OSError as exc:
            return web.Response(status=500, text=f"failed to start process: {exc}\n")
        process.write(await request.read())
        process.end_input()
        queue = process.attach()
        response = web.StreamResponse(headers={"Content-Type": "application/octet-stream", "Sprite-Version": VERSION})
        response.enable_chunked_encoding()
        await response.prepare(request)
        try:
            stream = -1
            while stream != EXIT:
                stream, data = await queue.get()
                await response.write(bytes([stream]) + data)
        finally:
            process.detach(queue)
        return response

    # the websocket

    def _check(self, machine: Machine) -> None:
        if self._faults.no_websocket:
            raise Refused(426, "websockets are not let through")
        if status := machine.faults.refuse_handshake:
            raise Refused(status, "bad gateway")

    async def _say_nothing(self, request: web.Request, machine: Machine) -> web.StreamResponse:
        socket = await _opened(request)
        if machine.faults.close_early:
            await socket.close(code=1000)
        async for _ in socket:
            pass
        return socket

    async def _cannot(self, request: web.Request, error: OSError) -> web.StreamResponse:
        socket = await _opened(request)
        await socket.send_json({"type": "error", "error": str(error)})
        await socket.send_bytes(bytes([STDERR]) + f"{error}\n".encode())
        await socket.send_json({"type": "exit", "exit_code": 127})
        await socket.send_bytes(bytes([EXIT, 127]))
        await socket.close()
        return socket

    async def _serve(
        self, request: web.Request, socket: web.WebSocketResponse, process: Process, *, owner: bool
    ) -> web.WebSocketResponse:
        machine = request[MACHINE]

        def cut() -> None:
            if request.transport is not None:
                request.transport.abort()

        info = {
            "session_id": process.id,
            "command": process.argv[0],
            "created": int(process.created),
            "is_owner": owner,
        }
        queue = process.attach()
        machine.cuts.add(cut)
        writing: list[asyncio.Task[None]] = []
        try:
            await socket.send_json({"type": "session_info", **info, "cols": 0, "rows": 0, "tty": process.tty})
            writing.append(asyncio.create_task(_write(socket, machine, process, queue, cut)))
            async for message in socket:
                _take(process, message.type, message.data)
        finally:
            machine.cuts.discard(cut)
            process.detach(queue)
            for task in writing:
                task.cancel()
            await asyncio.gather(*writing, return_exceptions=True)
        return socket


async def begin(machine: Machine, request: web.Request) -> Process:
    """The command that a request asks for. What is given as environment replaces the usual one."""
    query = request.query
    argv = query.getall("cmd", []) or [query.get("path") or "bash"]
    tty = query.get("tty") == "true"
    given = dict(pair.split("=", 1) for pair in query.getall("env", []) if "=" in pair)
    linger = as_seconds(query.get("max_run_after_disconnect"), 0 if tty else LINGER_SECONDS)
    process = Process(argv, tty=tty, linger_seconds=linger, active=machine.touch)
    await process.start(
        query.get("path") or argv[0],
        given or machine.environment(),
        str(machine.resolved(query.get("dir", ""))),
        stdin=query.get("stdin", "true" if tty else "false") == "true",
        rows=int(query.get("rows") or 24),
        cols=int(query.get("cols") or 80),
    )
    machine.processes[process.id] = process

    def forget() -> None:
        del machine.processes[process.id]  # its code is gone with it, as over there

    process.ended = forget
    return process


async def _write(
    socket: web.WebSocketResponse, machine: Machine, process: Process, queue: asyncio.Queue[Piece], cut: Any
) -> None:
    faults, sent = machine.faults, 0
    with contextlib.suppress(ConnectionError):
        while True:
            stream, data = await queue.get()
            if stream == EXIT:
                break
            if faults.early_text_exit and not sent:
                await socket.send_json({"type": "exit", "exit_code": 0})
            await socket.send_bytes(data if process.tty else bytes([stream]) + data)
            sent += len(data)
            if faults.drop_after_bytes is not None and sent >= faults.drop_after_bytes:
                cut()
        if faults.drop_before_exit:
            cut()
        await socket.send_json({"type": "exit", "exit_code": data[0]})
        if not process.tty and not faults.only_text_exit:
            await socket.send_bytes(bytes([EXIT]) + data)
        await asyncio.sleep(HOLD_SECONDS)
        await socket.close()


def _take(process: Process, kind: WSMsgType, data: Any) -> None:
    """What a client says."""
    if kind == WSMsgType.BINARY:
        if process.tty:
            process.write(data)
        elif data[0] == STDIN:
            process.write(data[1:])
        elif data[0] == STDIN_END:
            process.end_input()
    elif kind == WSMsgType.TEXT:
        said = json.loads(data)
        if said.get("type") == "resize":
            process.resize(said["rows"], said["cols"])
        elif said.get("type") == "signal":
            process.signal(said["signal"])


def _known(request: web.Request) -> Process:
    number = request.match_info["number"]
    process = request[MACHINE].processes.get(number)
    if process is None:
        raise web.HTTPNotFound(text=f"session not found: {number}\n")
    return process


def _is_websocket(request: web.Request) -> bool:
    return request.headers.get("Upgrade", "").lower() == "websocket"


async def _opened(request: web.Request) -> web.WebSocketResponse:
    socket = web.WebSocketResponse(max_msg_size=0)
    socket.headers["Sprite-Version"] = VERSION
    await socket.prepare(request)
    return socket
