"""What keeps a sprite awake while a session runs: a program for its runner, which asks the machine's own API."""

from __future__ import annotations

import shlex

HOLD_SOCKET = "/.sprite/api.sock"  # inside the machine; nothing outside can ask for it
# The lease outlives several renewals, so that one which fails is no harm; and it is short, as being awake costs money.
PROGRAM = """#!/bin/sh
# Keeps the machine awake: sh hold on|off SESSION. Called when a session begins and has ended, and every minute between.
socket={socket}
case $1 in
    on)
        if [ -z "$(find "$0" -mmin -{minutes})" ]; then exit; fi # it was written so long ago
        set -- -X PUT -H 'Content-Type: application/json' -d '{{"expire":"5m"}}' "http://sprite/v1/tasks/fleet-$2"
        ;;
    *) set -- -X DELETE "http://sprite/v1/tasks/fleet-$2" ;;
esac
exec curl -fsS -o /dev/null --max-time 10 --unix-socket "$socket" "$@"
"""


def hold_program(socket: str, seconds: int) -> bytes:
    """The program, for a machine whose own API is there; after so long it holds nothing more."""
    return PROGRAM.format(socket=shlex.quote(socket), minutes=max(1, -(-seconds // 60))).encode()
