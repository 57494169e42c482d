"""The workers of pools: what each does, and the verbs to step in.

A pool is [pools.NAME] of fleet.toml: numbered workers of one repository, each with a clone and a tmux session whose
window `agent` is an interactive coder. `fleet dispatch` gives them tasks.

Examples:
  fleet pool status kite
  fleet pool send kite-1 agent "also update the changelog"
"""

from __future__ import annotations

import argparse
import asyncio
from typing import TYPE_CHECKING

from fleet.cli.parsing import add_verb, positive

if TYPE_CHECKING:
    from collections.abc import Sequence

    from fleet.cli.context import Context
    from fleet.control.pools import PoolVerbs
    from fleet.projections.pools import PoolWorkerView

HEADER = ("WORKER", "STATE", "SINCE", "TASK", "BRANCH", "LAST COMMIT", "EVIDENCE")
NONE_FREE = 3


def configure(parser: argparse.ArgumentParser) -> None:
    """The verbs of `fleet pool`."""
    verbs = parser.add_subparsers(dest="verb", metavar="VERB")
    allocate = add_verb(verbs, "allocate", "print the worker that the next dispatch gets", "fleet pool allocate kite")
    allocate.add_argument("repo", metavar="R", help="a pool")
    busy = add_verb(verbs, "busy", "whether a worker is busy: 0 busy, 1 idle", "fleet pool busy kite-1 && echo busy")
    setup = add_verb(verbs, "setup", "key, clone, setup script, tmux; once", "fleet pool setup kite-1 kite")
    send = add_verb(
        verbs, "send", "put a text into a window, and press Enter", "fleet pool send kite-1 shell 'git log'"
    )
    status = add_verb(verbs, "status", "every worker: state, since when, evidence", "fleet pool status kite")
    status.add_argument("repo", metavar="R", nargs="?", help="a pool; all, if none is named")
    check = add_verb(
        verbs, "check", "a line about each worker, to the pool's status_log", "fleet pool check kite-1 kite --silent"
    )
    check.add_argument("names", metavar="[W] R", nargs="*", help="a worker and its pool, or a pool; all, if none")
    check.add_argument("--silent", action="store_true", help="print nothing; the log has it")
    attach = add_verb(verbs, "attach", "show a worker's session on this terminal", "fleet pool attach kite-1")
    history = add_verb(verbs, "history", "what went through the agent's window", "fleet pool history kite-1 -n 50")
    history.add_argument("-n", "--lines", metavar="N", type=positive, default=200, help="how many lines (200)")
    release = add_verb(verbs, "release", "end the program in the agent's window", "fleet pool release kite-1")
    destroy = add_verb(verbs, "destroy", "remove a worker and its clone", "fleet pool destroy kite-3")
    destroy.add_argument("--force", action="store_true", help="also with work that is nowhere else")
    for verb in (busy, setup, send, attach, history, release, destroy):
        verb.add_argument("worker", metavar="W", help="a worker, such as kite-1")
    setup.add_argument("repo", metavar="R", help="its pool")
    send.add_argument("window", metavar="WINDOW", help="shell or agent")
    send.add_argument("text", metavar="TEXT", help="the text; several lines are one piece")


def run(args: argparse.Namespace, context: Context) -> int:
    """Print them, or do what was asked."""
    if args.verb not in (None, "status", "busy"):
        context.here(f"`fleet pool {args.verb}`")
    match args.verb:
        case "allocate":
            return _allocate(args.repo, context)
        case "busy":
            return _busy(args.worker, context)
        case "check":
            from fleet.cli import pool_check

            return pool_check.run(args, context)
        case "attach":
            from fleet.cli import pool_attach

            return pool_attach.run(args.worker, context)
        case "setup" | "send" | "history" | "release" | "destroy":
            return _act(args, context)
        case _:
            return _status(getattr(args, "repo", None), context)


def _allocate(repo: str, context: Context) -> int:
    from fleet.policy.allocation import allocate
    from fleet.projections.pools import wanted

    found = context.front.pool_workers(repo)
    known = {one.worker for one in found if one.state not in ("absent", "unknown")}
    busy = {one.worker for one in found if one.busy is not False}
    chosen = allocate(wanted(context.settings, repo), known, busy)
    if context.json:
        context.print_json(chosen)
    elif chosen.worker:
        context.print(chosen.worker)
    else:
        context.note(chosen.reason)
    return 0 if chosen.worker else NONE_FREE


def _busy(worker: str, context: Context) -> int:
    (found,) = context.front.pool_workers(None, worker)
    if context.json:
        context.print_json(found)
    else:
        word = "busy" if found.busy else "idle" if found.busy is False else "unknown"
        context.print(f"{worker} is {word}: {found.state}, {found.evidence}")
    return 1 if found.busy is False else 0  # one that does not answer is not known to be idle


def _status(repo: str | None, context: Context) -> int:
    found = context.front.pool_workers(repo)
    if context.json:
        context.print_json(found)
        return 0
    if not found:
        context.note("no pool is declared; see docs/guides/pools.md, or: fleet config set pools.NAME.repo=URL")
        return 0
    shown = [one for one in found if one.state != "absent"]
    from fleet.cli.words import aligned

    lines = aligned([HEADER, *(_row(one) for one in shown)])
    for line in lines:
        context.print(line)
    more = len(found) - len(shown)
    if more:
        context.note(f"{more} more may be made when they are needed")
    return 0


def _row(one: PoolWorkerView) -> Sequence[str]:
    from fleet.cli.words import ago

    commit = f"{ago(one.committed_at)}: {one.head.partition(' ')[0]}" if one.committed_at else "-"
    late = " (no commit for too long)" if one.overdue else ""
    since = ago(one.since) if one.since else "-"
    return (one.worker, one.state, since, one.task or "-", one.branch or "-", f"{commit}{late}", one.evidence)


def _act(args: argparse.Namespace, context: Context) -> int:
    from fleet import wiring

    verbs = wiring.open_pools(context.home, context.settings, context.reads)
    value, text = asyncio.run(_done(args, verbs, context))
    if context.json:
        context.print_json(value)
    else:
        context.print(text)
    return 0


async def _done(args: argparse.Namespace, verbs: PoolVerbs, context: Context) -> tuple[object, str]:
    """What came of a verb: as an object, and in words."""
    from fleet.cli.words import count

    worker = args.worker
    match args.verb:
        case "setup":
            told = (lambda _: None) if context.json else context.err.write
            facts = await verbs.setup(worker, args.repo, told)
            return facts, f"{worker} is set up: {facts.setup_why}; watch it: fleet pool attach {worker}"
        case "send":
            sent = await verbs.send(worker, args.window, args.text)
            return sent, f"sent {count(sent.characters, 'character')} to {worker}, window {sent.window}"
        case "history":
            said = await verbs.history(worker, args.lines)
            return {"worker": worker, "text": said}, said.rstrip("\n")
        case "release":
            return await verbs.release(worker), f"{worker} is released; its clone stays"
        case _:
            return await verbs.destroy(worker, force=args.force), f"{worker} is gone, with its clone"
