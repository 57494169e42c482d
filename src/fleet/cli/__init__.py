"""The command line: parse, call control or projections, render, exit codes.

Only the module of the command that was typed is imported, so that `fleet ready` answers fast.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command and return its exit code."""
    from fleet.cli.app import run

    return run(sys.argv[1:] if argv is None else list(argv))
