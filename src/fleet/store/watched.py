"""A directory whose entries seldom come and go, watched for the price of one system call."""

from __future__ import annotations

import os
import time
from pathlib import Path

SECOND_NS = 1_000_000_000


class Watched:
    """Says whether an entry of a directory may have come, gone or been replaced since the last look."""

    def __init__(self, path: Path) -> None:
        self._fd = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        self._seen = -1

    def changed(self) -> bool:
        """True the first time, as long as a further change would not show, and once the directory is gone."""
        found = os.fstat(self._fd)
        at = found.st_mtime_ns
        if at == self._seen and found.st_nlink:  # a directory that was removed has no link
            return False
        self._seen = at if _settled(at) else -1
        return True

    def close(self) -> None:
        if self._fd >= 0:
            os.close(self._fd)
        self._fd = -1


def _settled(changed: int) -> bool:
    """Whether a later change would show another time: not within the same tick of the filesystem's clock."""
    tick = SECOND_NS // 10 if changed % SECOND_NS else 2 * SECOND_NS  # some keep whole seconds only
    return time.time_ns() - changed > tick
