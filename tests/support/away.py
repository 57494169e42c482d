"""Workers on a real sshd: a home whose supervisor reaches another machine, which is a directory of this one."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from fleet.model.session import name_there
from tests.support.inhouse import InHouse
from tests.support.session_host import processes_with
from tests.support.sshd import Sshd


def reach(server: Sshd, directory: Path, **fields: Any) -> dict[str, Any]:
    """How the machine is reached, in the words of fleet.toml and of specs."""
    address = server.address()
    directory.mkdir(exist_ok=True)
    given = {
        "kind": "ssh",
        "host": address.host,
        "user": address.user,
        "port": address.port,
        "identity": address.identity,
        "known_hosts": address.known_hosts,
        "ssh_config": address.ssh_config,
        "working_directory": str(directory),
        "agent_binary": "/bin/sh",
    }
    return given | fields


def table(name: str, fields: dict[str, Any]) -> str:
    """A table of an array in fleet.toml."""
    return "\n".join([f"[[{name}]]", *(f"{key} = {json.dumps(value)}" for key, value in fields.items()), ""])


class Away(InHouse):
    """A home with workers on one server, each host a directory of its own."""

    def __init__(self, path: Path, server: Sshd, monkeypatch: pytest.MonkeyPatch, **settings: Any) -> None:
        self.server = server
        self.far = path / "far"
        self.tables: list[str] = []
        monkeypatch.setenv("XDG_RUNTIME_DIR", str(server.directory))  # its own connections, gone with the server
        super().__init__(path, **settings)

    def set(self, **settings: Any) -> None:
        super().set(**settings)
        with self.home.toml.open("a") as file:
            file.write("\n".join(["", *self.tables]))

    def declare(self, name: str = "builder", *, directory: str = "", **fields: Any) -> str:
        """A host of fleet.toml; returns its working directory."""
        place = self.far.with_name(directory or self.far.name)
        self.tables.append(table("hosts", {"name": name, **reach(self.server, place, **fields)}))
        self.set()
        return str(place)

    def session(self, uid: str, number: int = 1) -> str:
        """The id of a task's session over there."""
        return self.store.sessions(task=uid)[number - 1].id

    def there(self, uid: str) -> str:
        """What a task is called over there."""
        return name_there(self.session(uid))

    def places(self) -> list[Path]:
        return [*super().places(), self.far]

    def left_there(self) -> list[int]:
        """The processes of sessions on the other machine."""
        return processes_with(str(self.far).encode())
