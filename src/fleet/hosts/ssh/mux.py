"""Sessions on a connection that ssh shares, asked for in OpenSSH's own words (PROTOCOL.mux), without a client of it.

The process that keeps the connection, its master, is handed the far ends of three pipes and does all the rest. What was
printed over there has arrived when both pipes have ended, and the far side tells its code itself: of what the master
says, only whether it opened the session is read. A master that finds our socket closed ends the session.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import socket
import struct
from collections.abc import AsyncIterator, Mapping
from io import FileIO
from pathlib import Path

from fleet.hosts.ssh.pipes import Pipes, ready

VERSION = 4
HELLO, NEW_SESSION, TERMINATE = 0x00000001, 0x10000002, 0x10000005
DENIED, FAILED, OPENED = 0x80000002, 0x80000003, 0x80000006
REQUEST = 0  # its number; there is one on a socket
NO_ESCAPE = 0xFFFFFFFF
LONGEST_LINE = (1 << 17) - 1  # Linux gives no longer word to a program, so none to the shell over there
LONGEST_ANSWER = 1 << 16
BUSY_SECONDS = 0.02  # between two knocks at a master with too many at its door
LEAVES_SECONDS, LOOK_SECONDS = 2.0, 0.002  # for a master that ends to remove its socket; between two looks


class MuxError(Exception):
    """The master opened no session, or it is not known whether it did."""


class TooLong(MuxError):
    """The line could not be run by any shell: nothing has happened."""


class Stranger(MuxError):
    """What answers does not speak as we do: nothing has happened."""


class NotAsked(MuxError):
    """No master was there to be asked: nothing has happened."""


class NoMore(MuxError):
    """The server takes no further session on the connection: nothing has happened."""


async def meet(path: Path) -> socket.socket:
    """A master that has said hello. Not before that it is asked: one that is about to end says none."""
    try:
        master = socket.socket(socket.AF_UNIX)
    except OSError as exc:
        raise MuxError(f"no socket can be opened: {exc.strerror}") from exc
    try:
        master.setblocking(False)
        await _knock(master, path)
        check_hello(await _answer(master))
    except (EOFError, OSError) as exc:
        master.close()
        raise NotAsked("nobody answers at the socket of the connection") from exc
    except BaseException:
        master.close()
        raise
    return master


@contextlib.asynccontextmanager
async def session(master: socket.socket, line: str, variables: Mapping[str, str]) -> AsyncIterator[Pipes]:
    """A line that runs over there, by a master that was met. It is ended when we leave."""
    with contextlib.ExitStack() as opened:
        opened.enter_context(master)
        asked = request(line, variables)
        try:
            (their_in, stdin), (stdout, their_out), (stderr, their_err) = (_pipe(opened) for _ in range(3))
        except OSError as exc:
            raise MuxError(f"no pipe can be opened: {exc.strerror}") from exc
        try:
            await asyncio.get_running_loop().sock_sendall(master, asked)
            for each in (their_in, their_out, their_err):
                await _hand(master, each)
        except OSError as exc:  # without the last of the files it does nothing
            raise NotAsked("the connection ended") from exc
        try:
            check_opened(await _answer(master))
        except (EOFError, OSError) as exc:
            raise MuxError("the connection ended") from exc
        pipes = Pipes(stdin, stdout, stderr)
        opened.callback(pipes.leave)
        yield pipes


async def terminate(path: Path) -> None:
    """End the master, and wait for that. Without one there is nothing to do.

    It removes its socket by name, as the last of all: who made a new connection before that would lose its socket.
    """
    loop = asyncio.get_running_loop()
    with contextlib.suppress(MuxError, OSError), await meet(path) as master:
        found = _inode(path)
        await loop.sock_sendall(master, packet(HELLO, VERSION) + packet(TERMINATE, REQUEST))
        while await loop.sock_recv(master, LONGEST_ANSWER):
            pass
        end = loop.time() + LEAVES_SECONDS
        while _inode(path) == found and loop.time() < end:
            await asyncio.sleep(LOOK_SECONDS)


def packet(*fields: int | bytes) -> bytes:
    """A message: its length, then numbers and strings."""
    words = [struct.pack(">I", each if isinstance(each, int) else len(each)) for each in fields]
    body = b"".join(word if isinstance(each, int) else word + each for word, each in zip(words, fields, strict=True))
    return struct.pack(">I", len(body)) + body


def request(line: str, variables: Mapping[str, str]) -> bytes:
    """What asks for a line to be run, with no terminal, windows, agent or subsystem."""
    command = os.fsencode(line)
    if len(command) > LONGEST_LINE:
        raise TooLong(f"a command of {len(command)} bytes is too long")
    pairs = (os.fsencode(f"{name}={value}") for name, value in variables.items())
    session = packet(NEW_SESSION, REQUEST, b"", 0, 0, 0, 0, NO_ESCAPE, b"", command, *pairs)
    return packet(HELLO, VERSION) + session


def check_hello(answer: bytes) -> None:
    """Raise, unless a master speaks as we do."""
    kind, version = struct.unpack_from(">II", answer.ljust(8, b"\0"))
    if (kind, version) != (HELLO, VERSION):
        spoken = f"version {version}" if kind == HELLO else "something else"
        raise Stranger(f"the ssh that keeps the connection speaks {spoken}, not version {VERSION} of its protocol")


def check_opened(answer: bytes) -> None:
    """Raise, unless a master answers that the session is open."""
    kind, _, size = struct.unpack_from(">III", answer.ljust(12, b"\0"))
    if kind == OPENED:
        return
    if kind not in (FAILED, DENIED):
        raise MuxError(f"the ssh that keeps the connection gave an unknown answer, {kind:#010x}")
    reason = answer[12 : 12 + size].decode("utf-8", "replace")
    raise (NoMore if was_full(reason) else MuxError)(reason)


def was_full(said: str) -> bool:
    """Whether a master, or a client that asked one, says that the server takes no further session: it ran nothing."""
    return "session open refused by peer" in said.lower()


async def _knock(master: socket.socket, path: Path) -> None:
    while True:
        try:
            return master.connect(os.fspath(path))
        except BlockingIOError:
            await asyncio.sleep(BUSY_SECONDS)


async def _hand(master: socket.socket, file: FileIO) -> None:
    """Give a file away. The master waits for it, so nothing else is done meanwhile."""
    loop = asyncio.get_running_loop()
    while True:
        try:
            socket.send_fds(master, [b"\0"], [file.fileno()])
            return file.close()
        except BlockingIOError:
            await ready(loop.add_writer, loop.remove_writer, master.fileno())


async def _answer(master: socket.socket) -> bytes:
    (size,) = struct.unpack(">I", await _exactly(master, 4))
    if size > LONGEST_ANSWER:
        raise MuxError("the ssh that keeps the connection gave an answer without end")
    return await _exactly(master, size)


async def _exactly(master: socket.socket, size: int) -> bytes:
    loop, data = asyncio.get_running_loop(), b""
    while len(data) < size:
        more = await loop.sock_recv(master, size - len(data))
        if not more:
            raise EOFError
        data += more
    return data


def _inode(path: Path) -> int:
    return os.lstat(path).st_ino


def _pipe(opened: contextlib.ExitStack) -> tuple[FileIO, FileIO]:
    read, write = os.pipe()
    return opened.enter_context(FileIO(read, "rb")), opened.enter_context(FileIO(write, "wb"))
