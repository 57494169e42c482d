"""Stand-ins for the programs that keep time, first on somebody's PATH: what they are told stays in a directory."""

from __future__ import annotations

from pathlib import Path

from tests.support.cli import Cli

CRONTAB = """#!/bin/sh
# keeps a crontab as crontab(1) does
case $1 in
    -l) [ -f "$STAND_IN/tab" ] || { echo "no crontab for ana" >&2; exit 1; }; cat "$STAND_IN/tab" ;;
    -r) rm "$STAND_IN/tab" ;;
    -) cat >"$STAND_IN/tab" ;;
esac
"""
SYSTEMCTL = """#!/bin/sh
echo "$*" >>"$STAND_IN/calls"
case $* in *show*) printf 'ActiveState=active\\nNextElapseUSecRealtime=Mon 2026-02-02 06:30:00 UTC\\n' ;; esac
"""


def stand_ins(cli: Cli, directory: Path) -> Path:
    """Put them there: `tab` is the crontab, `calls` what systemctl was called with."""
    directory.mkdir()
    for name, text in (("crontab", CRONTAB), ("systemctl", SYSTEMCTL)):
        (directory / name).write_text(text)
        (directory / name).chmod(0o755)
    cli.env |= {"PATH": f"{directory}:{cli.env['PATH']}", "STAND_IN": str(directory)}
    return directory
