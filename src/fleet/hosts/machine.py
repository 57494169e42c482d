"""Which machine this is, so that a directory named in a task is not looked for on another one."""

from __future__ import annotations

import socket
from pathlib import Path

from fleet.model.host import LOCAL


def local_host() -> str:
    """The name of this machine as a host: `local@` and a number that outlives a change of its name."""
    for known in ("/etc/machine-id", "/var/lib/dbus/machine-id"):
        try:
            number = Path(known).read_text("ascii").strip()
        except (OSError, UnicodeDecodeError):
            continue
        if number:
            return f"{LOCAL}{number[:12]}"
    return f"{LOCAL}{socket.gethostname()}"
