"""`fleet pool attach`: this terminal shows the tmux session of a worker, here or on its machine."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from fleet.errors import UsageError

if TYPE_CHECKING:
    from fleet.cli.context import Context


def run(worker: str, context: Context) -> int:
    """Become the program that shows it. Without a terminal, say which that would be."""
    from fleet import wiring
    from fleet.policy.allocation import member_named
    from fleet.policy.placement import hosts_of

    settings = context.settings
    member = member_named(settings, worker)
    shown = wiring.pool_worker(context.home, settings, member).plot.attach
    reach = member.own or (hosts_of(settings)[member.host] if member.host else None)
    if reach is None:
        argv = shown.split()
    elif reach.kind == "sprite":
        argv = ["sprite", "console", "-s", reach.host or member.host]
    else:
        from fleet.hosts.kinds import ssh_address

        argv = ssh_address(reach, settings).terminal(shown)
    if context.json:
        context.print_json({"worker": worker, "argv": argv, "session": shown})
        return 0
    if not (context.out.isatty() and os.isatty(0)):
        context.print(" ".join(argv) if reach is None or reach.kind != "sprite" else f"{' '.join(argv)}\n{shown}")
        return 0
    try:
        os.execvp(argv[0], argv)
    except OSError as exc:
        raise UsageError(f"cannot run `{argv[0]}`: {exc.strerror}") from exc
