"""To a task's session in the terminal itself, beside the screen: its log, until Ctrl-C or its end."""

from __future__ import annotations

import contextlib
import shlex
import signal
import subprocess
import sys

from fleet.config.home import Home


def attach(home: Home, uid: str) -> None:
    """Follow it; to be called while the terminal is not ours. Ctrl-C ends what is followed with, not the screen."""
    before = signal.signal(signal.SIGINT, lambda *_: None)  # not SIG_IGN: the child would inherit that
    try:
        subprocess.run([sys.executable, "-m", *command(home, uid)], check=False)
        with contextlib.suppress(EOFError):
            input("-- enter goes back to the screen ")
    finally:
        signal.signal(signal.SIGINT, before)


def command(home: Home, uid: str) -> list[str]:
    """What follows a session. No session of Fleet's own has a terminal: there is nothing to type into."""
    return ["fleet", "--home", str(home.path), "logs", uid, "-f"]


def command_line(home: Home, uid: str) -> str:
    """The same, to paste."""
    return shlex.join(command(home, uid))
