"""Fleets of real machines for the tests: one sshd on several loopback addresses, and what fleet.toml says of them."""

from __future__ import annotations

import contextlib
import getpass
from collections.abc import Iterator, Mapping

from tests.support.cli import Cli
from tests.support.sshd import Sshd, sshd


@contextlib.contextmanager
def several(addresses: int) -> Iterator[Sshd]:
    """A server that listens on so many addresses of 127/8: to Fleet each is a machine of its own."""
    with sshd(options={"MaxStartups": "200", "MaxSessions": "50"}) as server:
        first, *others = [f"127.0.0.{number}:{server.port}" for number in range(1, addresses + 1)]
        server.stop()
        server.options["ListenAddress"] = "\n".join([first, *(f"ListenAddress {each}" for each in others)])
        server.start()
        yield server


def ssh_host(server: Sshd, name: str, number: int = 1, **fields: str) -> str:
    """A [[hosts]] of kind ssh, at one of the server's addresses."""
    given = {
        "name": name,
        "kind": "ssh",
        "host": f"127.0.0.{number}",
        "user": getpass.getuser(),
        "identity": str(server.identity),
        "host_key_fingerprint": server.fingerprint(),
        "ssh_config": "/dev/null",
        "working_directory": str(server.home),
        "agent_binary": "sh",
        **fields,
    }
    return table(given) + f"port = {server.port}\n"


def local_host(name: str, **fields: str) -> str:
    """A [[hosts]] of this machine."""
    return table({"name": name, "kind": "local", **fields})


def table(fields: Mapping[str, str]) -> str:
    """A [[hosts]] of strings."""
    return "\n".join(["", "[[hosts]]", *(f'{name} = "{value}"' for name, value in fields.items())]) + "\n"


def declare(cli: Cli, *hosts: str, server: Sshd | None = None) -> None:
    """Give somebody's home these hosts. The sockets of connections stay in the server's own directory."""
    with cli.home.toml.open("a") as file:
        file.write("".join(hosts))
    if server is not None:
        (server.directory / "run").mkdir(mode=0o700, exist_ok=True)
        cli.env["XDG_RUNTIME_DIR"] = str(server.directory / "run")
