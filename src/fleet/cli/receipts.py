"""The verdicts on tasks, with their evidence; oldest first. A receipt is never changed, only superseded.

`fleet receipts check` computes the checksums of all artifacts again, and runs again the scorers that need no session,
over the evidence that was kept. It ends with 1 when something is not as it was.

Examples:
  fleet receipts --run nightly-abc
  fleet receipts check fleet-abc
"""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from fleet.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from fleet.cli.context import Context
    from fleet.projections.receipts import ReceiptView

MOST_EVIDENCE = 5
LONGEST = 200  # characters of a line


def configure(parser: argparse.ArgumentParser) -> None:
    """The options of `fleet receipts`."""
    parser.add_argument("words", metavar="TASK | check [ID...]", nargs="*", help="a task; or what to check again")
    parser.add_argument("--run", metavar="R", help="the receipts of a run")


def run(args: argparse.Namespace, context: Context) -> int:
    """List them, or check them again."""
    if args.words[:1] == ["check"]:
        return _check(args.words[1:], context)
    if len(args.words) > 1:
        raise UsageError("give one task, or `check` and the ids to check")
    task = args.words[0] if args.words else None
    found = context.front.receipts(task, args.run)
    if context.json:
        context.print_json(found)
        return 0
    for receipt in found:
        for line in _lines(receipt, whole=task is not None):
            context.print(line)
    if not found:
        context.note("no receipts yet")
    return 0


def _lines(receipt: ReceiptView, *, whole: bool) -> Iterator[str]:
    from fleet.cli.transcript import one_line
    from fleet.cli.words import count, printable, span, when

    source = f" ({receipt.source.value})" if receipt.source else ""
    mark = "" if receipt.verified or receipt.result.value != "pass" else ", unverified"
    settled = "" if receipt.final else "  [not the one that counts]"
    yield (
        f"{receipt.id}  {receipt.result.value}{source}{mark}  "
        f"{printable(one_line(receipt.title, LONGEST))}: {printable(one_line(receipt.reason, LONGEST))}{settled}"
    )
    if not whole:
        return
    rows = [
        ("at", when(receipt.at)),
        ("run", f"{receipt.run_id} ({receipt.task_id})" if receipt.run_id else ""),
        ("by", " ".join(filter(None, (receipt.coder, receipt.model, receipt.host and f"on {receipt.host}")))),
        ("attempt", f"{receipt.attempt}, {span(receipt.duration_ms)}" if receipt.attempt else ""),
        ("scorer", f"{receipt.scorer}, score {receipt.score:g}" if receipt.score is not None else receipt.scorer or ""),
        ("commits", f"{receipt.commit_before} -> {receipt.commit_after}" if receipt.commit_after else ""),
        ("supersedes", receipt.supersedes or ""),
        ("artifacts", ", ".join(f"{ref.kind} ({ref.size} bytes)" for ref in receipt.artifacts)),
    ]
    shown = receipt.evidence[:MOST_EVIDENCE]
    rows += [("evidence", line) for line in shown]
    if len(receipt.evidence) > len(shown):
        rows.append(("", f"... and {count(len(receipt.evidence) - len(shown), 'more line')}, with --json"))
    for name, text in rows:
        if text:
            yield f"  {name:<10}  {printable(one_line(text, LONGEST))}"


def _check(words: list[str], context: Context) -> int:
    from fleet.cli.words import count

    found = context.front.check(words)
    broken = [one for one in found if one.problems]
    if context.json:
        context.print_json(found)
        return 1 if broken else 0
    for one in broken:
        for problem in one.problems:
            context.print(f"{one.receipt}: {problem}")
    artifacts, scores = sum(one.artifacts for one in found), sum(one.scores for one in found)
    what = f"{count(len(found), 'receipt')}, {count(artifacts, 'artifact')}, {count(scores, 'score')}"
    context.print(f"OK: {what}" if not broken else f"{len(broken)} of {what} are not as they were")
    return 1 if broken else 0
