"""What a task left: listed by reference, each kept under its sha256. `--open KIND` prints one.

W is a task, a session or a worker; of a task, what its receipt in force refers to.

Examples:
  fleet artifacts fleet-abc
  fleet artifacts fleet-abc --open report
"""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from fleet.errors import Conflict, NotFound

if TYPE_CHECKING:
    from fleet.cli.context import Context
    from fleet.projections.receipts import Kept

HEADER = ("KIND", "FILE", "BYTES", "TYPE", "SHA256")


def configure(parser: argparse.ArgumentParser) -> None:
    """The options of `fleet artifacts`."""
    parser.add_argument("id", metavar="W", help="a task, a session or a worker")
    parser.add_argument("--open", metavar="KIND", help="print the artifact of this kind, or at this path")


def run(args: argparse.Namespace, context: Context) -> int:
    """List them, or print one."""
    found = context.front.artifacts(args.id)
    if args.open is not None:
        return _open(args.open, args.id, found, context)
    if context.json:
        context.print_json(found)
        return 0
    if found:
        _list(found, context)
    else:
        uid = context.front.task(args.id).id
        context.note(f"{uid} has left nothing that was kept; of what was too large, fleet receipts {uid} tells")
    return 0


def _list(found: list[Kept], context: Context) -> None:
    from fleet.cli.words import aligned, printable

    rows = [(one.kind, f"{one.place}:{one.path}", str(one.size), one.mime_type, one.sha256[:12]) for one in found]
    for line in aligned([HEADER, *([printable(text) for text in row] for row in rows)]):
        context.print(line)


def _open(word: str, task: str, found: list[Kept], context: Context) -> int:
    """Its bytes as they are; what a terminal could not show is not sent to one."""
    wanted = [one for one in found if one.kind == word] or [one for one in found if one.path == word]
    if not wanted:
        kinds = ", ".join(dict.fromkeys(one.kind for one in found)) or "nothing"
        uid = context.front.task(task).id
        raise NotFound(f"{uid} has left no `{word}`", hint=f"it left: {kinds}")
    if context.json:
        context.print_json(wanted[0])
        return 0
    data = _content(task, wanted[0], context)
    if context.out.isatty() and b"\0" in data:
        raise Conflict(f"{wanted[0].path} is no text", hint=f"its content is in {wanted[0].kept_at}")
    context.out.flush()
    context.out.buffer.write(data)
    context.out.buffer.flush()
    return 0


def _content(task: str, ref: Kept, context: Context) -> bytes:
    import hashlib

    data = context.front.content(task, ref)
    if hashlib.sha256(data).hexdigest() != ref.sha256:
        raise Conflict(f"the content of {ref.path} has changed since it was kept", hint="fleet receipts check")
    return data
