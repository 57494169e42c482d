"""What git says of a workspace."""

from __future__ import annotations

from fleet.hosts.transport import Transport


async def commit(transport: Transport, directory: str) -> str | None:
    """The commit that a workspace stands at; None where it is no repository, has no commit, or git is not there."""
    words = ["sh", "-c", 'exec git -C "$1" rev-parse --verify --quiet HEAD', "git", directory]
    done = await transport.run(words)
    said = done.stdout.decode("ascii", "replace").strip()
    return said if done.code == 0 and said else None
