"""The leases of supervisors on one machine, as file locks."""

from __future__ import annotations

import contextlib
import fcntl
import os
import time
from pathlib import Path

from fleet.config.files import is_locked
from fleet.model.ids import check_token


class Leases:
    """A supervisor's lease is a lock on its own file: it ends when the process does, and never by a slow clock.

    When it was last taken or renewed stands in the file, by a clock of the machine that nobody sets and that stands
    still while it sleeps: a process that lives and does nothing is seen by that.
    """

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self._held: dict[str, int] = {}
        self.present: set[str] = set()  # of those held, the ones that were seen in the ledger and have not left

    def take(self, supervisor: str) -> None:
        """Hold the lease until this process ends; or give the next sign of life."""
        if supervisor in self._held:
            _note_time(self._held[supervisor])
            return
        self.directory.mkdir(mode=0o700, exist_ok=True)
        fd = os.open(self._path(supervisor), os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            os.close(fd)
            raise
        self._held[supervisor] = fd
        _note_time(fd)

    def holds(self, supervisor: str) -> bool:
        """Whether this process holds the lease."""
        return supervisor in self._held

    def any(self) -> bool:
        """Whether this process holds one."""
        return bool(self._held)

    def is_held(self, supervisor: str) -> bool:
        """Whether the process that took the lease still lives."""
        if supervisor in self._held:
            return True
        try:
            return is_locked(self._path(supervisor))
        except PermissionError:  # who may not look knows nothing: silence is not evidence
            return True

    def silent_ms(self, supervisor: str) -> int | None:
        """For how long its holder has given no sign of life; None where that is not known."""
        try:
            then = int(self._path(supervisor).read_bytes())
        except (OSError, ValueError):
            return None
        return max(0, time.monotonic_ns() - then) // 1_000_000

    def close(self) -> None:
        for fd in self._held.values():
            os.close(fd)
        self._held.clear()

    def _path(self, supervisor: str) -> Path:
        return self.directory / check_token(supervisor, "supervisor")


def _note_time(fd: int) -> None:
    with contextlib.suppress(OSError):  # a full disk ends no lease
        os.pwrite(fd, b"%020d" % time.monotonic_ns(), 0)
