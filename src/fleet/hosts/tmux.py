"""A pane of tmux on a host: what it shows, and how text and keys get into it."""

from __future__ import annotations

import os

from fleet.errors import TransportError, UsageError
from fleet.hosts.transport import Completed, Transport

WAYWARD = {code for code in range(32) if code not in (9, 10)} | set(range(127, 160))  # they would be keys, not text
LONGEST = 1 << 20


class Tmux:
    """One server: the worker's own, or the machine's only one. Every verb is one command there."""

    def __init__(self, transport: Transport, socket: str = "") -> None:
        self._transport = transport
        self.argv: tuple[str, ...] = ("tmux", "-u", "-f", "/dev/null", *(("-L", socket) if socket else ()))

    async def run(self, *words: str, stdin: bytes = b"") -> Completed:
        """One command. TransportError: the host did not answer."""
        return await self._transport.run([*self.argv, *words], stdin=stdin)

    async def screen(self, pane: str) -> str:
        """What a person who looks at the pane sees. TransportError: there is no such pane."""
        return (await self._told("capture-pane", "-p", "-t", pane)).decode("utf-8", "replace")

    async def history(self, pane: str, lines: int) -> str:
        """What went through the pane, the newest last."""
        return (await self._told("capture-pane", "-p", "-J", "-S", f"-{lines}", "-t", pane)).decode("utf-8", "replace")

    async def keys(self, pane: str, *keys: str) -> None:
        """Press keys, by their names."""
        await self._told("send-keys", "-t", pane, *keys)

    async def paste(self, pane: str, text: str) -> None:
        """Put a text into the pane as one piece: a program that understands that does not take its lines for Enter.

        A pane that was scrolled would take it for commands: it is brought back to its program first.
        """
        data = checked(text).encode()
        await self._leave_mode(pane)
        buffer = f"fleet-{os.getpid()}"
        await self._told("load-buffer", "-b", buffer, "-", stdin=data)
        await self._told("paste-buffer", "-p", "-d", "-b", buffer, "-t", pane)

    async def press(self, pane: str, *keys: str) -> None:
        """Press keys in the program of the pane, also when somebody has scrolled it."""
        await self._leave_mode(pane)
        await self.keys(pane, *keys)

    async def _leave_mode(self, pane: str) -> None:
        told = await self._told("display-message", "-p", "-t", pane, "#{pane_in_mode}")
        if told.strip() not in (b"0", b""):
            await self._told("send-keys", "-t", pane, "-X", "cancel")

    async def _told(self, *words: str, stdin: bytes = b"") -> bytes:
        done = await self.run(*words, stdin=stdin)
        if done.code:
            said = done.stderr.decode("utf-8", "replace").strip() or f"code {done.code}"
            raise TransportError(f"tmux {words[0]}: {said}")
        return done.stdout


def checked(text: str) -> str:
    """A text that can be pasted: no character in it is a key or a command to the terminal."""
    text = text.replace("\r\n", "\n")
    found = next((char for char in text if ord(char) in WAYWARD), None)
    if found is not None:
        raise UsageError(f"the text has a control character in it (0x{ord(found):02x})", hint="leave it out")
    if not text.strip():
        raise UsageError("the text is empty")
    if len(text.encode()) > LONGEST:
        raise UsageError(f"the text has more than {LONGEST} bytes", hint="put it in a file of the repository")
    return text
