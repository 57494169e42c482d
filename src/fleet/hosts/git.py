"""What git says of a workspace."""

from __future__ import annotations

import re

from fleet.hosts.transport import SupportsPeek, Transport

COMMIT = re.compile(rb"(?:[0-9a-f]{40}|[0-9a-f]{64})\n?")
LONGEST = 1024


async def commit(transport: Transport, directory: str) -> str | None:
    """The commit that a workspace stands at; None where it is no repository, has no commit, or git is not there."""
    if isinstance(transport, SupportsPeek):
        repository = await _repository(transport, await transport.real(directory))
        if repository is None:
            return None
        found = await _head(transport, repository)
        if found is not None:
            return found
    words = ["sh", "-c", 'exec git -C "$1" rev-parse --verify --quiet HEAD', "git", directory]
    done = await transport.run(words)
    said = done.stdout.decode("ascii", "replace").strip()
    return said if done.code == 0 and said else None


async def _repository(transport: Transport, directory: str) -> str | None:
    """The nearest `.git` upward, without a program; None: there is none."""
    at = directory.rstrip("/")
    while True:
        for name in (".git/HEAD", ".git"):  # a directory, or a file as a worktree has
            if await transport.get(f"{at}/{name}", limit=1):
                return f"{at}/.git"
        if not at:
            return None
        at = at.rpartition("/")[0]


async def _head(transport: Transport, repository: str) -> str | None:
    """The commit, where it stands in plain files; None: git must be asked."""
    head = await transport.get(f"{repository}/HEAD", limit=LONGEST)
    if head.startswith(b"ref: refs/") and b".." not in head:
        head = await transport.get(f"{repository}/{head[5:].decode().strip()}", limit=LONGEST)
    return head.decode().strip() if COMMIT.fullmatch(head) else None
