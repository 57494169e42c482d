"""One shared connection to a host: opened once, used by every exchange, and known to be the only one.

The first client leaves a master behind, which ends by itself once nobody uses it. All others speak to its socket; one
that cannot does not make a connection of its own.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import secrets
import socket
import stat
from collections.abc import AsyncIterator, Mapping
from pathlib import Path

from fleet.errors import HostUnfit, TransportError
from fleet.hosts.ssh import far
from fleet.hosts.ssh.address import SshAddress, as_options, only_keys_of
from fleet.hosts.ssh.client import KEPT, failure, finished
from fleet.hosts.ssh.hostkey import alias, pin

PERSIST_SECONDS = 60
NOT_SHARED = "fleet-no-shared-connection"
OPENED_SECONDS = 0.02  # between two looks whether the first command has opened it
LONGEST_SOCKET = 80  # of about 100 that a socket's name may have; ssh adds some while it makes it


def was_not_asked(said: str) -> bool:
    """Whether a client found nobody at the socket, and so has asked nobody for anything. It may be tried again."""
    return NOT_SHARED in said and "mux_client_request_session" not in said


def was_refused(said: str) -> bool:
    """Whether the server took no further session on the connection, and so has run nothing."""
    return "session open refused by peer" in said.lower()


def private_folder(path: Path) -> Path:
    """A directory of ours alone, for sockets and pinned keys."""
    path.mkdir(mode=0o700, parents=True, exist_ok=True)
    found = path.lstat()
    if not stat.S_ISDIR(found.st_mode) or found.st_uid != os.geteuid() or found.st_mode & 0o077:
        raise TransportError(f"{path} is not a directory of this user alone", hint="remove it, or set its mode to 700")
    return path


def socket_folder(environment: Mapping[str, str]) -> Path:
    """Where the sockets of connections are kept: a short path, as their names have little room."""
    runtime = environment.get("XDG_RUNTIME_DIR", "")
    if runtime.startswith("/") and len(runtime) < LONGEST_SOCKET // 2 and os.access(runtime, os.W_OK):
        return Path(runtime) / "fleet-ssh"
    return Path(f"/tmp/fleet-ssh-{os.geteuid()}")


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
        if self.sent or self._first or self._answers():
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

    async def argv(self, line: str) -> list[str]:
        """The words that run a line over there, once the connection is up."""
        while self._first and not self._answers():
            await asyncio.sleep(OPENED_SECONDS)
        if not self._greeted or not self._answers():
            async with self._opening.pass_():
                if not self._answers():
                    await self._greet(await self._opening_words())
                elif not self._greeted:  # another process made it, perhaps with other variables
                    await self._greet(self._shared_words())
        return [*self._shared_words(), line]

    async def close(self) -> None:
        """End the connection, and with it whatever else uses it."""
        if self._answers():
            argv = ["ssh", "-F", "none", "-o", f"ControlPath={self._socket}", "-O", "exit", "--", self.address.host]
            await finished(argv, self.environment)

    def _answers(self) -> bool:
        """Whether a master is there. One that is gone may have left its socket."""
        with socket.socket(socket.AF_UNIX) as probe:
            probe.setblocking(False)
            try:
                probe.connect(os.fspath(self._socket))
            except OSError:
                return False
            return True

    def _send(self) -> list[str]:
        return [word for name in self.sent for word in ("-o", f"SendEnv={name}")]

    def _shared_words(self) -> list[str]:
        """Without its socket a client would connect by itself: it is given a way that leads nowhere, and says so."""
        nowhere = f"sh -c 'echo {NOT_SHARED} >&2'"
        options = as_options(ControlMaster="no", ControlPath=self._socket, ProxyCommand=nowhere, LogLevel="ERROR")
        return ["ssh", "-F", "none", "-T", "-x", "-a", *options, *self._send(), "--", self.address.host]

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

    async def _greet(self, words: list[str]) -> None:
        """Say hello, and see what arrives over there."""
        address = self.address
        mark = secrets.token_hex(8)
        line = far.line_for(far.exchange(mark, far.hello_body(tuple(self.sent))))
        try:
            async with asyncio.timeout(address.connect_seconds * 2):
                stdout, said = await finished([*words, line], self.environment)
        except TimeoutError as exc:
            raise TransportError(
                f"cannot reach host {address.host}: no answer within {address.connect_seconds * 2} s"
            ) from exc
        answer = far.Answer(mark)
        if answer.end(said.encode()) is None:
            raise self.no_answer(answer, stdout, said)
        arrived = far.hello_answer(answer.begin(stdout) or b"")
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
