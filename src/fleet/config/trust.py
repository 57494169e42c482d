"""The user's own list of trusted homes: only a `.fleet/` on it is used without being named.

A cloned repository may carry a `.fleet/` with a configuration that runs programs. So the list is kept outside of
any repository, in the user's own configuration directory, by real path, and nobody else may write it.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Mapping
from pathlib import Path

from fleet.config.environment import user_home
from fleet.config.files import locked, read_bytes, write_atomic
from fleet.errors import HomeError


def list_path(env: Mapping[str, str]) -> Path:
    """Where the list is: `$XDG_CONFIG_HOME/fleet/trusted`, else `~/.config/fleet/trusted`."""
    base = env.get("XDG_CONFIG_HOME", "")
    if not os.path.isabs(base):  # a relative one must be ignored, says the XDG specification
        base = os.path.join(user_home(env), ".config")
    return Path(base) / "fleet" / "trusted"


def is_trusted(directory: Path, env: Mapping[str, str]) -> bool:
    """Whether the user has trusted this directory. Raises when the list itself cannot be trusted."""
    return _real(directory) in _read(list_path(env))


def trust(directory: Path, env: Mapping[str, str]) -> bool:
    """Put a directory on the list; False when it was there already."""
    entry = _real(directory)
    if b"\n" in entry:
        raise HomeError(f"cannot trust {directory}: its name holds a line break")
    path = list_path(env)
    try:
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    except OSError as exc:
        raise HomeError(f"cannot make {path.parent}: {exc.strerror}") from exc
    with locked(path.with_name("trusted.lock")):
        entries = _read(path)
        if entry in entries:
            return False
        write_atomic(path, b"".join(line + b"\n" for line in [*entries, entry]), mode=0o600)
    return True


def _real(directory: Path) -> bytes:
    return os.fsencode(os.path.realpath(directory))


def _read(path: Path) -> list[bytes]:
    _refuse_shared(path)
    lines = (read_bytes(path) or b"").split(b"\n")
    return [line for line in lines if line.startswith(b"/")]


def _refuse_shared(path: Path) -> None:
    """The list decides what runs: refuse it where somebody else could have written it."""
    for part, forbidden in ((path, 0o022), (path.parent, 0o002)):
        try:
            found = os.stat(part)
        except FileNotFoundError:
            continue
        except OSError as exc:
            raise HomeError(f"cannot read {part}: {exc.strerror}") from exc
        if found.st_uid != os.geteuid():
            raise HomeError(
                f"the trusted list is refused: {part} belongs to another user",
                hint="name the home with --home, or set XDG_CONFIG_HOME to a directory of your own",
            )
        if stat.S_IMODE(found.st_mode) & forbidden:
            raise HomeError(
                f"the trusted list is refused: others may write {part}",
                hint=f"look at what it says, then run `chmod go-w {part}`",
            )
