"""Make a home, take over an older one, repair a damaged one. Deletes nothing and truncates nothing."""

from __future__ import annotations

import os
import stat
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path

import msgspec

from fleet.config import tokens
from fleet.config.edit import lock_path, new_draft
from fleet.config.files import failed, locked, make_private, sync_directory, write_atomic
from fleet.config.home import Home, refuse_root_elsewhere
from fleet.config.load import load
from fleet.config.runtime import Runtime, read_runtime
from fleet.errors import ConfigError, HomeError


class Prepared(msgspec.Struct, frozen=True):
    """What was done to a home."""

    created: bool
    notes: list[str]


def prepare(
    home: Home,
    *,
    force: bool = False,
    open_store: Callable[[bool], list[str]] | None = None,
    init_beads: Callable[[bool], str | None] | None = None,
    owner: str = "",
) -> Prepared:
    """Make what is missing of a home. A second time does nothing; `force` also repairs what is damaged.

    The store and beads come last, when fleet.toml can be read: `open_store` makes the database, `init_beads`
    the queue of bd where that is the source; both get `force` and may have something to tell. The `owner`, where
    one is named, gets a token for the API.
    """
    refuse_root_elsewhere(home)
    created = not home.exists
    _make_directories(home)
    with locked(lock_path(home)):
        notes = _restrict(home, force=force) + _settle_toml(home, force=force)
    try:
        load(home)
    except ConfigError as exc:
        raise ConfigError(
            str(exc), hint=f"{exc.hint}; `fleet init --force` keeps it aside and writes a new one"
        ) from exc
    if open_store:
        notes += open_store(force)
    if owner and not home.tokens.exists():
        tokens.add(home, _printable(owner), tokens.Role.ADMIN)
    if init_beads:
        notes += filter(None, [init_beads(force)])
    return Prepared(created, notes)


def keep_out_of_git(home: Home) -> None:
    """Make git ignore a home that lies in a repository, whatever the repository says."""
    path = home.path / ".gitignore"
    if not path.exists():
        write_atomic(path, b"*\n", mode=0o644)


def _printable(name: str) -> str:
    """A person's name on this machine, as the name of a token."""
    return "".join(char if char.isascii() and char.isalnum() else "-" for char in name).strip("-")[:64] or "owner"


def _make_directories(home: Home) -> None:
    if not home.path.is_dir():
        _make(home.path)
    for directory in (home.logs, home.tasks, home.sessions, home.bells, home.leases):
        if not directory.is_dir():
            _make(directory)


def _make(directory: Path) -> None:
    try:
        make_private(directory)
        sync_directory(directory.parent)
    except OSError as exc:
        raise failed(exc, "make", directory) from exc


def _restrict(home: Home, *, force: bool) -> list[str]:
    """Keep others out: with force by changing modes, else by saying what is open."""
    notes = []
    for path, mode in ((home.path, 0o700), *((each, 0o600) for each in home.private)):
        if not path.exists() or not (present := stat.S_IMODE(path.stat().st_mode)) & 0o077:
            continue
        if not force:
            notes.append(f"others may look into {path} (mode {present:04o}); `fleet init --force` closes it")
            continue
        try:
            path.chmod(mode)
        except OSError as exc:
            raise failed(exc, "change the mode of", path) from exc
        notes.append(f"the mode of {path} was {present:04o} and is {mode:04o} now")
    return notes


def _settle_toml(home: Home, *, force: bool) -> list[str]:
    """Write fleet.toml where it is missing or, with force, broken."""
    notes: list[str] = []
    if home.toml.exists():
        if not force or not (fault := _fault(home)):
            return notes
        aside = _keep_aside(home.toml)
        notes.append(f"fleet.toml was broken ({fault.splitlines()[0]}); it is kept as {aside.name}, a new one was made")
    runtime, faults = _runtime(home, force=force)
    write_atomic(home.toml, new_draft(runtime).text.encode())
    return notes + faults + _adopted(home, runtime)


def _fault(home: Home) -> str:
    try:
        load(home)
    except ConfigError as exc:
        return str(exc)
    return ""


def _keep_aside(path: Path) -> Path:
    """Copy a file to a name that says when and why; the copy is on disk when this returns."""
    now = datetime.now(UTC).strftime("%Y%m%dT%H%M%S.%fZ")
    aside = path.with_name(f"{path.name}.broken-{now}")
    try:
        with open(path, "rb") as broken, open(aside, "xb") as copy:
            os.fchmod(copy.fileno(), 0o600)
            while block := broken.read(1 << 20):
                copy.write(block)
            copy.flush()
            os.fsync(copy.fileno())
        sync_directory(aside.parent)
    except OSError as exc:
        raise failed(exc, "keep aside", path) from exc
    return aside


def _runtime(home: Home, *, force: bool) -> tuple[Runtime | None, list[str]]:
    """What an older supervisor's settings say; with force, a file that cannot be read is left alone."""
    try:
        return read_runtime(home.runtime_toml), []
    except (ConfigError, HomeError) as exc:
        if not force:
            raise
        return None, [f"runtime.toml could not be read and was not taken over ({str(exc).splitlines()[0]})"]


def _adopted(home: Home, runtime: Runtime | None) -> list[str]:
    """What was found of an older supervisor, and what became of it."""
    notes = []
    if runtime:
        keys = ", ".join(runtime.values) or "nothing"
        notes += [f"adopted runtime.toml: {keys} went into fleet.toml, the file stays", *runtime.notes]
    if home.old_logs.is_dir():
        notes.append("adopted logging/: it stays where it is, and `fleet log` reads it too")
    if runtime and (count := sum(each.is_dir() for each in home.tasks.iterdir())):
        stay = "directory stays where it is" if count == 1 else "directories stay where they are"
        notes.append(f"adopted tasks/: {count} task {stay}")
    if runtime and home.beads.is_dir():
        notes.append("adopted .beads/: `fleet config set queue.source=beads` goes on working on that queue")
    return notes
