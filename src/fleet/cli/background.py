"""Supervisors in the background: a process of its own, which outlives the command that started it."""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Sequence
from typing import TYPE_CHECKING

from fleet.config.files import private
from fleet.supervisor.guard import holders

if TYPE_CHECKING:
    from fleet.config.home import Home

START_SECONDS = 15.0


def start(home: Home, words: Sequence[str]) -> int | None:
    """Start `fleet run` with these words, and wait until it has taken the home, or had nothing to do; None: neither.

    Another may have been quicker to take it: `holders` tells.
    """
    with open(home.logs / "supervisor.err", "ab", opener=private) as errors:
        process = subprocess.Popen(
            [sys.executable, "-m", "fleet", "--home", str(home.path), "run", "--quiet", *words],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=errors,
            start_new_session=True,
            cwd=home.path,
        )
    deadline = time.monotonic() + START_SECONDS
    while all(one.pid != process.pid for one in holders(home.path)):
        if process.poll() == 0:
            break  # it had nothing to do, and is done
        if process.poll() is not None or time.monotonic() > deadline:
            return None
        time.sleep(0.02)
    return process.pid
