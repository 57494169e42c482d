"""List tasks: those in progress, or those in the states that you name.

A coder or model that a task names itself is bold; one that it inherits from fleet.toml is dim. Context is the most that
the session's conversation has held, and its share of the model's window where that is known: green, yellow from 50 %,
red from 80 %. --watch keeps the table up to date until Ctrl-C.

Examples:
  fleet tasks --watch
  fleet tasks --run nightly-abc --label team=web --status failed
"""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from fleet.cli.parsing import positive
from fleet.errors import ServerUnreachable, UsageError

if TYPE_CHECKING:
    from rich.table import Table
    from rich.text import Text

    from fleet.cli.context import Context
    from fleet.model.states import TaskState
    from fleet.projections.queue import TaskLine, Wanted

SHOWN_SECONDS = 1.0  # how old a watched table may be
REST_SECONDS = 0.1  # and how young: many commits make one drawing
WHOLE = 1_000_000  # columns: a program that reads a line wants all of it
NARROW = 110  # columns; below, the start and the directory are left out
CUT = ("Title", "cwd")  # where a line has no room for all of it: a task is one line
HALF_FULL, NEARLY_FULL = 50, 80  # per cent of a context


def configure(parser: argparse.ArgumentParser) -> None:
    """The options of `fleet tasks`."""
    parser.add_argument("--limit", metavar="N", type=positive, default=100, help="at most N (100 if not given)")
    parser.add_argument(
        "--status", metavar="S", help="states, with commas between; `all` for any (else those in progress)"
    )
    parser.add_argument("--run", metavar="R", help="only those of a run")
    parser.add_argument("--label", metavar="K=V", action="append", default=[], help="with this label; repeatable")
    parser.add_argument("--tag", metavar="T", action="append", default=[], help="with this tag; repeatable")
    parser.add_argument("--meta", metavar="K=V", action="append", default=[], help="with this metadata; repeatable")
    parser.add_argument("-w", "--watch", action="store_true", help="keep the table up to date, until Ctrl-C")


def run(args: argparse.Namespace, context: Context) -> int:
    """A table, or the lines as objects."""
    from fleet.cli import beads_queue

    if args.watch:
        return _watch(args, context)
    wanted = _wanted(args)  # of bd's issues nothing is known that could be filtered by
    if wanted is None and beads_queue.keeps_the_queue(context):
        return beads_queue.tasks(args, context)
    states = parse_states("all" if wanted and args.status is None else args.status)
    found = context.front.tasks(states, args.limit + 1, wanted)  # one more than is shown: whether there is more
    nothing = "" if found else "no task is like that" if wanted else _nothing(args.status, context)
    print_lines(found, args.limit, context, nothing=nothing)
    return 0


def print_lines(found: list[TaskLine], limit: int, context: Context, nothing: str) -> None:
    """So many of the tasks, and whether there are more; or why there are none."""
    from fleet.cli.words import shown

    if context.json:
        context.print_json(found[:limit])
    elif found:
        print_table(found[:limit], context)
        if len(found) > limit:
            context.note(shown(limit))
        if any(line.attended is False for line in found[:limit]):
            context.note("no supervisor attends what runs, so this is how it stood: fleet run takes it over")
    else:
        context.note(nothing)


def _wanted(args: argparse.Namespace) -> Wanted | None:
    """What the filters ask for; None where there are none. A filter looks at every state unless --status says which."""
    from fleet.projections.queue import Wanted

    if not (args.run or args.label or args.tag or args.meta):
        return None
    return Wanted(
        run=args.run,
        labels=_pairs(args.label, "--label"),
        tags=frozenset(args.tag),
        metadata=_pairs(args.meta, "--meta"),
    )


def _pairs(words: list[str], option: str) -> dict[str, str]:
    pairs = [word.partition("=") for word in words]
    for name, eq, _ in pairs:
        if not (name and eq):
            raise UsageError(f"{option} `{name}` has no value", hint=f"write {option} NAME=VALUE")
    return {name: value for name, _, value in pairs}


def _nothing(asked: str | None, context: Context) -> str:
    if asked == "all":
        return "there are no tasks"
    if asked is not None:
        return f"no task is {asked.replace(',', ' or ')}"
    queued = context.front.counts().get("queued", 0)
    return "no task is in progress" + (f"; {queued} queued: fleet tasks --status queued" if queued else "")


def parse_states(word: str | None) -> frozenset[TaskState] | None:
    """`queued,blocked` as states; None: any."""
    from fleet.model.states import IN_PROGRESS, TaskState

    if word is None:
        return IN_PROGRESS
    if word == "all":
        return None
    known = {state.value: state for state in TaskState}
    names = [name.strip() for name in word.split(",")]
    for name in names:
        if name not in known:
            raise UsageError(f"unknown state `{name}`", hint=f"states: {', '.join(known)}, all")
    return frozenset(known[name] for name in names)


def _watch(args: argparse.Namespace, context: Context) -> int:
    """The table again and again, in its place; until Ctrl-C."""
    if context.json or not context.redraws(context.out):
        raise UsageError("--watch needs a terminal", hint="`fleet watch` follows without one")
    wanted = _wanted(args)
    states = parse_states("all" if wanted and args.status is None else args.status)

    import time

    from rich.console import Console, Group
    from rich.live import Live
    from rich.text import Text

    front = context.front

    def screen() -> Group:
        found = front.tasks(states, args.limit, wanted)
        counts = front.counts()
        named = ("queued", "running", "blocked", "completed", "failed")
        summary = "  ".join(f"{name} {counts.get(name, 0)}" for name in named)
        alone = "" if front.supervisors() else "   no supervisor is running: fleet run"
        table = task_table(found, console.width, marks=marks) if found else Text(_nothing(args.status, context))
        return Group(table, Text(f"\n{summary}{alone}"))

    console = Console(file=context.out, highlight=False, no_color=not context.colour)
    marks = console.encoding.startswith("utf")
    bell, drawn = front.listen(), screen()
    try:
        with Live(drawn, console=console, auto_refresh=False, transient=False) as live:
            while True:
                time.sleep(REST_SECONDS)
                bell.wait(SHOWN_SECONDS - REST_SECONDS)
                try:
                    shown = drawn = screen()
                except ServerUnreachable as exc:
                    shown = Group(drawn, Text(f"{exc}; it is asked again until it answers", "red"))
                live.update(shown, refresh=True)
    finally:
        bell.close()


def print_table(found: list[TaskLine], context: Context) -> None:
    """The table of tasks."""
    from rich.console import Console

    console = Console(
        file=context.out,
        color_system="auto" if context.colour else None,  # None: no escape codes at all, not even bold
        highlight=False,
        width=None if context.out.isatty() else WHOLE,
    )
    if context.out.isatty():
        console.print(task_table(found, console.width, marks=console.encoding.startswith("utf")))
        return
    with console.capture() as drawn:
        console.print(task_table(found, console.width))
    context.print("\n".join(row.rstrip() for row in drawn.get().splitlines()))


def task_table(found: list[TaskLine], width: int, *, marks: bool = True) -> Table:
    """A row for each task; the columns of a session only when one is shown. `marks`: what is cut ends in a mark."""
    from rich.table import Table
    from rich.text import Text

    from fleet.cli.words import printable, span, when

    live = any(line.started_at for line in found)
    narrow = width < NARROW
    session = (() if narrow else ("Started",)) + ("Elapsed", "Idle", "Context", "Events")
    names = ("ID", "Status", *(session if live else ()), "Coder", "Model", "Title", *(() if narrow else ("cwd",)))
    table = Table(box=None, pad_edge=False, header_style="bold")
    for name in names:
        table.add_column(name, no_wrap=name not in CUT, overflow="fold")
    for line in found:
        cells: dict[str, str | Text] = {
            "ID": line.id,
            "Status": line.state.value,
            "Coder": Text(printable(line.coder), style="dim" if line.coder_inherited else "bold"),
            "Model": Text(printable(line.model or "-"), style="dim" if line.model_inherited else "bold"),
            "Title": Text(printable(line.title), no_wrap=True, overflow="ellipsis" if marks else "crop"),
            "cwd": Text(printable(line.cwd or "-"), no_wrap=True, overflow="ellipsis" if marks else "crop"),
        }
        if line.started_at:
            cells |= {
                "Started": when(line.started_at)[11:],
                "Elapsed": span(line.elapsed_ms or 0),
                "Idle": span(line.idle_ms or 0),
                "Context": context_cell(line),
                "Events": str(line.events or 0),
            }
        table.add_row(*(cells.get(name, "") for name in names))
    return table


def context_cell(line: TaskLine) -> Text:
    """How full the conversation was at most: tokens, and the share of the window in the colour of its danger."""
    from rich.text import Text

    tokens = line.peak_context_tokens or 0
    if not line.context_window:
        return Text(f"{tokens:,}")
    share = tokens * 100 // line.context_window
    colour = "red" if share >= NEARLY_FULL else "yellow" if share >= HALF_FULL else "green"
    return Text(f"{tokens:,} {share}%", style=colour)
