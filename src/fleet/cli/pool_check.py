"""`fleet pool check`: a line about each worker, to the log that its pool names, and on stdout unless it is silent."""

from __future__ import annotations

import argparse
import time
from pathlib import Path
from typing import TYPE_CHECKING

from fleet.errors import UsageError

if TYPE_CHECKING:
    from fleet.cli.context import Context
    from fleet.projections.pools import PoolWorkerView

LOOKED_AT = 1000
BAD = frozenset({"error", "unknown"})


def run(args: argparse.Namespace, context: Context) -> int:
    """The exit code is 1 where a worker failed, cannot be seen, or works for too long without a commit."""
    repo, worker = _asked(args.names)
    _supervised(context)
    found = [one for one in context.front.pool_workers(repo, worker) if one.state != "absent"]
    lines = {one.worker: line(one, time.time()) for one in found}
    for one in found:
        _append(context.settings.pools[one.pool].status_log, lines[one.worker], context)
    if not args.silent and context.json:
        context.print_json(found)
    elif not args.silent:
        context.print_lines(iter(lines.values()))
    return 1 if any(one.state in BAD or one.overdue for one in found) else 0


def _supervised(context: Context) -> None:
    """A dispatch that is open, and that nobody supervises any more, gets a supervisor again."""
    from fleet.cli.background import start
    from fleet.config.home import require
    from fleet.model.session import pool_of
    from fleet.supervisor.guard import holders

    home, reads = require(context.home), context.reads
    if holders(home.path):
        return
    waiting = {session.task for session in reads.sessions(live=True)} | {
        task.uid for task in reads.ready(limit=LOOKED_AT)
    }
    if any(pool_of(task.capabilities) for task in reads.tasks_by_uid(waiting).values()):
        start(home, ["--pools", "--drain"])


def line(one: PoolWorkerView, now: float) -> str:
    """`[time] worker state evidence`."""
    stamp = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(now))
    late = "; no commit for too long: remind it" if one.overdue else ""
    since = f" since {time.strftime('%H:%M:%SZ', time.gmtime(one.since / 1000))}" if one.since else ""
    return f"[{stamp}] {one.worker} {one.state} {one.evidence}{since}{late}"


def _asked(names: list[str]) -> tuple[str | None, str | None]:
    """A pool, or a worker and its pool."""
    match names:
        case []:
            return None, None
        case [repo]:
            return repo, None
        case [worker, repo]:
            return repo, worker
        case _:
            raise UsageError("expected a pool, or a worker and its pool", hint="fleet pool check kite-1 kite --silent")


def _append(path: str, text: str, context: Context) -> None:
    try:
        with Path(path).expanduser().open("a", encoding="utf-8") as file:
            file.write(text + "\n")
    except OSError as exc:
        context.note(f"warning: cannot write {path}: {exc.strerror}; set pools.NAME.status_log")
