"""Codes: what a link to the dashboard holds in place of a token. Each is good once, and not for long.

A browser keeps the addresses that it was led to, for months and often elsewhere too; a code that it keeps is worth
nothing. The home keeps a code's digest and the name of the token that it stands for, so nothing here is secret either.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import time
from pathlib import Path

from fleet.config import tokens
from fleet.config.files import failed, write_atomic
from fleet.config.home import Home
from fleet.config.tokens import Token

MINUTES = 10


def make(home: Home, token: Token) -> str:
    """A code that stands for a token of the home."""
    import secrets

    code = secrets.token_urlsafe(32)
    try:
        home.codes.mkdir(mode=0o700, exist_ok=True)
        for path in home.codes.iterdir():
            with contextlib.suppress(FileNotFoundError):  # used, or renamed, just now
                if _is_old(path.stat().st_mtime):
                    path.unlink()
    except OSError as exc:
        raise failed(exc, "write", home.codes) from exc
    write_atomic(_path(home, code), f"{token.name}\n".encode(), mode=0o600)
    return code


def redeem(home: Home, code: str) -> Token | None:
    """The token that a code stands for; None where the code is unknown, used or old, or the token was taken back."""
    path = _path(home, code)
    try:
        with open(path, encoding="utf-8") as file:
            os.unlink(path)  # of two that come at once, one fails here
            name, is_old = file.read().strip(), _is_old(os.fstat(file.fileno()).st_mtime)
    except FileNotFoundError:
        return None
    except OSError as exc:
        raise failed(exc, "read", path) from exc
    return None if is_old else next((each for each in tokens.read(home) if each.name == name), None)


def _path(home: Home, code: str) -> Path:
    return home.codes / hashlib.sha256(code.encode("utf-8", "surrogatepass")).hexdigest()


def _is_old(made_at: float) -> bool:
    return not -60 < time.time() - made_at <= MINUTES * 60  # one of the future: the clock was set back, who knows when
