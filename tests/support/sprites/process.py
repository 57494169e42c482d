"""One command on a stand-in sprite: a real process that outlives its connections, and what is attached to it."""

from __future__ import annotations

import asyncio
import contextlib
import fcntl
import os
import pty
import shutil
import signal
import struct
import subprocess
import termios
import time
from collections.abc import Callable, Mapping, Sequence

from tests.support.sprites.wire import EXIT, STDOUT, as_time

CHUNK = 1 << 15
MOST_KEPT = 1 << 18  # bytes that an attachment which comes late is told again
SETTLE_SECONDS = 0.2  # for the pipes, when a child of the command holds them open
Piece = tuple[int, bytes]  # of a stream, or the code under EXIT


class Process:
    """One command. It begins in a process session of its own, as over there."""

    def __init__(self, argv: Sequence[str], *, tty: bool, linger_seconds: float, active: Callable[[], None]) -> None:
        self.argv = tuple(argv)
        self.tty = tty
        self.created = self.last_output = time.time()
        self.code: int | None = None
        self.exited = asyncio.Event()
        self.attached: set[asyncio.Queue[Piece]] = set()
        self.ended: Callable[[], None] = lambda: None
        self._linger_seconds = linger_seconds  # after the last attachment left; 0: for ever
        self._active = active
        self._kept: list[Piece] = []
        self._kept_bytes = self._bytes = 0
        self._reaper: asyncio.TimerHandle | None = None
        self._terminal: int | None = None
        self._stdin: asyncio.WriteTransport | None = None
        self._tasks: set[asyncio.Task[None]] = set()

    async def start(
        self, program: str, environment: Mapping[str, str], cwd: str, *, stdin: bool, rows: int, cols: int
    ) -> None:
        """Begin. OSError: there is no such program, or it cannot be run."""
        found = program if "/" in program else shutil.which(program, path=environment.get("PATH", "/usr/bin:/bin"))
        self.command = " ".join([found or program, *self.argv[1:]])
        self.cwd = cwd
        inner = self._open_terminal(rows, cols) if self.tty else None
        pipe = subprocess.PIPE
        try:
            self._popen = subprocess.Popen(
                self.argv,
                executable=found or program,
                stdin=inner if inner is not None else pipe if stdin else subprocess.DEVNULL,
                stdout=pipe if inner is None else inner,
                stderr=pipe if inner is None else inner,
                cwd=cwd,
                env=environment,
                start_new_session=True,
            )
        finally:
            if inner is not None:
                os.close(inner)
        self.id = str(self._popen.pid)
        readers = [] if self.tty else [await self._reader(self._popen.stdout), await self._reader(self._popen.stderr)]
        if self._popen.stdin is not None:
            loop = asyncio.get_running_loop()
            self._stdin, _ = await loop.connect_write_pipe(asyncio.BaseProtocol, self._popen.stdin)
        self._spawn(self._life(readers))

    async def _reader(self, pipe: object) -> asyncio.StreamReader:
        reader = asyncio.StreamReader()
        loop = asyncio.get_running_loop()
        await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), pipe)
        return reader

    async def _life(self, readers: list[asyncio.StreamReader]) -> None:
        pumps = [asyncio.create_task(self._pump(reader, STDOUT + at)) for at, reader in enumerate(readers)]
        if self._terminal is not None:
            pumps.append(asyncio.create_task(self._pump_terminal(self._terminal)))
        await self._gone()
        _, late = await asyncio.wait(pumps, timeout=SETTLE_SECONDS)
        for each in late:
            each.cancel()
        await asyncio.gather(*late, return_exceptions=True)
        for reader in readers:
            reader._transport.close()  # type: ignore[attr-defined]
        self.end_input()
        if self._terminal is not None:
            os.close(self._terminal)
            self._terminal = None
        code = self._popen.returncode
        self.code = code if code >= 0 else 128 - code
        if self._reaper:
            self._reaper.cancel()
        self.ended()
        for queue in self.attached:
            queue.put_nowait((EXIT, bytes([self.code & 0xFF])))
        self.exited.set()

    async def _gone(self) -> None:
        """Wait for the process alone: what it started may keep the pipes."""
        loop, gone = asyncio.get_running_loop(), asyncio.Event()
        handle = os.pidfd_open(self._popen.pid)
        loop.add_reader(handle, gone.set)
        try:
            await gone.wait()
        finally:
            loop.remove_reader(handle)
            os.close(handle)
        self._popen.wait()

    async def _pump(self, reader: asyncio.StreamReader, stream: int) -> None:
        while data := await reader.read(CHUNK):
            self._emit(stream, data)

    def _open_terminal(self, rows: int, cols: int) -> int:
        self._terminal, inner = pty.openpty()
        os.set_blocking(self._terminal, False)
        self.resize(rows, cols)
        return inner

    async def _pump_terminal(self, terminal: int) -> None:
        loop, ready = asyncio.get_running_loop(), asyncio.Event()
        loop.add_reader(terminal, ready.set)
        try:
            while True:
                await ready.wait()
                ready.clear()
                try:
                    self._emit(STDOUT, os.read(terminal, CHUNK))
                except BlockingIOError:
                    continue
                except OSError:  # nobody has the other side open
                    return
        finally:
            loop.remove_reader(terminal)

    def _emit(self, stream: int, data: bytes) -> None:
        self.last_output = time.time()
        self._active()
        self._bytes += len(data)
        self._kept.append((stream, data))
        self._kept_bytes += len(data)
        while self._kept_bytes > MOST_KEPT and len(self._kept) > 1:
            self._kept_bytes -= len(self._kept.pop(0)[1])
        for queue in self.attached:
            queue.put_nowait((stream, data))

    # what comes from outside

    def write(self, data: bytes) -> None:
        """Give it something to read. One that reads no more is no error."""
        if self._terminal is not None:
            os.write(self._terminal, data)
        elif self._stdin is not None and not self._stdin.is_closing():
            self._stdin.write(data)

    def end_input(self) -> None:
        """It has nothing more to read."""
        if self._stdin is None:
            return
        if self._popen.returncode is None:
            self._stdin.close()  # when all is written
        elif not self._stdin.is_closing() or self._stdin.get_write_buffer_size():
            self._stdin.abort()

    def resize(self, rows: int, cols: int) -> None:
        """Change the size of its terminal."""
        if self._terminal is not None:
            fcntl.ioctl(self._terminal, termios.TIOCSWINSZ, struct.pack("HHHH", rows, cols, 0, 0))

    def signal(self, name: str) -> None:
        """To its process group."""
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self._popen.pid, signal.Signals[name if name.startswith("SIG") else f"SIG{name}"])

    def attach(self) -> asyncio.Queue[Piece]:
        """All that is kept of its output, and then what comes."""
        if self._reaper:
            self._reaper.cancel()
        queue: asyncio.Queue[Piece] = asyncio.Queue()
        for piece in self._kept:
            queue.put_nowait(piece)
        if self.code is not None:
            queue.put_nowait((EXIT, bytes([self.code & 0xFF])))
        self.attached.add(queue)
        return queue

    def detach(self, queue: asyncio.Queue[Piece]) -> None:
        """It may run on for a while without anybody."""
        self.attached.discard(queue)
        self.let_linger()

    def let_linger(self) -> None:
        """Where nobody is attached, it has so long from now."""
        if not self.attached and self.code is None and self._linger_seconds:
            self._reaper = asyncio.get_running_loop().call_later(self._linger_seconds, self.signal, "KILL")

    def told(self) -> dict[str, object]:
        """As the list of sessions shows it."""
        return {
            "id": self.id,
            "command": self.command,
            "workdir": self.cwd,
            "created": as_time(self.created),
            "bytes_per_second": self._bytes / max(time.time() - self.created, 1),
            "is_active": time.time() - self.last_output < 5,
            "last_activity": as_time(self.last_output),
            "tty": self.tty,
        }

    def _spawn(self, work: object) -> None:
        task = asyncio.ensure_future(work)  # type: ignore[call-overload]
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
