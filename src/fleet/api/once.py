"""Requests that say who they are happen once: an idempotency key, and what was answered to it.

The key is kept before the verb, the answer after it. A server that died between the two does not know whether it was
done; it says so, and does not do it again.
"""

from __future__ import annotations

import base64
import contextlib
import hashlib
import os
import re
import time
from pathlib import Path

import msgspec

from fleet.api.problems import Refused
from fleet.config.files import write_atomic
from fleet.errors import Conflict, UsageError

KEY = re.compile(r"[A-Za-z0-9_.:~+/=-]{1,200}")
KEPT_SECONDS = 24 * 3600
SWEEP_SECONDS = 600


class Answer(msgspec.Struct, frozen=True, kw_only=True):
    """What was answered; without a body, what was asked."""

    request: str  # the sha256 of it
    status: int = 0
    body: bytes = b""
    etag: str = ""


class Once:
    """The answers of a home."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self._swept_at: float | None = None  # by a clock that nobody sets

    def begin(self, who: str, key: str, request: str) -> Answer | None:
        """The answer that was given before; None: this is the first time, and it may be done now."""
        if not KEY.fullmatch(key):
            raise UsageError("an Idempotency-Key is 1 to 200 letters, digits or _.:~+/=-")
        self._directory.mkdir(mode=0o700, exist_ok=True)
        self._sweep()
        try:
            handle = os.open(self._path(who, key), os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
        except FileExistsError:
            return self._before(who, key, request)
        with open(handle, "wb") as file:
            file.write(msgspec.json.encode(Answer(request=request)))
            file.flush()
            os.fsync(handle)
        return None

    def done(self, who: str, key: str, answer: Answer) -> None:
        """Keep what is answered."""
        write_atomic(self._path(who, key), msgspec.json.encode(answer))

    def undone(self, who: str, key: str) -> None:
        """It was refused and has changed nothing; it may be tried again."""
        self._path(who, key).unlink(missing_ok=True)

    def _before(self, who: str, key: str, request: str) -> Answer:
        try:
            found = msgspec.json.decode(self._path(who, key).read_bytes(), type=Answer)
        except (msgspec.DecodeError, FileNotFoundError):
            found = Answer(request=request)
        if found.request != request:
            raise Refused(422, "this Idempotency-Key was given with another request")
        if not found.status:
            raise Conflict(
                "this request was begun before, and its end is not known; it is not done again",
                hint="look at what it was about, then ask again with another key",
            )
        return found

    def _path(self, who: str, key: str) -> Path:
        return self._directory / hashlib.sha256(f"{who}\n{key}".encode()).hexdigest()

    def _sweep(self) -> None:
        now, passed = time.time(), time.monotonic()
        if self._swept_at is not None and passed - self._swept_at < SWEEP_SECONDS:
            return
        self._swept_at = passed
        for entry in os.scandir(self._directory):
            with contextlib.suppress(FileNotFoundError):
                if entry.stat().st_mtime < now - KEPT_SECONDS:
                    os.unlink(entry.path)


def digest(method: str, path: str, query: bytes, body: bytes) -> str:
    """What makes a request the same as another."""
    parts = (method.encode(), path.encode(), query, body)
    return hashlib.sha256(b"\0".join(base64.b64encode(part) for part in parts)).hexdigest()
