"""The command line: parse, call control or projections, render, exit codes.

Only the module of the command that was typed is imported, so that `fleet ready` answers fast.
"""

from __future__ import annotations

import os
import sys
from _signal import SIGINT, default_int_handler, getsignal, signal  # type: ignore[import-not-found]  # `signal` is slow

TYPE_CHECKING = False  # as long as typing is imported Ctrl-C would be a traceback, so what stands here must not
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import NoReturn

INTERRUPTED = 130


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command and return its exit code. What it printed has been written."""
    from fleet.cli.app import run

    return run(sys.argv[1:] if argv is None else list(argv))


def entry() -> NoReturn:
    """The installed command. A tenth of a short command's time went into taking the interpreter down piece by piece."""
    if getsignal(SIGINT) is default_int_handler:  # else our parent wants it ignored
        signal(SIGINT, leave)
    import contextlib
    import gc

    gc.set_threshold(50_000, 20, 20)
    code = INTERRUPTED
    with contextlib.suppress(KeyboardInterrupt):  # after its end, or a second one
        code = main()
    os._exit(code)


def leave(*_: object) -> NoReturn:
    """Ctrl-C before the command has begun: there is nothing to undo, and nothing to tell."""
    os._exit(INTERRUPTED)


def begin() -> None:
    """The command begins: from here on Ctrl-C is an exception that it may answer."""
    if getsignal(SIGINT) is leave:
        signal(SIGINT, default_int_handler)
