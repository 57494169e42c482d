"""The supervisor's own log: `logs/fleet-<date>.jsonl`, a line of JSON for each thing worth knowing afterwards."""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec

from fleet.config.files import make_private

Echo = Callable[[str, dict[str, Any]], object]


class Journal:
    """Appends lines; begins a new file each day. A log that cannot be written stops nothing. `echo` hears each too."""

    def __init__(self, directory: Path, echo: Echo | None = None) -> None:
        self._directory = directory
        self._echo = echo

    def write(self, event: str, **fields: Any) -> None:
        """One line."""
        now = time.time()
        stamp = time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(now)) + f".{int(now % 1 * 1000):03}Z"
        try:
            line = msgspec.json.encode({"at": stamp, "event": event, **fields})
        except (TypeError, ValueError):  # such as the name of a file that is no text
            line = msgspec.json.encode({"at": stamp, "event": event, **{key: ascii(it) for key, it in fields.items()}})
        with contextlib.suppress(OSError):
            _append(f"{self._directory}/fleet-{stamp[:10]}.jsonl", line + b"\n")
        if self._echo is not None:
            self._echo(event, fields)


def _append(path: str, data: bytes) -> None:
    how = os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC
    try:
        fd = os.open(path, how, 0o600)
    except FileNotFoundError:
        make_private(os.path.dirname(path))
        fd = os.open(path, how, 0o600)
    try:
        os.write(fd, data)
    finally:
        os.close(fd)
