"""Tell what happens, as it happens: a line in words for each event of the ledger, until Ctrl-C.

It begins with the newest events, with those --since a moment, or --after the one that you saw last. --kind takes a kind
of event (task.settled) or all of a family (task, session, alert, intent, run, host, supervisor). At a terminal the word
for what happened has a colour: green for what went well, red for what failed, yellow for what you may want to look at.
With --json each line is an event, as `fleet ledger export` gives it.

Examples:
  fleet watch --run nightly-x7k
  fleet watch --since 2h --kind task.settled,alert
"""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from fleet.cli.parsing import moment, positive
from fleet.errors import UsageError

if TYPE_CHECKING:
    from fleet.cli.context import Context
    from fleet.model.event import Entry
    from fleet.model.task import Task
    from fleet.store.reads import Batch

POLL_SECONDS = 5.0  # the safety net; the bell wakes us at once
TITLE = 40  # characters
LOOKED_AT = 50  # events for each line that is to be found among the newest
MOST_KNOWN = 10_000  # tasks whose titles are kept at hand


def configure(parser: argparse.ArgumentParser) -> None:
    """The options of `fleet watch`."""
    parser.add_argument("--run", metavar="R", help="only what happens to this run and its tasks")
    parser.add_argument("--task", metavar="ID", help="only what happens to this task")
    parser.add_argument(
        "--kind", metavar="K", action="append", default=[], help="only events of this kind or family; may be repeated"
    )
    begin = parser.add_mutually_exclusive_group()
    begin.add_argument(
        "--since", metavar="T", type=moment, help="begin there: 10m, 2h, 3d (ago), 14:30, 2026-01-31T14:30"
    )
    begin.add_argument("--after", metavar="SEQ", type=int, help="begin after this event; 0: with the first")
    begin.add_argument(
        "-n", "--lines", metavar="N", type=positive, default=10, help="begin with the newest N (10 if not given)"
    )


def run(args: argparse.Namespace, context: Context) -> int:
    """Go on until somebody says stop."""
    kinds = parse_kinds(args.kind)
    only = Only(context, args.run, args.task)
    feed = Feed(context, kinds, only)
    bell = context.reads.listen()  # before looking, so that nothing falls between
    try:
        feed.begin(args)
        if not context.json and not context.reads.supervisors():
            context.note("no supervisor is running: fleet run")
        while True:
            batch = feed.step()
            if batch.position == feed.position:
                bell.wait(POLL_SECONDS)
            feed.position = batch.position
    except KeyboardInterrupt:
        context.out.flush()
        if feed.last and not context.json:
            context.note(f"to go on from here: fleet watch --after {feed.last}")
        raise
    finally:
        bell.close()


def parse_kinds(words: list[str]) -> list[str]:
    """The kinds of events that are asked for; none: all."""
    from fleet.model.event import EVENTS, kind_of

    known = [kind_of(event) for event in EVENTS]
    families = list(dict.fromkeys(kind.partition(".")[0] for kind in known))
    asked = [name.strip() for word in words for name in word.split(",")]
    for name in asked:
        if name not in known and name not in families:
            hint = f"families: {', '.join(families)}; kinds: {_few(name, known)}"
            raise UsageError(f"unknown kind of event `{name}`", hint=hint)
    return [kind for kind in known if kind in asked or kind.partition(".")[0] in asked]


def _few(name: str, known: list[str]) -> str:
    from difflib import get_close_matches

    return ", ".join(get_close_matches(name, known, n=3, cutoff=0.4) or known)


class Only:
    """Which subjects are asked for: all, those of a run, or one task."""

    def __init__(self, context: Context, run: str | None, task: str | None) -> None:
        self._reads = context.reads
        self._known: dict[str, Task | None] = {}
        self._run = context.reads.find_run(run).id if run else None
        self._task = context.reads.find(task).uid if task else None

    def has(self, entry: Entry) -> bool:
        """Whether an event is told. What was sent about a task is among what happens to it."""
        from fleet.model.event import AlertSending

        event = entry.event
        subject = event.delivery.about if isinstance(event, AlertSending) else event.subject
        if self._task is not None and subject != self._task:
            return False
        if self._run is None or subject == f"run/{self._run}":
            return True
        task = self.task(subject)
        return task is not None and task.run == self._run

    def task(self, uid: str) -> Task | None:
        """The task that a subject is; None where it is none."""
        if "/" in uid:
            return None
        if uid not in self._known:
            if len(self._known) >= MOST_KNOWN:
                self._known.clear()
            self._known[uid] = self._reads.tasks_by_uid([uid]).get(uid)
        return self._known[uid]


class Feed:
    """Reads on in the ledger, and tells what it finds."""

    def __init__(self, context: Context, kinds: list[str], only: Only) -> None:
        self._context = context
        self._kinds = kinds
        self._only = only
        self._colour = context.colour
        self._day = ""
        self._from = 0
        self._shown: set[int] = set()
        self.position = ""
        self.last = 0  # the sequence of the last event that was read

    def begin(self, args: argparse.Namespace) -> None:
        """Where the options say."""
        from fleet.projections import feed

        reads = self._context.reads
        if args.after is not None:
            if args.after < 0:
                raise UsageError("--after takes the number of an event, or 0")
            self.position = feed.after_seq(reads, args.after)
        elif args.since is not None:
            self.position, self._from = feed.since(reads, args.since), args.since
        else:
            self.position = reads.end()
            newest = [each for each in reads.last(args.lines * LOOKED_AT) if self._is_wanted(each)]
            for entry in newest[-args.lines :]:
                self._shown.add(entry.seq)  # some may have come after the position was taken
                self._tell(entry)

    def step(self) -> Batch:
        """Tell the next events."""
        batch = self._context.reads.feed(self.position, kinds=self._kinds)
        for entry in batch.entries:
            self.last = entry.seq
            if entry.seq not in self._shown and entry.event.at >= self._from and self._only.has(entry):
                self._tell(entry)
        self._context.out.flush()
        return batch

    def _is_wanted(self, entry: Entry) -> bool:
        from fleet.model.event import kind_of

        return (not self._kinds or kind_of(entry.event) in self._kinds) and self._only.has(entry)

    def _tell(self, entry: Entry) -> None:
        if self._context.json:
            from fleet.store.mirror import encode_line

            self._context.print(encode_line(entry).decode().rstrip("\n"))
            return
        from fleet.cli.event_words import told, worded
        from fleet.cli.transcript import one_line, printable
        from fleet.cli.words import when
        from fleet.model.event import TaskSubmitted

        event = entry.event
        day, clock = when(event.at).split(" ")
        if day != self._day:
            self._day = day
            self._context.print(f"--- {day}")
        what, text = told(event)
        task = None if isinstance(event, TaskSubmitted) else self._only.task(event.subject)
        title = f"{printable(one_line(task.title, TITLE))}: " if task else ""
        self._context.print(f"{clock}  {event.subject:<12}  {worded(what, colour=self._colour)} {title}{text}")
