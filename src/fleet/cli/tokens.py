"""The token of a provider: taken from a file, the environment or a person, once; kept in the home, never shown."""

from __future__ import annotations

import sys
from pathlib import Path

from fleet.config import secrets
from fleet.config.environment import environ
from fleet.config.files import read_bytes
from fleet.config.home import Home
from fleet.errors import NotFound, UsageError

LONGEST = 1 << 14


def find(home: Home, name: str, *, file: str | None, ask: bool) -> str:
    """The token that is given: by the file, else the environment, else by a person where none is kept yet."""
    given = _from_file(file) if file else environ().get(name, "").strip()
    if not given and ask and name not in secrets.read(home):
        given = _asked(name)
    if not given.isprintable() or " " in given:
        raise UsageError(f"what was given as {name} is no token: it has blanks or worse in it")
    return given


def keep(home: Home, name: str, given: str, *, wanted: bool) -> str:
    """Have it in the home, as a service does not have the environment of a person. Returns what to say of it."""
    known = secrets.read(home).get(name)
    if given and given != known:
        secrets.put(home, name, given)
        return f"{name} is kept in {home.secrets}, for its owner alone"
    if known:
        return f"{name} was kept before, in {home.secrets}"
    return f"none; sprites need one: --token-file, or {name} in the environment" if wanted else "none is needed"


def _from_file(file: str) -> str:
    if file == "-":
        return sys.stdin.read(LONGEST).strip()
    data = read_bytes(Path(file), LONGEST)
    if data is None:
        raise NotFound(f"there is no file {file}")
    if not data.strip():
        raise UsageError(f"{file} is empty")
    return data.decode("utf-8", "replace").strip()


def _asked(name: str) -> str:
    """Where a person is there to answer. What they type is not shown."""
    if sys.stdin is None or not sys.stdin.isatty():
        return ""
    import getpass

    try:
        return getpass.getpass(f"{name} (not shown; Enter for none): ").strip()
    except EOFError:
        return ""
