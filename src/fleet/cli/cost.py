"""What was spent: money, tokens and time of sessions, by day; or by coder, model, host, label or run.

The last seven days if --since does not say otherwise. A session counts on the day on which it ended, in your time zone.
What a coder did not tell is unknown, and in no sum. A session with several labels is in the line of each.

Examples:
  fleet cost
  fleet cost --since today --by coder
"""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from fleet.cli.parsing import moment
from fleet.errors import UsageError

if TYPE_CHECKING:
    from fleet.cli.context import Context
    from fleet.projections.cost import Cost, CostLine

WEEK = 7  # days, today among them
MOST_DAYS = 370
HEADER = ("COST", "SESSIONS", "INPUT", "CACHED", "OUTPUT", "TIME")


def configure(parser: argparse.ArgumentParser) -> None:
    """The options of `fleet cost`."""
    parser.add_argument(
        "--since", metavar="T", type=moment, help="from when on: today, 24h, 30d, a date; seven days if not given"
    )
    from fleet.projections.cost import BY

    parser.add_argument("--by", choices=BY, default="day", help="what it is divided by (day if not given)")


def run(args: argparse.Namespace, context: Context) -> int:
    """A line for each, and the sum."""
    since = midnight(WEEK - 1) if args.since is None else args.since
    found = context.front.cost(since, args.by, _days(since) if args.by == "day" else ())
    if context.json:
        context.print_json(found)
        return 0
    for line in drawn(found):
        context.print(line)
    return 0


def midnight(days_ago: int = 0) -> int:
    """When a day begins here."""
    from datetime import datetime, time, timedelta

    day = datetime.combine(datetime.now().date() - timedelta(days=days_ago), time.min)  # noqa: DTZ005  # where we are
    return int(day.timestamp() * 1000)


def _days(since: int) -> tuple[str, ...]:
    """When each day begins here, with the offset from UTC that it has then; the first where it is looked from."""
    from datetime import datetime, time, timedelta

    first = datetime.fromtimestamp(since / 1000).astimezone()
    number = (datetime.now().date() - first.date()).days  # noqa: DTZ005  # where we are
    if number >= MOST_DAYS:
        raise UsageError(f"{number} days are too many lines", hint="a later --since, or --by coder")
    later = [datetime.combine(first.date() + timedelta(days=k), time.min) for k in range(1, number + 1)]
    return tuple(day.astimezone().isoformat() for day in (first, *later))


def drawn(found: Cost) -> list[str]:
    """The table, and what has to be known to read it."""
    from fleet.cli.transcript import one_line
    from fleet.cli.words import aligned, count, printable, when

    shown = [*found.lines, found.total]
    names = [printable(one_line(line.name)) for line in shown]
    rows = [(found.by.upper(), *HEADER), *((name, *_cells(line)) for name, line in zip(names, shown, strict=True))]
    lines = [*aligned(rows, right=True), ""]
    if found.total.unpriced:
        lines.append(f"{count(found.total.unpriced, 'session')} did not tell the cost, which is in no sum.")
    if found.running.sessions:
        lines.append(f"Running now, in no sum yet: {count(found.running.sessions, 'session')}, {money(found.running)}.")
    zone = " Days begin at midnight here." if found.by == "day" else ""
    return [*lines, f"What ended since {when(found.since)} ({_zone(found.since)}).{zone}"]


def _cells(line: CostLine) -> tuple[str, ...]:
    from fleet.cli.words import span

    if not line.sessions:
        return ("-", "0", "-", "-", "-", "-")
    amounts = (line.input_tokens, line.cached_tokens, line.output_tokens)
    return (money(line), f"{line.sessions:,}", *(f"{n:,}" for n in amounts), span(line.duration_ms))


def money(line: CostLine) -> str:
    """What is known of it: all, that it is more than so much, or nothing."""
    from fleet.cli.run_view import dollars

    if line.cost_microusd is None:
        return "unknown"
    known = dollars(line.cost_microusd) if line.cost_microusd else "$0.00"
    return f"> {known}" if line.unpriced else known


def _zone(at: int) -> str:
    import time

    offset = time.strftime("%z", time.localtime(at / 1000))
    return f"UTC{offset[:3]}:{offset[3:]}"
