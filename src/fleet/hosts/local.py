"""The local transport: this machine, without a way in between."""

from __future__ import annotations

import asyncio
import contextlib
import errno
import os
import signal
import stat
from asyncio.subprocess import DEVNULL, PIPE, Process
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence

from fleet.config.files import make_private
from fleet.errors import HostFull, TransportError
from fleet.hosts.apart import Apart
from fleet.hosts.kernel import boot_id, cgroup_of, make_cgroup, own_cgroup, remove_cgroup, remove_orphaned_cgroups
from fleet.hosts.transport import MOST_OUTPUT, Completed, Course, too_much
from fleet.hosts.writing import share, write

CHUNK = 1 << 16
ABSENT = frozenset({errno.ENOENT, errno.ENOTDIR, errno.ENXIO})  # the last is what a socket says
MOST_AT_ONCE = 64  # programs that run to their end: to stop a thousand agents must not bring the machine down


class LocalTransport:
    """Programs and files of this machine, as the user that runs us."""

    def __init__(self) -> None:
        self._apart = Apart()
        self._tidied = False  # what others left of their cgroups is removed when we make our first
        self._turns = asyncio.Semaphore(MOST_AT_ONCE)

    async def run(self, argv: Sequence[str], *, stdin: bytes = b"") -> Completed:
        with Course("it still waited for its turn") as course:
            async with self._turns:
                course.began = None  # until it is known that it was started
                async with _started(argv, stdin=PIPE if stdin else DEVNULL, stderr=PIPE) as process:
                    course.began = True
                    code = await _communicate(process, argv[0], stdin, course)
        return Completed(code, bytes(course.stdout), bytes(course.stderr))

    async def put(self, path: str, data: bytes) -> None:
        with _translated(f"cannot write {path}"):
            await asyncio.to_thread(_put, path, data)

    async def get(self, path: str, *, offset: int = 0, limit: int = 1 << 20) -> bytes:
        """Reads here and now: a file of ours is in memory, and a thread for each read costs ten times the read."""
        with _translated(f"cannot read {path}"):
            try:
                fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)  # a pipe would keep us all waiting
            except OSError as exc:
                if exc.errno in ABSENT:
                    return b""
                raise
            try:
                return os.pread(fd, limit, offset) if stat.S_ISREG(os.fstat(fd).st_mode) else b""
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

    async def unpack(self, directory: str, files: Mapping[str, bytes], *, shared: Mapping[str, bytes]) -> None:
        """Here and now, as `get` reads: some small files take less time than a thread does."""
        with _translated(f"cannot write {directory}"):
            make_private(directory)
            share(directory, shared)
            for name, data in files.items():
                if name.endswith("/"):
                    make_private(f"{directory}/{name[:-1]}")
                else:
                    write(f"{directory}/{name}", data, sync=False)

    async def launch(self, argv: Sequence[str], *, stdin: bytes) -> bytes:
        with _translated(f"cannot run `{argv[0]}`"):
            return await self._apart.launch(argv, stdin)

    async def launch_runner(self, argv: Sequence[str], *, stdin: bytes, session: str) -> bytes:
        if not (boot := boot_id()):
            return await self.launch(argv, stdin=stdin)
        with _translated(f"cannot run `{argv[0]}`"):
            cgroup = self._new_cgroup(session) if session else ""
            try:
                said = await self._apart.launch([*argv, boot, cgroup], stdin, tell_start=True)
            except OSError:
                remove_cgroup(cgroup)
                raise
            if not said:  # it did not begin, or another did
                remove_cgroup(cgroup)
            return said

    def _new_cgroup(self, session: str) -> str:
        if not self._tidied:
            self._tidied = True
            remove_orphaned_cgroups(own_cgroup())
        return make_cgroup(session)

    def clear(self, directory: str) -> None:
        remove_cgroup(cgroup_of(directory))

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
            process = await _created(argv, stdin, stderr)
        except ValueError as exc:  # a NUL in a word
            raise TransportError(f"cannot run `{argv[0]}`: {exc}") from exc
    try:
        yield process
    finally:
        await _end(process)


async def _created(argv: Sequence[str], stdin: int, stderr: int) -> Process:
    """To be cancelled in the middle of it would leave what the program has started, and wait for that."""
    creating = asyncio.ensure_future(
        asyncio.create_subprocess_exec(*argv, stdin=stdin, stdout=PIPE, stderr=stderr, start_new_session=True)
    )
    try:
        return await asyncio.shield(creating)
    except asyncio.CancelledError:
        await _end(await creating)
        raise


async def _communicate(process: Process, program: str, stdin: bytes, course: Course) -> int:
    """Feed it, and collect what it prints as it comes: what was printed before a cancellation is not lost. Its code."""

    async def collect(reader: asyncio.StreamReader | None, into: bytearray) -> None:
        assert reader is not None
        while chunk := await reader.read(CHUNK):
            into += chunk
            if len(course.stdout) + len(course.stderr) > MOST_OUTPUT:
                raise too_much(program)

    async def feed(writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(BrokenPipeError, ConnectionResetError):  # it reads no more
            writer.write(stdin)
            await writer.drain()
        writer.close()

    feeding = [feed(process.stdin)] if process.stdin is not None else []
    await asyncio.gather(*feeding, collect(process.stdout, course.stdout), collect(process.stderr, course.stderr))
    return await process.wait()


async def _end(process: Process) -> None:
    """Kill its group, if it has not ended. The pipes are closed first: what left the group may hold them for long."""
    transport = process._transport  # type: ignore[attr-defined]  # there is no other way to its pipes
    if process.returncode is None:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        for pipe in map(transport.get_pipe_transport, range(3)):
            if pipe is not None:
                pipe.close()
        await asyncio.shield(process.wait())
    transport.close()  # the pipes of a killed program stay open otherwise


@contextlib.contextmanager
def _translated(what: str) -> Iterator[None]:
    try:
        yield
    except OSError as exc:
        error = HostFull if exc.errno in {errno.ENOSPC, errno.EDQUOT} else TransportError
        raise error(f"{what}: {exc.strerror}") from exc


def _put(path: str, data: bytes) -> None:
    make_private(os.path.dirname(path))
    write(path, data)
