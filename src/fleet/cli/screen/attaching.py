"""To a task's session in the terminal itself, while the screen steps aside: until it ends, or is left."""

from __future__ import annotations

import contextlib
import shlex
import signal
import subprocess
import sys


def attach(flags: list[str], words: list[str]) -> None:
    """Run it; to be called while the terminal is not ours. Ctrl-C ends what is looked at with, not the screen."""
    before = signal.signal(signal.SIGINT, lambda *_: None)  # not SIG_IGN: the child would inherit that
    try:
        subprocess.run([sys.executable, "-m", *_command(flags, words)], check=False)
        with contextlib.suppress(EOFError):
            input("-- enter goes back to the screen ")
    finally:
        signal.signal(signal.SIGINT, before)


def command_line(flags: list[str], words: list[str]) -> str:
    """The same, to paste."""
    return shlex.join(_command(flags, words))


def _command(flags: list[str], words: list[str]) -> list[str]:
    return ["fleet", *flags, *words]
