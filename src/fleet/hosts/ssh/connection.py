"""One shared connection to a host: opened once, used by every exchange, and known to be the only one.

The first client leaves a master behind, which ends by itself once nobody uses it. Everything else is asked of that
master, by its socket.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import secrets
import socket
import stat
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from pathlib import Path

from fleet.config.environment import user_home
from fleet.config.files import make_private
from fleet.errors import HostUnfit, TransportError
from fleet.hosts.ssh import far, mux
from fleet.hosts.ssh.address import SshAddress, as_options, only_keys_of
from fleet.hosts.ssh.client import KEPT, failure, finished
from fleet.hosts.ssh.hostkey import alias, pin
from fleet.hosts.ssh.pipes import Pipes

PERSIST_SECONDS = 60
CHANNELS = 8  # at once on the connection; servers allow ten, and a stream or two are open all the time
OPENED_SECONDS = 0.02  # between two looks whether the first command has opened it
LONGEST_SOCKET = 80  # of about 100 that a socket's name may have; ssh adds some while it makes it


class NothingRan(TransportError):
    """The connection has gone, or all its sessions are in use: nothing was run, and it may be asked again."""


def private_folder(path: Path) -> Path:
    """A directory of ours alone, for sockets and pinned keys."""
    make_private(path)
    found = path.lstat()
    if not stat.S_ISDIR(found.st_mode) or found.st_uid != os.geteuid() or found.st_mode & 0o077:
        raise TransportError(f"{path} is not a directory of this user alone", hint="remove it, or set its mode to 700")
    return path


def socket_folder(environment: Mapping[str, str], temporary: str = "/tmp") -> Path:
    """Where the sockets of connections are kept: a short path, as their names have little room."""
    runtime = environment.get("XDG_RUNTIME_DIR", "")
    if runtime.startswith("/") and len(runtime) < LONGEST_SOCKET // 2 and _is_ours(runtime):
        return Path(runtime) / "fleet-ssh"
    usual, own = f"{temporary}/fleet-ssh-{os.geteuid()}", f"{user_home(environment)}/.cache/fleet-ssh"
    taken = os.path.lexists(usual) and not _is_ours(usual)  # anybody may make it there before we do
    return Path(own if taken and len(own) < LONGEST_SOCKET // 2 else usual)


def _is_ours(path: str) -> bool:
    """Whether it is a directory of this user, whoever the variables still speak of after `su`."""
    try:
        found = os.lstat(path)
    except OSError:
        return False
    return stat.S_ISDIR(found.st_mode) and found.st_uid == os.geteuid() and os.access(path, os.W_OK)


class Gate:
    """Lets so many through at a time, whichever event loop they come from, one loop after the other."""

    def __init__(self, width: int) -> None:
        self._width = width
        self._loop: asyncio.AbstractEventLoop | None = None
        self._gate = asyncio.Semaphore(width)

    def pass_(self) -> asyncio.Semaphore:
        """To be entered by `async with`."""
        loop = asyncio.get_running_loop()
        if loop is not self._loop:
            self._loop, self._gate = loop, asyncio.Semaphore(self._width)
        return self._gate


class Connection:
    """The way to one address. `folder` is ours alone and has a short name."""

    def __init__(self, address: SshAddress, folder: Path, environment: Mapping[str, str]) -> None:
        self.address = address
        self.sent = {name: environment[name] for name in address.variables if name in environment}
        self.environment = {name: environment[name] for name in KEPT if name in environment} | self.sent
        self._folder = folder
        self._socket = folder / address.key
        if len(os.fsencode(self._socket)) > LONGEST_SOCKET:
            raise TransportError(f"{folder} is too long a name for a directory of sockets")
        self._opening = Gate(1)
        self._greeted = not self.sent  # whether it is known what arrives over there
        self._first = False  # whether a command is on its way that opens it

    @contextlib.asynccontextmanager
    async def first(self) -> AsyncIterator[list[str] | None]:
        """The words by which a command opens the connection itself, without a greeting; None for all but the first.

        Nor where variables are sent: nothing may run before it is known that they arrive.
        """
        if self.sent or self._first or os.path.exists(self._socket):  # one that a killed master left costs a greeting
            yield None
            return
        self._first = True
        seconds = self.address.connect_seconds * 2
        try:
            async with asyncio.timeout(seconds) as limit:
                opened = asyncio.get_running_loop().call_later(seconds - 0.1, self._allow, limit)
                try:
                    yield await self._opening_words()
                finally:
                    opened.cancel()
        except TimeoutError as exc:
            raise TransportError(f"cannot reach host {self.address.host}: no answer within {seconds} s") from exc
        finally:
            self._first = False

    def _allow(self, limit: asyncio.Timeout) -> None:
        """The time is for the connection; a command that has one takes as long as it takes."""
        if self._answers():
            limit.reschedule(None)

    @contextlib.asynccontextmanager
    async def session(self, line: str) -> AsyncIterator[Pipes]:
        """A line that runs over there, once the connection is up, until we leave."""
        host = self.address.host
        try:
            async with mux.session(await self._master(), line, self.sent) as pipes:
                yield pipes
        except mux.NoMore as exc:
            raise NothingRan(
                f"host {host} allows no further session on the connection",
                hint=f"raise MaxSessions in its sshd_config; Fleet uses up to {CHANNELS + 2}",
            ) from exc
        except mux.NotAsked as exc:
            raise NothingRan(f"cannot reach host {host}: {exc}") from exc
        except mux.Stranger as exc:
            hint = f"use an ssh of OpenSSH that speaks version {mux.VERSION} of its multiplexing protocol"
            raise HostUnfit(f"cannot reach host {host}: {exc}", hint=hint) from exc
        except mux.TooLong as exc:
            raise TransportError(f"cannot run it on host {host}: {exc}") from exc
        except mux.MuxError as exc:
            raise failure(self.address, str(exc)) from exc

    def is_up(self) -> bool:
        """Whether something can have begun on it."""
        return self._answers()

    async def close(self) -> None:
        """End the connection, and with it whatever else uses it."""
        await mux.terminate(self._socket)

    async def _master(self) -> socket.socket:
        """Who keeps the connection, once it is known what arrives over there."""
        private_folder(self._folder)  # nobody else can have put a socket there
        if self._greeted:
            with contextlib.suppress(mux.NotAsked):
                return await mux.meet(self._socket)
        while self._first and not self._answers():
            await asyncio.sleep(OPENED_SECONDS)
        async with self._opening.pass_():
            if not self._answers():
                words = await self._opening_words()
                await self._greet(lambda line: finished([*words, line], self.environment))
            elif not self._greeted:  # another process made it, perhaps with other variables
                await self._greet(self._asked)
        return await mux.meet(self._socket)

    async def _asked(self, line: str) -> tuple[bytes, str]:
        """What a line printed and said on the connection that is there."""
        async with mux.session(await mux.meet(self._socket), line, self.sent) as pipes:
            stdout, stderr = await pipes.communicate(b"", hold=False)
        return stdout, stderr.decode("utf-8", "replace")

    def _answers(self) -> bool:
        """Whether a master is there. One that is gone may have left its socket."""
        with socket.socket(socket.AF_UNIX) as probe:
            probe.setblocking(False)
            try:
                probe.connect(os.fspath(self._socket))
            except BlockingIOError:  # there, with too many at its door
                return True
            except OSError:
                return False
            return True

    def _send(self) -> list[str]:
        return [word for name in self.sent for word in ("-o", f"SendEnv={name}")]

    async def _opening_words(self) -> list[str]:
        """The words that make the connection, to the machine that is meant."""
        address = self.address
        private_folder(self._folder)
        self._socket.unlink(missing_ok=True)  # of a master that is gone: nobody may open but who holds the lock
        believed = []
        if address.host_key_fingerprint:
            kept = await pin(address, self._folder, self.environment)
            believed = [*only_keys_of(kept), "-o", f"HostKeyAlias={alias(address)}"]
        elif address.known_hosts:
            believed = only_keys_of(Path(address.known_hosts).expanduser())
        shared = as_options(ControlMaster="yes", ControlPath=self._socket, ControlPersist=PERSIST_SECONDS)
        return ["ssh", *address.options(), *believed, *shared, *self._send(), "--", address.host]

    async def _greet(self, said_to: Callable[[str], Awaitable[tuple[bytes, str]]]) -> None:
        """Say hello, and see what arrives over there."""
        address = self.address
        mark = secrets.token_hex(8)
        line = far.line_for(far.exchange(mark, far.hello_body(tuple(self.sent))))
        try:
            async with asyncio.timeout(address.connect_seconds * 2):
                stdout, said = await said_to(line)
        except TimeoutError as exc:
            raise TransportError(
                f"cannot reach host {address.host}: no answer within {address.connect_seconds * 2} s"
            ) from exc
        answer = far.Answer(mark)
        printed = answer.printed(stdout)
        if answer.end(said.encode()) is None or printed is None:
            if mux.was_full(said):  # others were quicker to use what it has just opened
                raise mux.NoMore(said)
            raise self.no_answer(answer, stdout, said)
        arrived = far.hello_answer(printed)
        missing = [name for name, value in self.sent.items() if arrived.get(name) != os.fsencode(value)]
        self._greeted = not missing
        if missing:
            raise HostUnfit(
                f"host {address.host} does not accept {', '.join(missing)} of its env_allowlist",
                hint=f"add `AcceptEnv {' '.join(missing)}` to its sshd_config, or take the names off the list",
            )

    def no_answer(self, answer: far.Answer, stdout: bytes, said: str) -> TransportError:
        """The error for an exchange on a new connection that did not come to its end."""
        if stdout.strip() and answer.begin(stdout) is None:
            shown = stdout.strip()[:200].decode("utf-8", "replace")
            return HostUnfit(
                f"host {self.address.host} does not run commands with sh; it said {shown!r}",
                hint="the user's login shell must accept `exec sh -c ...`",
            )
        return failure(self.address, said)
