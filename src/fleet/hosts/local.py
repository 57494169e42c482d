"""The local transport: this machine, without a way in between."""

from __future__ import annotations

import asyncio
import contextlib
import errno
import os
import secrets
import signal
from asyncio.subprocess import DEVNULL, PIPE, Process
from collections.abc import AsyncIterator, Iterator, Sequence
from pathlib import Path

from fleet.errors import HostFull, TransportError
from fleet.hosts.transport import Completed

CHUNK = 1 << 16


class LocalTransport:
    """Programs and files of this machine, as the user that runs us."""

    async def run(self, argv: Sequence[str], *, stdin: bytes = b"") -> Completed:
        async with _started(argv, stdin=PIPE if stdin else DEVNULL, stderr=PIPE) as process:
            stdout, stderr = await process.communicate(stdin or None)
            assert process.returncode is not None
            return Completed(process.returncode, stdout, stderr)

    async def put(self, path: str, data: bytes) -> None:
        with _translated(f"cannot write {path}"):
            await asyncio.to_thread(_write, Path(path), data)

    async def get(self, path: str, *, offset: int = 0, limit: int = 1 << 20) -> bytes:
        """Reads here and now: a file of ours is in memory, and a thread for each read costs ten times the read."""
        with _translated(f"cannot read {path}"):
            try:
                fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
            except (FileNotFoundError, NotADirectoryError):
                return b""
            try:
                return os.pread(fd, limit, offset)
            finally:
                os.close(fd)

    async def is_empty(self, directory: str) -> bool:
        with _translated(f"cannot look into {directory}"):
            try:
                with os.scandir(directory) as found:
                    return next(found, None) is None
            except (FileNotFoundError, NotADirectoryError):
                return True

    async def real(self, path: str) -> str:
        return os.path.realpath(path)

    async def stream(self, argv: Sequence[str]) -> AsyncIterator[bytes]:
        async with _started(argv, stdin=DEVNULL, stderr=DEVNULL) as process:
            assert process.stdout is not None
            while chunk := await process.stdout.read(CHUNK):
                yield chunk
            if code := await process.wait():
                raise TransportError(f"`{argv[0]}` ended with code {code}")


@contextlib.asynccontextmanager
async def _started(argv: Sequence[str], *, stdin: int, stderr: int) -> AsyncIterator[Process]:
    """A program in a process session of its own; it and its group are killed if we leave before its end."""
    with _translated(f"cannot run `{argv[0]}`"):
        try:
            process = await asyncio.create_subprocess_exec(
                *argv, stdin=stdin, stdout=PIPE, stderr=stderr, start_new_session=True
            )
        except ValueError as exc:  # a NUL in a word
            raise TransportError(f"cannot run `{argv[0]}`: {exc}") from exc
    try:
        yield process
    finally:
        if process.returncode is None:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            await asyncio.shield(process.wait())
        process._transport.close()  # type: ignore[attr-defined]  # the pipes of a killed program stay open otherwise


@contextlib.contextmanager
def _translated(what: str) -> Iterator[None]:
    try:
        yield
    except OSError as exc:
        error = HostFull if exc.errno in {errno.ENOSPC, errno.EDQUOT} else TransportError
        raise error(f"{what}: {exc.strerror}") from exc


def _write(path: Path, data: bytes) -> None:
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    temporary = path.with_name(f".{path.name}.{secrets.token_hex(6)}.put")
    fd = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
    try:
        with open(fd, "wb", buffering=0) as file:
            left = memoryview(data)
            while left:
                left = left[file.write(left) :]
            os.fsync(file.fileno())
        temporary.rename(path)
    except OSError:
        temporary.unlink(missing_ok=True)
        raise
