"""What may live on for a moment after its test, such as the watch over sessions, and the proof that all of it ends.

No test waits for its own: they are looked at whenever a test of the file ends, and waited for at the end of the file.
"""

from __future__ import annotations

import contextlib
import os
import re
import time
from collections import defaultdict
from pathlib import Path

from tests.support.session_host import kill, lives

LOOK_SECONDS = 0.05


class Leftovers:
    """Places that no process may name any more, each from some moment on."""

    def __init__(self) -> None:
        self._allowed: dict[bytes, float] = {}  # until when

    def end_within(self, seconds: float, *places: Path) -> None:
        """No process that names one of these places may live longer than that."""
        self._allowed |= {os.fsencode(place): time.monotonic() + seconds for place in places}
        self._look()

    def wait(self) -> None:
        """Until nothing is left. What stays too long is ended, and told."""
        while self._allowed:
            self._look()
            if self._allowed:
                time.sleep(LOOK_SECONDS)

    def _look(self) -> None:
        found, now = processes_at(list(self._allowed)), time.monotonic()
        late = {pid: _words(pid) for place, pids in found.items() if now > self._allowed[place] for pid in pids}
        self._allowed = {place: end for place, end in self._allowed.items() if place in found and now <= end}
        for pid in late:
            kill(pid)
        assert not late, f"left behind: {list(late.values())}"


LEFT = Leftovers()  # of all tests that this process runs


def processes_at(places: list[bytes]) -> dict[bytes, list[int]]:
    """By place, the processes but this that name it, or what is below it, in their arguments or environment."""
    if not places:
        return {}
    named = re.compile(b"(" + b"|".join(map(re.escape, places)) + rb")(?![\w.-])")  # test_it1 is not test_it10
    found: defaultdict[bytes, list[int]] = defaultdict(list)
    for pid in (int(name) for name in os.listdir("/proc") if name.isdigit() and int(name) != os.getpid()):
        with contextlib.suppress(OSError):
            words = b"".join(Path(f"/proc/{pid}/{file}").read_bytes() for file in ("cmdline", "environ"))
            for place in set(named.findall(words)):
                if lives(pid):
                    found[place].append(pid)
    return found


def _words(pid: int) -> bytes:
    with contextlib.suppress(OSError):
        return Path(f"/proc/{pid}/cmdline").read_bytes().replace(b"\0", b" ")
    return b""
