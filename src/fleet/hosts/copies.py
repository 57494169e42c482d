"""The copies of tasks' files that a host was given: which are there, what is in them, and their removal."""

from __future__ import annotations

from collections.abc import Iterable
from functools import cache
from importlib.resources import files

from fleet.errors import Conflict, TransportError
from fleet.hosts.transport import Transport

REFUSED = 3  # the exit code of copies.sh


class Copies:
    """Those in Fleet's own directory on one host. Conflict: they stay, and why."""

    def __init__(self, transport: Transport, state: str) -> None:
        self._transport = transport
        self._state = state

    async def names(self) -> tuple[str, ...]:
        """The tasks that no session, no worktree and nobody who is about to begin needs a copy for."""
        return tuple((await self._run("list")).splitlines())

    async def sums(self, task: str) -> dict[str, str]:
        """What is in the copy of one task: the sha256 of each file, by its name below the task's directory."""
        found = {}
        for line in (await self._run("sums", task)).splitlines():
            digest, told, name = line.partition("  ./")
            if not told or len(digest) != 64:  # sha256sum writes odd names in a way of its own
                raise Conflict(f"a file has a name that cannot be told: {line[:80]}")
            found[name] = digest
        return found

    async def take(self, task: str, names: Iterable[str]) -> None:
        """Remove these files of it, and all of it where nothing else is in it."""
        listed = "".join(f"{name}\n" for name in names)
        await self._run("take", task, stdin=listed.encode("utf-8", "surrogateescape"))

    async def _run(self, verb: str, *words: str, stdin: bytes = b"") -> str:
        done = await self._transport.run(["sh", "-c", _program(), "copies", verb, self._state, *words], stdin=stdin)
        said = done.stderr.decode("utf-8", "replace").strip()
        if done.code == REFUSED:
            raise Conflict(said.splitlines()[-1] if said else "it cannot be taken away")
        if done.code:
            raise TransportError(f"cannot {verb} the copies of tasks: {said or f'code {done.code}'}")
        return done.stdout.decode("utf-8", "surrogateescape")


@cache
def _program() -> str:
    return files("fleet.hosts").joinpath("copies.sh").read_text("utf-8")
