"""A process that runs a program over ssh, to be killed: python ssh_parent.py DIRECTORY PORT FILE-FOR-ITS-PID."""

from __future__ import annotations

import asyncio
import getpass
import os
import sys
from pathlib import Path

from fleet.hosts.ssh.address import SshAddress
from fleet.hosts.ssh.transport import SshTransport


async def main(directory: str, port: str, file: str) -> None:
    """Run a program that would never end."""
    address = SshAddress(
        host="127.0.0.1",
        user=getpass.getuser(),
        port=int(port),
        identity=f"{directory}/identity",
        known_hosts=f"{directory}/known_hosts",
        ssh_config="/dev/null",
    )
    transport = SshTransport(address, Path(directory) / "s", {"PATH": os.environ["PATH"]})
    await transport.run(["sh", "-c", 'echo $$ >"$0"; exec sleep 1000', file])


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))
