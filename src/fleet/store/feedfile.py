"""`queue.json`: how the outside queue answered when a supervisor last looked, for those who only read."""

from __future__ import annotations

import contextlib
import os

import msgspec

from fleet.config.clock import utc_ms
from fleet.config.files import private
from fleet.config.home import Home

NAME = "queue.json"


class Feed(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The last look: when it was, since when it is so, and what went wrong."""

    at: int
    since: int
    left: int = 0  # ready there, for which there was no room
    error: str = ""


def write(home: Home, *, left: int = 0, error: str = "") -> None:
    """Note the last look. A note that cannot be written stops nothing: the queue goes on."""
    now = utc_ms()
    before = read(home)
    same = before is not None and before.error == error
    made = Feed(at=now, since=before.since if same and before else now, left=left, error=error)
    temporary = home.path / f".{NAME}.{os.getpid()}"
    with contextlib.suppress(OSError):
        with open(temporary, "wb", opener=private) as file:
            file.write(msgspec.json.encode(made) + b"\n")
        temporary.replace(home.path / NAME)


def read(home: Home) -> Feed | None:
    """The last look; None when there was none."""
    try:
        return msgspec.json.decode((home.path / NAME).read_bytes(), type=Feed)
    except (OSError, msgspec.DecodeError):
        return None
