"""The supervisor's own log: `logs/fleet-<date>.jsonl`, a line of JSON for each thing worth knowing afterwards."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec

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
        line = msgspec.json.encode({"at": stamp, "event": event, **fields})
        with contextlib.suppress(OSError):
            self._directory.mkdir(mode=0o700, parents=True, exist_ok=True)
            with (self._directory / f"fleet-{stamp[:10]}.jsonl").open("ab") as file:
                file.write(line + b"\n")
        if self._echo is not None:
            self._echo(event, fields)
