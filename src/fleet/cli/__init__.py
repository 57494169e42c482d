"""The command line: parse, call control or projections, render, exit codes.

Only the module of the command that was typed is imported, so that `fleet ready` answers fast.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import NoReturn


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command and return its exit code. What it printed has been written."""
    from fleet.cli.app import run

    return run(sys.argv[1:] if argv is None else list(argv))


def entry() -> NoReturn:
    """The installed command. A tenth of a short command's time went into taking the interpreter down piece by piece."""
    import gc
    import os

    gc.set_threshold(50_000, 20, 20)
    os._exit(main())
