"""The four verbs of a transport over ssh: each is one exchange on the shared connection."""

from __future__ import annotations

import asyncio
import contextlib
import os
import random
import secrets
import tempfile
from collections.abc import AsyncIterator, Mapping, Sequence
from pathlib import Path

from fleet.errors import HostFull, TransportError
from fleet.hosts.ssh import far
from fleet.hosts.ssh.address import SshAddress
from fleet.hosts.ssh.client import client, failure
from fleet.hosts.ssh.connection import CHANNELS, Connection, Gate, NothingRan
from fleet.hosts.ssh.mux import was_full
from fleet.hosts.ssh.pipes import Pipes, TooMuch
from fleet.hosts.transport import MOST_OUTPUT, Completed, Course, too_much
from fleet.hosts.unpacking import launching, unpack

NOT_UP = "the connection was not up"
HALF_WAY = "the connection broke before the command ended, which may have gone on"
CHUNK = 1 << 16
MOST_SAID = 1 << 20  # of what a command said that is cancelled
AGAIN_SECONDS = (0.05, 0.1, 0.2, 0.4, 0.8, 1.6, 3.2)


class SshTransport:
    """Programs and files of another machine, as the user that logs in there.

    When it is cancelled it ends what it had started there. Where the connection is cut, the far side ends it by itself,
    as soon as it learns of the cut.
    """

    def __init__(self, address: SshAddress, folder: Path, environment: Mapping[str, str]) -> None:
        self._connection = Connection(address, folder, environment)
        self._address = address
        self._channels = Gate(CHANNELS)

    async def run(self, argv: Sequence[str], *, stdin: bytes = b"") -> Completed:
        body = far.run_body(argv, len(stdin))
        with Course(NOT_UP) as course:
            try:
                done = await self._first(body, stdin, course)
                code, stdout, stderr = done or await self._exchange(body, stdin, hold=True, course=course)
            except asyncio.CancelledError:
                if course.began is False and self._connection.is_up():
                    course.began = None  # it was being asked for
                raise
            except TooMuch as exc:
                raise too_much(argv[0]) from exc
        if code == "unfound":
            raise TransportError(f"cannot run `{argv[0]}` on host {self._address.host}: {_text(stderr)}")
        return Completed(int(code), stdout, stderr)

    async def put(self, path: str, data: bytes) -> None:
        self._written(path, *await self._exchange(far.put_body(path, data, secrets.token_hex(6)), data))

    async def get(self, path: str, *, offset: int = 0, limit: int = 1 << 20) -> bytes:
        code, stdout, stderr = await self._exchange(far.get_body(path, offset, limit))
        if code != "0":
            raise _refused(f"cannot read {path} on host {self._address.host}", stderr)
        begin = offset % far.BLOCK
        return stdout[begin : begin + limit]

    async def unpack(self, directory: str, files: Mapping[str, bytes], *, shared: Mapping[str, bytes]) -> None:
        self._written(directory, *await unpack(self._exchange, directory, files, shared))

    async def begin(
        self,
        directory: str,
        files: Mapping[str, bytes],
        *,
        shared: Mapping[str, bytes],
        argv: Sequence[str],
        stdin: bytes,
    ) -> bytes:
        then = launching(argv, stdin)
        return self._written(directory, *await unpack(self._exchange, directory, files, shared, then))

    async def launch(self, argv: Sequence[str], *, stdin: bytes) -> bytes:
        """Also b"" where the host cannot: that is no error, there is another way to start it."""
        _, stdout, _ = await self._exchange(far.launch_body(argv), stdin)
        return stdout

    async def stream(self, argv: Sequence[str]) -> AsyncIterator[bytes]:
        async with self._asked(far.stream_body(argv), streams=True) as (pipes, answer):
            saying = pipes.said()
            head: bytes | None = b""
            while chunk := await pipes.read():
                if head is None:
                    yield chunk
                    continue
                head += chunk
                if (rest := answer.begin(head)) is not None:
                    head = None
                    if rest:
                        yield rest
            end = answer.end(said := await saying)
            if end is None:
                raise self._cut(answer, said)
            if end[0] != "0":
                raise TransportError(f"`{argv[0]}` ended with code {end[0]} on host {self._address.host}")

    async def close(self) -> None:
        """End the shared connection at once; else it ends by itself a while after its last use."""
        await self._connection.close()

    def _written(self, path: str, code: str, stdout: bytes, stderr: bytes) -> bytes:
        """What the exchange that wrote it printed."""
        if code != "0":
            raise _refused(f"cannot write {path} on host {self._address.host}", stderr)
        return stdout

    async def _first(self, body: str, stdin: bytes, course: Course) -> tuple[str, bytes, bytes] | None:
        """A command that opens the connection itself: one client in the place of two. None where it is or gets open.

        Nor did it run where others were quicker to take all sessions that the server allows. What it says does not come
        by a pipe: the process that keeps the connection may hold that open.
        """
        async with self._connection.first() as words:
            if words is None:
                return None
            mark, came = secrets.token_hex(8), bytearray()
            argv, answer = [*words, far.line_for(far.exchange(mark, body))], far.Answer(mark)
            with tempfile.TemporaryFile() as said:
                async with client(argv, self._connection.environment, stderr=said) as process:
                    assert process.stdin is not None
                    assert process.stdout is not None
                    process.stdin.write(stdin)  # it stays open, as the lifeline
                    try:
                        await _collect(process.stdout, came)
                        await process.wait()
                    except (asyncio.CancelledError, TooMuch):
                        up = self._connection.is_up()  # else there was nothing that it could have begun on
                        _note(course, answer, bytes(came), os.pread(said.fileno(), MOST_SAID, 0), may_have_begun=up)
                        raise
                said.seek(0)
                stdout, stderr = bytes(came), said.read(MOST_OUTPUT + 1)
        if len(stderr) > MOST_OUTPUT:
            raise TooMuch
        begun = answer.begin(stdout) is not None
        if not begun and was_full(_text(stderr)):
            return None
        if not begun:
            raise self._connection.no_answer(answer, stdout, _text(stderr))
        return self._whole(answer, stdout, stderr, course)

    async def _exchange(
        self, body: str, stdin: bytes = b"", *, hold: bool = False, course: Course | None = None
    ) -> tuple[str, bytes, bytes]:
        """The code, stdout and stderr of a body. `hold`: stdin stays open after the last byte, as the lifeline."""
        async with self._channels.pass_(), self._asked(body) as (pipes, answer):
            try:
                stdout, stderr = await pipes.communicate(stdin, hold=hold)
            except (asyncio.CancelledError, TooMuch):
                _note(course or Course(), answer, *pipes.so_far(), may_have_begun=True)
                raise
        return self._whole(answer, stdout, stderr, course or Course())

    def _whole(self, answer: far.Answer, stdout: bytes, stderr: bytes, course: Course) -> tuple[str, bytes, bytes]:
        """The code, stdout and stderr, once both have come to their end; what comes of them before is the course's."""
        end, printed = answer.end(stderr), answer.printed(stdout)
        if end is None or printed is None:
            _note(course, answer, stdout, stderr, may_have_begun=True)
            raise self._cut(answer, stderr)
        return end[0], printed, end[1]

    def _cut(self, answer: far.Answer, stderr: bytes) -> TransportError:
        """The error for what did not come to its end. Once it has begun, what it says is its own affair."""
        return failure(self._address, _text(stderr) if answer.begin(stderr) is None else HALF_WAY)

    @contextlib.asynccontextmanager
    async def _asked(self, body: str, *, streams: bool = False) -> AsyncIterator[tuple[Pipes, far.Answer]]:
        """A body that runs over there. While the connection goes or is full, nothing runs, and it is asked again."""
        mark = secrets.token_hex(8)
        line = far.line_for(far.exchange(mark, body, streams=streams))
        async with contextlib.AsyncExitStack() as opened:
            for pause in (*AGAIN_SECONDS, None):
                try:
                    pipes = await opened.enter_async_context(self._connection.session(line))
                    break
                except NothingRan:
                    if pause is None:
                        raise
                await asyncio.sleep(pause * random.uniform(0.5, 1.5))  # not all at once again
            yield pipes, far.Answer(mark)


async def _collect(stdout: asyncio.StreamReader, came: bytearray) -> None:
    while chunk := await stdout.read(CHUNK):
        came += chunk
        if len(came) > MOST_OUTPUT:
            raise TooMuch


def _note(course: Course, answer: far.Answer, stdout: bytes, stderr: bytes, *, may_have_begun: bool) -> None:
    """How far it has come, by what has arrived of it."""
    printed, said = answer.so_far(stdout), answer.so_far(stderr)
    course.began = True if printed is not None else None if may_have_begun else False
    course.stdout += printed or b""
    course.stderr += said or b""


def _refused(what: str, stderr: bytes) -> TransportError:
    said = _text(stderr).strip()
    error = HostFull if "No space left" in said or "quota exceeded" in said.lower() else TransportError
    return error(f"{what}: {said.splitlines()[-1] if said else 'it failed'}")


def _text(data: bytes) -> str:
    return data.decode("utf-8", "replace")
