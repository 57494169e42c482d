"""Who may use the API: a file of the home, mode 0600, with one line `ROLE NAME TOKEN` for each."""

from __future__ import annotations

import os
import stat
from enum import StrEnum

import msgspec

from fleet.config.files import locked, read_bytes, write_atomic
from fleet.config.home import Home
from fleet.errors import Conflict, HomeError
from fleet.model.ids import check_token

HEAD = "# Who may use the API of this home, one line each: ROLE NAME TOKEN. Remove a line to take the token back.\n"
PREFIX = "flt_"
SHORTEST = 20  # characters of a token; one that was made here has 47


class Role(StrEnum):
    """What a token is good for; each role may also do what those before it may."""

    READ = "read"
    OPERATE = "operate"
    ADMIN = "admin"

    def may(self, needed: Role) -> bool:
        """Whether this role is enough."""
        order = list(Role)
        return order.index(self) >= order.index(needed)


class Token(msgspec.Struct, frozen=True):
    """A line of the file. `name` is who stands in the ledger."""

    role: Role
    name: str
    secret: str

    def __repr__(self) -> str:  # a token must not get into a log by way of a message
        return f"Token({self.role.value} {self.name})"


def read(home: Home) -> list[Token]:
    """The tokens of a home. HomeError while others may read the file, or where a line makes no sense."""
    data = read_bytes(home.tokens)
    if data is None:
        return []
    if stat.S_IMODE(os.stat(home.tokens).st_mode) & 0o077:
        raise HomeError(f"others may read {home.tokens}", hint=f"run `chmod 600 {home.tokens}`")
    lines = enumerate(data.decode("utf-8", "replace").splitlines(), 1)
    return [_token(line.split(), f"{home.tokens}:{n}") for n, line in lines if line.strip() and line[0] != "#"]


class Current:
    """The tokens that are good now: a line that was removed is good no longer."""

    def __init__(self, home: Home) -> None:
        self._home = home
        self._known: tuple[bytes | None, list[Token]] = (None, [])

    def __call__(self) -> list[Token]:
        data = read_bytes(self._home.tokens)
        if data != self._known[0] or data is None:
            self._known = (data, read(self._home))
        return self._known[1]


def add(home: Home, name: str, role: Role) -> Token:
    """Make a token for somebody."""
    made = Token(role, check_token(name, "name"), PREFIX + _random())
    with locked(home.path / "api-tokens.lock"):
        known = read(home)
        if any(one.name == name for one in known):
            raise Conflict(f"{name} has a token already", hint=f"to take it back, remove its line from {home.tokens}")
        lines = (read_bytes(home.tokens) or HEAD.encode()).decode("utf-8", "replace")
        line = f"{made.role.value} {made.name} {made.secret}\n"
        write_atomic(home.tokens, (lines.rstrip("\n") + "\n" + line).encode(), mode=0o600)
    return made


def _random() -> str:
    import secrets

    return secrets.token_urlsafe(32)


def _token(words: list[str], where: str) -> Token:
    if len(words) != 3 or words[0] not in list(Role) or len(words[2]) < SHORTEST:
        raise HomeError(
            f"{where} is no line of tokens",
            hint="a line reads ROLE NAME TOKEN, with read, operate or admin; `fleet serve token NAME` makes one",
        )
    return Token(Role(words[0]), words[1], words[2])
