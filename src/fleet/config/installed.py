"""What `fleet service install` has put on this machine for a home: `service.json`, kept in the home."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

import msgspec

from fleet.config.files import failed, make_private, read_bytes, write_atomic
from fleet.config.home import Home
from fleet.errors import HomeError

By = Literal["systemd", "cron"]
Scope = Literal["user", "system"]


class Job(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Something that is done for the home without anybody asking."""

    name: Literal["health", "pool-check", "supervisor"]
    every: str  # as Every writes it; empty for what runs all the time
    program: str  # what runs it: a small script
    log: str = ""


class Installed(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Everything that was put there. Paths are as the machine sees them, wherever its root lies now."""

    home: str
    by: By
    scope: Scope
    user: str
    jobs: tuple[Job, ...]
    files: tuple[str, ...] = ()  # links among them
    directories: tuple[str, ...] = ()  # that were made for the files, the outermost first
    crontab_made: bool = False  # whether the user had none before


def read(home: Home) -> Installed | None:
    """What is installed for this home, or None."""
    path = _path(home)
    data = read_bytes(path)
    if data is None:
        return None
    try:
        return msgspec.json.decode(data, type=Installed)
    except (msgspec.ValidationError, msgspec.DecodeError) as exc:
        raise HomeError(f"{path} cannot be read: {exc}", hint="a newer Fleet wrote it, or somebody edited it") from exc


def write(home: Home, installed: Installed) -> None:
    """Keep it, in the place of what was kept before. Below another root the home need not be there yet."""
    try:
        make_private(home.path)
    except OSError as exc:
        raise failed(exc, "make", home.path) from exc
    write_atomic(_path(home), msgspec.json.format(msgspec.json.encode(installed)), mode=0o600)


def forget(home: Home) -> None:
    """Nothing is installed any more."""
    try:
        _path(home).unlink(missing_ok=True)
    except OSError as exc:
        raise failed(exc, "remove", _path(home)) from exc


def _path(home: Home) -> Path:
    return home.path / "service.json"
