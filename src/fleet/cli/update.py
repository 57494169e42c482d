"""Update a package on the hosts, and tell its version before and after on each.

How is said in `[updates.NAME]` of fleet.toml; else by the package manager that installed it there: apt, npm, brew or
pip, or the program's own way. --canary N tries it on the first N hosts, and goes on only when all of them succeed.

Examples:
  fleet update infisical
  fleet update claude --team agents --canary 1
"""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from fleet.cli.machines import PARALLEL
from fleet.cli.parsing import add_selection, positive

if TYPE_CHECKING:
    from fleet.cli.context import Context
    from fleet.config.machines import Host
    from fleet.hosts.fanout import Command, Ran

SECONDS = 600  # a download may take long
TAIL = 10  # lines of what a failed update said


def configure(parser: argparse.ArgumentParser) -> None:
    """The options of `fleet update`."""
    parser.add_argument("package", metavar="PKG", help="the package")
    parser.add_argument(
        "-t", "--timeout", metavar="SECONDS", type=positive, default=SECONDS, help=f"kill it after so long ({SECONDS})"
    )
    add_selection(parser)
    parser.add_argument(
        "--parallel", metavar="N", type=positive, default=PARALLEL, help=f"so many hosts at a time ({PARALLEL})"
    )
    parser.add_argument("--canary", metavar="N", type=positive, help="N hosts first; stop if one of them fails")


def run(args: argparse.Namespace, context: Context) -> int:
    """The canaries, then the others; and count."""
    from fleet.cli.machines import selected

    hosts = selected(args, context)
    command = _command(args, context)
    if not context.json:
        context.print(f"Updating '{args.package}' on {_where(hosts, context)}...")
        context.out.flush()
    first = min(args.canary or len(hosts), len(hosts))
    results, code = _update(args, command, hosts[:first], context)
    failed = any(ran.end != "ok" for ran in results)
    left = hosts[first:]
    if left and not failed and not code:
        more, code = _update(args, command, left, context)
        results += more
        left = []
    return _conclude(args, results, left, code, context)


def _conclude(args: argparse.Namespace, results: list[Ran], left: list[Host], code: int, context: Context) -> int:
    from fleet.hosts.updates import versions

    succeeded = sum(ran.end == "ok" for ran in results)
    total = len(results) + len(left)
    if context.json:
        told = [
            {
                "host": ran.host,
                "end": ran.end,
                "code": ran.code,
                "before": versions(ran.stdout)[0],
                "after": versions(ran.stdout)[1],
                "began": ran.began,
                "log": ran.stderr,
                "cut_off": ran.cut_off,
                "reason": ran.reason,
                "ms": ran.ms,
            }
            for ran in results
        ]
        untouched = [host.name for host in left]
        context.print_json(
            {"package": args.package, "total": total, "succeeded": succeeded, "results": told, "untouched": untouched}
        )
    else:
        if left:
            context.print(f"Stopped: the canary failed; not touched: {', '.join(host.name for host in left)}")
        context.print(f"Complete: {succeeded}/{total} succeeded")
    return code or int(succeeded < total)


def _update(args: argparse.Namespace, command: Command, hosts: list[Host], context: Context) -> tuple[list[Ran], int]:
    from fleet.cli.machines import everywhere, names_of

    names = names_of(hosts)

    def tell(ran: Ran) -> None:
        if not context.json:
            context.print(_answer(names[ran.host], ran))
            context.out.flush()

    return everywhere(command, hosts, context, parallel=args.parallel, tell=tell)


def _command(args: argparse.Namespace, context: Context) -> Command:
    from fleet.hosts.fanout import Command
    from fleet.hosts.updates import update_script

    recipe = context.settings.updates.get(args.package)
    given = {"command": recipe.command, "version": recipe.version} if recipe else {}
    return Command(argv=("sh", "-c", update_script(args.package, **given)), seconds=args.timeout)


def _where(hosts: list[Host], context: Context) -> str:
    from fleet.cli.words import count
    from fleet.policy.selection import noun

    everywhere = len(hosts) == len(context.settings.hosts)
    return f"all {noun(hosts)}s" if everywhere else count(len(hosts), noun(hosts))


def _answer(name: str, ran: Ran) -> str:
    """One host: the versions, or the end of what was said where it failed."""
    from fleet.cli.exec import CUT, ended
    from fleet.cli.words import printable
    from fleet.hosts.updates import versions

    lines = [f"[{name}] {ended(ran)}"]
    before, after = (version or "unknown" for version in versions(ran.stdout))
    if ran.end == "ok":
        lines.append(f"  {after} (as before)" if before == after else f"  {before} -> {after}")
    said = [f"  {line}" for line in ran.stderr.splitlines()[-TAIL:] if ran.end != "ok"]
    lines += [*said, CUT] if said and ran.cut_off else said
    return "\n".join(printable(line) for line in lines)
