"""A process that starts a session and reads from it, to be killed.

python session_parent.py ROOT SESSION SCRIPT SHELL...
"""

from __future__ import annotations

import asyncio
import sys

from fleet.hosts.launch_file import Rules
from fleet.hosts.local import LocalTransport
from fleet.hosts.session import HostedSession
from fleet.model.launch import Launch


async def main(root: str, name: str, script: str, *shell: str) -> None:
    """Print every line that was read, and after it the cursor, as a supervisor would commit the two together."""
    session = HostedSession(LocalTransport(), root, name, 1, shell=shell)
    await session.prepare(Launch(argv=("/bin/sh", "-c", script), cwd=root), Rules(use_cgroup=False))
    await session.start()
    async for line in session.lines(every_seconds=0.005):
        print(line.offset + len(line.data) + 1, line.data.decode(), flush=True)


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))
