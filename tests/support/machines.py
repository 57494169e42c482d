"""Fleets of real machines for the tests: one sshd on several loopback addresses, and what fleet.toml says of them."""

from __future__ import annotations

import contextlib
import getpass
from collections.abc import Iterator, Mapping
from pathlib import Path

from tests.support.cli import Cli
from tests.support.sprites.machine import Machine
from tests.support.sprites.server import TOKEN, StandIn
from tests.support.sshd import Sshd, sshd

SEEDS = Path(__file__).parent.parent.parent / "examples" / "seeds"
SEED_CONFIG, SEED_NAMES = SEEDS / "000-config.yaml", SEEDS / "000-names.txt"


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


def manager(cli: Cli, server: StandIn) -> list[Machine]:
    """The eight sprites of the first Fleet Manager, its configuration and its names taken over; all asleep."""
    made = [server.sprite(line.split(" = ")[0]) for line in SEED_NAMES.read_text().splitlines() if " = " in line]
    for machine in made:
        furnish(machine)
        machine.status = "warm"
    cli.ok("config", "import", str(SEED_CONFIG), "--names", str(SEED_NAMES))
    sprites(cli, server)
    return made


def sprites(cli: Cli, server: StandIn) -> None:
    """Sprites are asked for at the stand-in, with a token that it takes."""
    cli.ok("config", "set", f"sprites.url={server.url}")
    cli.env["SPRITES_API_TOKEN"] = TOKEN


def furnish(machine: Machine) -> None:
    """What a sprite has of its own here: its name, a coder, a program that updates itself, a file of secrets."""
    place = machine.home / ".local" / "bin"
    place.mkdir(parents=True, exist_ok=True)
    (machine.home / ".env.secrets").write_text("A=1\nB=2\n")
    (machine.home / "infisical").write_text("infisical version 0.41.0\n")
    for name, text in {
        "hostname": f"echo {machine.name}",
        "claude": "echo 2.0.1",
        "infisical": 'cat "$HOME/infisical"',
        "cloudflared": 'if [ "$1" = update ]; then echo updated >&2; else echo cloudflared version 2026.2.0; fi',
    }.items():
        (place / name).write_text(f"#!/bin/sh\n{text}\n")
        (place / name).chmod(0o755)
