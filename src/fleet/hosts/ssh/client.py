"""The system's ssh client as a process of ours: started, ended with us, and what it says when it fails."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import tempfile
from asyncio.subprocess import PIPE, Process
from collections.abc import AsyncIterator, Mapping, Sequence
from typing import IO

from fleet.errors import HostUnfit, HostUntrusted, TransportError
from fleet.hosts.ssh.address import SshAddress

# What a client may know of us: where keys, agents and programs are.
KEPT = ("HOME", "PATH", "USER", "LOGNAME", "SHELL", "SSH_AUTH_SOCK", "KRB5CCNAME", "TMPDIR", "XDG_RUNTIME_DIR")
UNTRUSTED = ("host key verification failed", "host identification has changed", "no matching host key type")
LONGEST_REASON = 400


@contextlib.asynccontextmanager
async def client(argv: Sequence[str], environment: Mapping[str, str], *, stderr: IO[bytes]) -> AsyncIterator[Process]:
    """A client that is killed if we leave before its end. Its stdin is ours to close."""
    try:
        process = await asyncio.create_subprocess_exec(
            *argv, stdin=PIPE, stdout=PIPE, stderr=stderr, env=environment, start_new_session=True
        )
    except FileNotFoundError as exc:
        raise HostUnfit(
            "the ssh client is not installed on this machine", hint="install the client of OpenSSH"
        ) from exc
    except (OSError, ValueError) as exc:
        raise TransportError(f"cannot run ssh: {exc}") from exc
    try:
        yield process
    finally:
        running = process.returncode is None
        if running:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            assert process.stdin is not None
            if not process.stdin.transport.is_closing():
                process.stdin.transport.abort()  # what was not taken of it never will be
        transport = process._transport  # type: ignore[attr-defined]  # there is no other way to its pipes
        if running:
            # Before the wait, which is for the pipes too: the shared connection's process has its copies of them.
            for pipe in map(transport.get_pipe_transport, range(3)):
                if pipe is not None:
                    pipe.close()
            await asyncio.shield(process.wait())
        transport.close()  # not before the wait: it would take the end of the client from who watches for it


async def finished(argv: Sequence[str], environment: Mapping[str, str]) -> tuple[bytes, str]:
    """What a client printed by its end, and what it said. Not by a pipe: a shared connection may keep that open."""
    with tempfile.TemporaryFile() as said:
        async with client(argv, environment, stderr=said) as process:
            stdout, _ = await process.communicate()
        said.seek(0)
        return stdout, said.read().decode("utf-8", "replace")


def failure(address: SshAddress, said: str) -> TransportError:
    """The error for what ssh said on stderr: its last line tells the reason."""
    lines = [line.strip() for line in said.replace("\r", "\n").split("\n") if line.strip()]
    reason = lines[-1][:LONGEST_REASON] if lines else "the connection ended"
    text = f"cannot reach host {address.host}: {reason}"
    lower = said.lower()
    if any(word in lower for word in UNTRUSTED):
        return HostUntrusted(text, hint=f"compare the host's key, then add it: ssh-keyscan {address.host}")
    return TransportError(text, hint=f"try it by hand: ssh -o BatchMode=yes {address.host} true")
