"""Give a task to an idle worker of a pool: the worker is found or made, set up once, and its coder is given the task.

The coder runs in the window `agent` of the worker's tmux session, where you can watch it and step in. The dispatch is
a task like any other: it has a receipt when the agent is done, and waits in the queue while every worker is busy.

Examples:
  fleet dispatch --repo kite --command "fix the authentication bug"
  fleet dispatch --repo kite --worker kite-2 --wait --command - < task.md
"""

from __future__ import annotations

import argparse
import sys
from typing import TYPE_CHECKING, Any

from fleet.errors import UsageError

if TYPE_CHECKING:
    from pathlib import Path

    from fleet.cli.context import Context
    from fleet.model.terms import Terms
    from fleet.projections.pools import DispatchView

NOT_FINISHED, INTERRUPTED = 3, 130
LOOK_SECONDS = 0.3
BUSY_SECONDS, PATIENCE_SECONDS = 3.0, 60.0  # in the queue: while every worker is busy, and while none has answered
OVER = ("completed", "partial", "failed", "cancelled", "blocked")


def configure(parser: argparse.ArgumentParser) -> None:
    """The options of `fleet dispatch`."""
    parser.add_argument("--repo", metavar="R", required=True, help="the pool, as [pools.R] of fleet.toml declares it")
    parser.add_argument("--command", metavar="TEXT", required=True, help="the task; - reads it from stdin")
    parser.add_argument("--worker", metavar="W", help="this worker, and no other")
    parser.add_argument("--score", metavar="CMD", help="a command for sh in the clone that says whether it is done")
    parser.add_argument("--wait", action="store_true", help="wait for the receipt; the exit code tells what it says")


def run(args: argparse.Namespace, context: Context) -> int:
    """Put it in the queue, see to it that somebody takes it, and say what happens."""
    from fleet.control.pools import dispatched

    text = sys.stdin.read() if args.command == "-" else args.command
    new = dispatched(context.settings, args.repo, text, args.worker, _terms(args.score))
    task = context.control.add(new)
    if not context.json:
        context.note(f"{task.uid}: {task.title}")
    try:
        follow = _Follow(context, task.uid, args.repo, args.worker, wait=args.wait)
        seen = follow.run()
    except KeyboardInterrupt:
        context.note(f"{task.uid} goes on without you: fleet show {task.uid}")
        return INTERRUPTED
    _print(seen, context, busy=follow.busy)
    if seen.state == "blocked":
        return NOT_FINISHED
    if args.wait:
        return 0 if seen.state == "completed" else NOT_FINISHED if seen.state == "partial" else 1
    return 1 if seen.state in ("failed", "cancelled") else 0


def _terms(score: str | None) -> Terms:
    from fleet.model.terms import Terms

    if score is None:
        return Terms()
    if not score.strip():
        raise UsageError("--score needs a command")
    return Terms(scorer={"kind": "command", "command": score})


class _Follow:
    """What happens to a dispatch, told as it happens."""

    def __init__(self, context: Context, uid: str, pool: str, worker: str | None, *, wait: bool) -> None:
        self._context = context
        self._uid = uid
        self._pool = pool
        self._wait = wait
        self._pinned = worker
        self.busy = False  # every worker that it could have
        self._told = 0
        self._worker: str | None = None
        self._log: Path = context.home.task_dir(uid) / "setup.log"
        self._offset = 0

    def run(self) -> DispatchView:
        """Until it is in the worker's hands, or over; with --wait, until it is over."""
        import time

        from fleet.projections.pools import dispatch_view

        reads, since = self._context.reads, time.monotonic()
        bell = reads.listen()
        try:
            while True:
                self._supervised()
                seen = dispatch_view(reads, self._uid, self._pool)
                self._tell(seen)
                over = seen.state in OVER and not (self._wait and seen.verifying)
                if over or (seen.delivered and not self._wait):
                    return seen
                if seen.session is None and not self._wait and self._is_stuck(time.monotonic() - since):
                    return seen
                bell.wait(LOOK_SECONDS)
        finally:
            bell.close()

    def _is_stuck(self, seconds: float) -> bool:
        """Whether it is left in the queue: every worker has a task, or none took it for a long time."""
        from fleet.projections.pools import wanted

        taken = {session.worker.partition("#")[0] for session in self._context.reads.sessions(live=True)}
        names = [self._pinned] if self._pinned else [one.worker for one in wanted(self._context.settings, self._pool)]
        self.busy = taken.issuperset(names)
        return seconds > (BUSY_SECONDS if self.busy else PATIENCE_SECONDS)

    def _supervised(self) -> None:
        """Somebody must take it: where nobody supervises, one is started for the pools."""
        from fleet.cli.background import start
        from fleet.config.home import require
        from fleet.supervisor.guard import holders

        home = require(self._context.home)
        if not holders(home.path) and start(home, ["--pools", "--drain"]) is None and not holders(home.path):
            raise UsageError(
                f"no supervisor could be started; {self._uid} is in the queue",
                hint=f"see {home.logs / 'supervisor.err'}, then: fleet run",
            )

    def _tell(self, seen: DispatchView) -> None:
        if self._context.json:
            return
        if seen.worker != self._worker:
            self._worker = seen.worker
            self._context.note(f"{seen.worker}: allocated")
        if self._log.exists():
            with self._log.open("rb") as file:
                file.seek(self._offset)
                data = file.read()
            self._offset += len(data)
            for line in data.decode("utf-8", "replace").splitlines():
                self._context.note(f"  {line}")
        for step in seen.steps[self._told :]:
            self._context.note(step)
        self._told = len(seen.steps)


def _print(seen: DispatchView, context: Context, *, busy: bool) -> None:
    """Which worker, what was done, how to watch."""
    if context.json:
        context.print_json(seen)
        return
    if seen.worker is None:
        why = f"every worker of {seen.pool} is busy" if busy else "no worker has taken it yet"
        context.print(f"{seen.task} is queued: {why}; see: fleet why {seen.task}; fleet pool status {seen.pool}")
        return
    rows: list[tuple[str, Any]] = [("worker", seen.worker), ("task", seen.task), ("state", seen.state)]
    if seen.state == "blocked" or seen.result:
        rows.append(("why", seen.reason))
    rows += [
        ("watch", f"fleet pool attach {seen.worker}"),
        ("status", f"fleet pool status {seen.pool}"),
        ("history", f"fleet pool history {seen.worker}"),
        ("receipt", f"fleet show {seen.task}"),
    ]
    for name, value in rows:
        context.print(f"{name:<8} {value}")
