"""Values that fleet.toml only names: from the environment, else from `secrets.env` in the home, mode 0600."""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Mapping

from fleet.config.environment import environ
from fleet.config.files import read_bytes, write_atomic
from fleet.config.home import Home
from fleet.errors import HomeError, UsageError

_PLAIN = re.compile(r"[A-Za-z0-9_./:%@+=,-]*")


def lookup(home: Home, name: str, env: Mapping[str, str] | None = None) -> str | None:
    """The value of a named secret, or None where nobody has given one. The environment goes first."""
    value = (environ() if env is None else env).get(name)
    return value if value is not None else read(home).get(name)


def read(home: Home) -> dict[str, str]:
    """What secrets.env holds. HomeError while others may read it, or we may not."""
    data = read_bytes(home.secrets)
    if data is None:
        return {}
    if stat.S_IMODE(os.stat(home.secrets).st_mode) & 0o077:
        raise HomeError(f"others may read {home.secrets}", hint=f"run `chmod 600 {home.secrets}`")
    pairs = (line.partition("=") for line in data.decode("utf-8", "replace").splitlines() if _is_pair(line))
    return {name.strip(): _unquoted(value.strip()) for name, _, value in pairs}


def put(home: Home, name: str, value: str) -> None:
    """Write one secret, in the place of an older one of that name; every other line stays."""
    line = f"{name}={_quoted(name, value)}"
    lines = (read_bytes(home.secrets) or b"").decode("utf-8", "surrogateescape").splitlines()
    places = [at for at, old in enumerate(lines) if _is_pair(old) and old.partition("=")[0].strip() == name]
    for at in places:
        lines[at] = line
    lines += [] if places else [line]
    write_atomic(home.secrets, ("\n".join(lines) + "\n").encode("utf-8", "surrogateescape"), mode=0o600)


def _is_pair(line: str) -> bool:
    return "=" in line and not line.lstrip().startswith("#")


def _quoted(name: str, value: str) -> str:
    """A value as a shell and systemd both read it."""
    if _PLAIN.fullmatch(value):
        return value
    if "'" in value or not value.isprintable():
        raise UsageError(f"the value for {name} holds characters that secrets.env cannot hold")
    return f"'{value}'"


def _unquoted(value: str) -> str:
    return value[1:-1] if len(value) > 1 and value[0] == value[-1] and value[0] in "'\"" else value
