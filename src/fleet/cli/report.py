"""An inventory of the hosts: what each is, how it is, what is wrong. JSON, or Markdown, CSV or HTML.

Sleeping sprites are left asleep, unless --wake or `status.wake` say otherwise. A file is replaced in one step; its
directory must be there. With --url nothing is woken or asked: the last probes there tell.

Examples:
  fleet report -o /var/log/fleet-report.json
  fleet report --format md --team agents
"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING, Any

from fleet.cli.parsing import add_selection, moment
from fleet.errors import NotFound, UsageError

if TYPE_CHECKING:
    from fleet.cli.context import Context
    from fleet.projections.availability import Availability
    from fleet.projections.machines import Machines

COLUMNS = ("name", "api_name", "kind", "team", "role", "status", "responsive", "ms", "coder", "healthy", "reason")
OVER_TIME = ("uptime_pct", "probes", "ms_mean", "ms_most")  # the columns that follow
HEADER = (*COLUMNS, *OVER_TIME)
WEEK_MS = 7 * 86_400_000


def configure(parser: argparse.ArgumentParser) -> None:
    """The options of `fleet report`."""
    parser.add_argument("-o", "--output", metavar="FILE", type=Path, help="write it there, in one step")
    parser.add_argument("--format", choices=["json", "md", "csv", "html"], default="json", help="json if not given")
    add_selection(parser)
    parser.add_argument(
        "--since",
        metavar="T",
        type=moment,
        help="count availability from then on: 24h, 30d, a date; a week if not given",
    )
    parser.add_argument("--no-probe", action="store_true", help="report what the last probes found")
    parser.add_argument("--wake", action="store_true", help="wake sleeping hosts to probe them, which costs money")


def run(args: argparse.Namespace, context: Context) -> int:
    """Look at all, and write it down."""
    if args.wake and args.no_probe:
        raise UsageError("--wake and --no-probe cannot go together", hint="--no-probe asks no host anything")
    from fleet.cli import output

    if args.output is not None:
        output.check(args.output)
    found, signalled = _machines(args, context)
    if signalled:
        return signalled
    text = FORMATS["json" if context.json else args.format](report_of(found, _availability(args, found, context)))
    if args.output is None:
        context.out.write(text)
        return 0
    output.write(args.output, text.encode())
    return 0


def _machines(args: argparse.Namespace, context: Context) -> tuple[Machines, int]:
    """The machines, and the exit code of a signal that ended the look."""
    if not context.url:
        from fleet.cli.machine_table import machines
        from fleet.cli.machines import selected

        return machines(args, selected(args, context), context)
    if args.wake or args.team or args.role or args.host:
        context.here("--wake" if args.wake else "a choice of hosts")
    found = context.front.machines()
    if not found.total:
        raise NotFound("there are no hosts", hint="the fleet that is served there declares none")
    return found, 0


def _availability(args: argparse.Namespace, found: Machines, context: Context) -> dict[str, Availability]:
    """How each of them has answered over time, this look among it."""
    from fleet.config.clock import utc_ms
    from fleet.projections.availability import availability

    since = args.since if args.since is not None else utc_ms() - WEEK_MS
    known, nothing = context.front.availability(since), availability([], since)  # of one that was taken away meanwhile
    return {machine.name: known.get(machine.name, nothing) for machine in found.machines}


def report_of(found: Machines, over_time: dict[str, Availability]) -> dict[str, Any]:
    """The report of the first Fleet Manager, with more in it; `sprites` holds hosts of every kind."""
    from datetime import UTC, datetime

    from fleet import __version__

    ill = [machine for machine in found.machines if machine.healthy is False]
    errors = [f"{each.api_name}: {each.reason}{f': {each.detail}' if each.detail else ''}" for each in ill]
    return {
        "timestamp": datetime.now(UTC).isoformat(timespec="microseconds"),
        "total": found.total,
        "healthy": found.healthy,
        "unhealthy": found.unhealthy,
        "sprites": found.machines,
        "errors": ([f"api: {found.api_fault}"] if found.api_fault else []) + errors,
        "asleep": found.asleep,
        "unknown": found.unknown,
        "warnings": [f"{each.api_name}: {text}" for each in found.machines for text in each.warnings],
        "availability": over_time,
        "fleet": __version__,
    }


def _json(report: dict[str, Any]) -> str:
    from fleet.cli.context import encode_json

    return encode_json(report) + "\n"


def _rows(report: dict[str, Any]) -> list[list[str]]:
    """The cells of the table, each on one line."""
    over_time = report["availability"]
    return [
        [_cell(getattr(machine, name)) for name in COLUMNS]
        + [_cell(getattr(over_time[machine.name], name)) for name in OVER_TIME]
        for machine in report["sprites"]
    ]


def _cell(value: object) -> str:
    if value is None:
        return ""
    if isinstance(value, bool):
        return "yes" if value else "no"
    return f"{value:g}" if isinstance(value, float) else " ".join(str(value).split())


def _summary(report: dict[str, Any]) -> str:
    totals = [f"{report['total']} in all", f"{report['healthy']} healthy", f"{report['unhealthy']} unhealthy"]
    return ", ".join([*totals, *(f"{report[word]} {word}" for word in ("asleep", "unknown") if report[word])])


def _markdown(report: dict[str, Any]) -> str:
    lines = ["# Fleet report", "", f"{report['timestamp']}: {_summary(report)}.", ""]
    lines += [f"| {' | '.join(HEADER)} |", f"|{'---|' * len(HEADER)}"]
    lines += ["| " + " | ".join(cell.replace("|", "\\|") for cell in row) + " |" for row in _rows(report)]
    told = [*report["errors"], *report["warnings"]]
    return "\n".join([*lines, *(["", *(f"- {' '.join(each.split())}" for each in told)] if told else [])]) + "\n"


def _csv(report: dict[str, Any]) -> str:
    import csv
    import io

    text = io.StringIO()
    csv.writer(text).writerows([HEADER, *_rows(report)])
    return text.getvalue()


def _html(report: dict[str, Any]) -> str:
    from html import escape

    def line(cells: list[str], tag: str) -> str:
        return "<tr>" + "".join(f"<{tag}>{escape(cell)}</{tag}>" for cell in cells) + "</tr>"

    told = [*report["errors"], *report["warnings"]]
    rows = [line([*HEADER], "th"), *(line(row, "td") for row in _rows(report))]
    return "\n".join(
        [
            '<!doctype html>\n<html lang="en"><head><meta charset="utf-8"><title>Fleet report</title>',
            "<style>body{font-family:sans-serif}td,th{padding:.2em .8em;text-align:left}</style></head><body>",
            f"<h1>Fleet report</h1>\n<p>{escape(report['timestamp'])}: {escape(_summary(report))}.</p>",
            "<table>",
            *rows,
            "</table>",
            *(["<ul>", *(f"<li>{escape(each)}</li>" for each in told), "</ul>"] if told else []),
            "</body></html>\n",
        ]
    )


FORMATS = {"json": _json, "md": _markdown, "csv": _csv, "html": _html}
