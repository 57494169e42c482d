"""Read the ledger: every transition of every task, in order, each linked to the one before it by a hash.

tail prints the newest events, and follows with -f. export writes them all as lines of JSON; its --heads are the ends of
the chains, to be kept somewhere else. verify checks that nothing was changed, removed or moved since, and that what is
stored is what the events say.

Examples:
  fleet ledger tail -f
  fleet ledger export --heads > heads.json && fleet ledger verify --heads heads.json
"""

from __future__ import annotations

import argparse
import contextlib
from pathlib import Path
from typing import TYPE_CHECKING, NoReturn

from fleet.cli.parsing import add_verb, positive
from fleet.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from fleet.cli.context import Context
    from fleet.model.event import Entry

SUBJECT = 12  # columns: as an id of a task has
EXAMPLES = {
    "tail": ("fleet ledger tail -n 50", "fleet ledger tail -f --task fleet-abc"),
    "export": ("fleet ledger export -o ledger.jsonl", "fleet ledger export --heads > heads.json"),
    "verify": ("fleet ledger verify", "fleet ledger verify ledger.jsonl --heads heads.json"),
}
POLL_SECONDS = 5.0  # the safety net; the bell wakes us at once


def configure(parser: argparse.ArgumentParser) -> None:
    """The verbs of `fleet ledger`."""
    verbs = parser.add_subparsers(dest="verb", metavar="VERB", required=True)
    tail = add_verb(verbs, "tail", "print the newest events", *EXAMPLES["tail"])
    tail.add_argument("-f", "--follow", action="store_true", help="go on printing as events come")
    tail.add_argument("-n", "--lines", metavar="N", type=positive, default=20, help="how many (20 if not given)")
    tail.add_argument("--task", metavar="ID", help="only this task")
    export = add_verb(verbs, "export", "print all events as lines of JSON", *EXAMPLES["export"])
    export.add_argument("-o", "--output", metavar="FILE", help="write there, whole or not at all")
    export.add_argument("--heads", action="store_true", help="only the ends of the chains")
    verify = add_verb(verbs, "verify", "check that nothing was changed", *EXAMPLES["verify"])
    verify.add_argument("file", metavar="FILE", nargs="?", help="an exported ledger, instead of this home's")
    verify.add_argument("--heads", metavar="FILE", type=Path, help="ends of chains that you kept; they must be there")


def run(args: argparse.Namespace, context: Context) -> int:
    """Tail, export or verify."""
    if args.verb == "verify" and not args.file:
        context.here("`fleet ledger verify`")
    return {"tail": _tail, "export": _export, "verify": _verify}[args.verb](args, context)


def line_of(entry: Entry, width: int = SUBJECT) -> str:
    """An event in words: when, of what, what, and by whom."""
    from fleet.cli.event_words import gist
    from fleet.cli.words import when
    from fleet.model.event import TaskBlocked, kind_of

    event = entry.event
    by = event.block.by if isinstance(event, TaskBlocked) else event.by  # who asks, not who wrote it down
    return f"{entry.seq:>6}  {when(event.at)}  {event.subject:<{width}}  {kind_of(event):<18}  {gist(event)}  ({by})"


def _tail(args: argparse.Namespace, context: Context) -> int:
    if args.follow:
        _follow(args.lines, args.task, context)
    _print(context, context.front.newest(args.lines, args.task))
    return 0


def _follow(most: int, word: str | None, context: Context) -> NoReturn:
    """The newest, and what comes after them, until Ctrl-C."""
    from fleet.cli.contact import Contact
    from fleet.projections.feed import Begin
    from fleet.projections.happened import Only

    subject, contact = context.front.task(word).id if word else None, Contact(context)
    with contextlib.closing(context.front.follow(Begin(newest=most), Only(task=subject))) as following:
        while True:
            came = [one.entry for one in following.more()]
            _print(context, [entry for entry in came if subject in (None, entry.event.subject)])
            context.out.flush()
            if not came:
                following.wait(POLL_SECONDS)
            contact.heard(following.trouble)


def _print(context: Context, entries: list[Entry]) -> None:
    from fleet.store.mirror import encode_line

    width = max([SUBJECT, *(len(entry.event.subject) for entry in entries)])
    for entry in entries:
        if context.json:
            context.out.write(encode_line(entry).decode())
        else:
            context.print(line_of(entry, width))


def _export(args: argparse.Namespace, context: Context) -> int:
    if args.heads and args.output:
        raise UsageError("--heads prints the heads; write them to a file with `> FILE`")
    if args.heads:
        context.print_json(_ends(context))
        return 0
    if args.output:
        from fleet.cli.words import count

        written = _export_file(Path(args.output), context.front.everything())
        context.note(f"{count(written, 'event')} written to {args.output}")
        return 0
    from fleet.store.mirror import encode_line

    for entry in context.front.everything():
        context.out.write(encode_line(entry).decode())
    return 0


def _ends(context: Context) -> dict[str, str]:
    """The ends of the chains, of a ledger that holds; one that is elsewhere is checked against itself alone."""
    from fleet.projections.verify import verify, verify_entries

    return (verify_entries(context.front.everything()) if context.url else verify(context.reads)).heads


def _export_file(path: Path, entries: Iterator[Entry]) -> int:
    import os

    from fleet.store.mirror import encode_line

    temporary = path.parent / f".{path.name}.{os.getpid()}"
    count = 0
    try:
        with temporary.open("xb") as file:
            for count, entry in enumerate(entries, 1):  # noqa: B007  # the last number is the count
                file.write(encode_line(entry))
            file.flush()
            os.fsync(file.fileno())
        temporary.replace(path)
    except OSError as exc:
        raise UsageError(f"{path} cannot be written: {exc.strerror}") from exc
    finally:
        with contextlib.suppress(OSError):
            temporary.unlink()
    return count


def _verify(args: argparse.Namespace, context: Context) -> int:
    from fleet.cli.words import count
    from fleet.projections.verify import verify, verify_entries
    from fleet.store.mirror import read_lines

    heads = _heads(args.heads) if args.heads is not None else None
    if args.file:
        try:
            found = verify_entries(read_lines(Path(args.file)), heads)
        except OSError as exc:
            raise UsageError(f"{args.file} cannot be read: {exc.strerror}") from exc
    else:
        found = verify(context.reads, heads)
    if context.json:
        context.print_json(found)
        return 0
    against = f", {count(found.heads_matched, 'kept head')} found" if heads is not None else ""
    holds = "holds" if found.events == 1 else "hold"
    context.print(f"OK: {count(found.events, 'event')} in {count(found.chains, 'chain')} {holds}{against}")
    return 0


def _heads(path: Path) -> dict[str, str]:
    import msgspec

    try:
        return msgspec.json.decode(path.read_bytes(), type=dict[str, str])
    except OSError as exc:
        raise UsageError(f"{path} cannot be read: {exc.strerror}") from exc
    except msgspec.DecodeError as exc:
        raise UsageError(
            f"{path} does not hold heads: {exc}", hint="make one with `fleet ledger export --heads`"
        ) from exc
