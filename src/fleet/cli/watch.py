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

from fleet.cli.contact import Contact
from fleet.cli.parsing import moment, positive
from fleet.errors import UsageError

if TYPE_CHECKING:
    from fleet.cli.context import Context
    from fleet.projections.feed import Begin
    from fleet.projections.happened import Happened, Only

POLL_SECONDS = 5.0  # the safety net; the bell wakes us at once
TITLE = 40  # characters


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
    only = _only(args, context)
    following = context.front.follow(_begin(args), only)
    telling, contact = Telling(context), Contact(context)
    try:
        told = telling.tell(following.more())
        if not context.json and not context.front.supervisors():
            context.note("no supervisor is running: fleet run")
        while True:
            if not told:
                following.wait(POLL_SECONDS)
            contact.heard(following.trouble)
            told = telling.tell(following.more())
    except KeyboardInterrupt:
        context.out.flush()
        if telling.last and not context.json:
            context.note(f"to go on from here: {context.fleet} watch --after {telling.last}")
        raise
    finally:
        following.close()


def _only(args: argparse.Namespace, context: Context) -> Only:
    from fleet.projections.happened import Only

    kinds = parse_kinds(args.kind)
    return Only(
        kinds=tuple(kinds),
        run=context.front.run(args.run, 0).run.id if args.run else None,
        task=context.front.task(args.task).id if args.task else None,
        since=args.since or 0,
    )


def _begin(args: argparse.Namespace) -> Begin:
    from fleet.projections.feed import Begin

    if args.after is not None:
        if args.after < 0:
            raise UsageError("--after takes the number of an event, or 0")
        return Begin(seq=args.after)
    return Begin(newest=args.lines) if args.since is None else Begin(since=args.since)


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


class Telling:
    """Tells what happens."""

    def __init__(self, context: Context) -> None:
        self._context = context
        self._colour = context.colour
        self._day = ""
        self.last = 0  # the sequence of the last event that was told

    def tell(self, happened: list[Happened]) -> bool:
        """A line for each; whether there were any."""
        for one in happened:
            self._tell(one)
            self.last = one.entry.seq
        self._context.out.flush()
        return bool(happened)

    def _tell(self, one: Happened) -> None:
        if self._context.json:
            from fleet.store.mirror import encode_line

            self._context.out.write(encode_line(one.entry).decode())
            return
        from fleet.cli.event_words import told, worded
        from fleet.cli.transcript import one_line
        from fleet.cli.words import printable, when
        from fleet.model.event import TaskSubmitted

        event = one.entry.event
        day, clock = when(event.at).split(" ")
        if day != self._day:
            self._day = day
            self._context.print(f"--- {day}")
        what, text = told(event)
        titled = one.about is not None and "/" not in event.subject and not isinstance(event, TaskSubmitted)
        title = f"{printable(one_line(one.about.title, TITLE))}: " if one.about and titled else ""
        word = worded(what, colour=self._colour)  # with our own colours, so it is written as it is
        self._context.out.write(f"{clock}  {event.subject:<12}  {word} {title}{printable(text)}\n")
