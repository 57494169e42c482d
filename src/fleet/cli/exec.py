"""Run a command on the hosts, many at a time; print what each answers as it answers.

A sprite that sleeps is woken by it, which costs money. At the end of the time the command is killed over there;
Ctrl-C ends it everywhere and tells what had been done. The exit code is 0 when it succeeded on every host, else 1.

Examples:
  fleet exec "df -h /"
  fleet exec -t 120 --team agents --group "claude --version"
"""

from __future__ import annotations

import argparse
import re
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from fleet.cli.machines import PARALLEL
from fleet.cli.parsing import add_selection, positive
from fleet.errors import NotFound, UsageError

if TYPE_CHECKING:
    from fleet.cli.context import Context
    from fleet.config.machines import Host
    from fleet.hosts.fanout import Command, Ran

RULE = "=" * 60
LONGEST = 50  # of the command, in the first line
CUT = "  (cut off here)"  # behind the output of what was killed
# Run as what its first line says, such as python; gone afterwards, and its own input is empty.
SCRIPT = """
umask 077
file=$(mktemp) || exit
trap 'rm -f "$file"' EXIT
trap 'exit 143' HUP INT TERM
cat >"$file" && chmod 700 "$file" && "$file" </dev/null
"""


def configure(parser: argparse.ArgumentParser) -> None:
    """The options of `fleet exec`."""
    parser.add_argument("command", metavar="CMD", nargs="?", help="what to run, by sh")
    parser.add_argument(
        "-t", "--timeout", metavar="SECONDS", type=positive, help="kill it after so long (else timeouts.command_exec)"
    )
    add_selection(parser)
    parser.add_argument(
        "--parallel", metavar="N", type=positive, default=PARALLEL, help=f"so many hosts at a time ({PARALLEL})"
    )
    parser.add_argument("--stdin", metavar="FILE", help="what it reads on every host; - means our own input")
    parser.add_argument("--script", metavar="FILE", type=Path, help="run this file in the place of a command")
    parser.add_argument("--group", action="store_true", help="fold equal answers at the end, the rarest first")
    parser.add_argument("--yes", action="store_true", help="do not ask before what looks destructive")


def run(args: argparse.Namespace, context: Context) -> int:
    """Run it everywhere, and count."""
    from fleet.cli.machines import selected

    text, command = _command(args, context)
    hosts = selected(args, context)
    if not args.yes and not _agreed(text, hosts, context):
        context.note("nothing was run")
        return 1
    if not context.json:
        context.print(f"{_head(args, text, hosts)}\n{RULE}")
        context.out.flush()
    return _execute(args, command, hosts, context)


def _execute(args: argparse.Namespace, command: Command, hosts: list[Host], context: Context) -> int:
    """The command on each host, told as the answers come; the exit code."""
    from fleet.cli.machines import everywhere, names_of

    names = names_of(hosts)

    def tell(ran: Ran) -> None:
        if not (context.json or args.group):
            context.print(answer(names[ran.host], ran))
            context.out.flush()

    results, signalled = everywhere(command, hosts, context, parallel=args.parallel, tell=tell)
    succeeded = sum(ran.end == "ok" for ran in results)
    if context.json:
        context.print_json({"total": len(results), "succeeded": succeeded, "results": results})
    else:
        if args.group:
            context.print("\n".join(grouped(results, hosts)))
        context.print(f"Complete: {succeeded}/{len(results)} succeeded")
    return signalled or int(succeeded < len(results))


def answer(name: str, ran: Ran) -> str:
    """One host: how it ended, and what it printed, set in."""
    from fleet.cli.words import printable

    lines = [line for text in (ran.stdout, ran.stderr) for line in text.splitlines()]
    told = [f"[{name}] {ended(ran)}", *(f"  {printable(line)}".rstrip() for line in lines)]
    return "\n".join([*told, *([CUT] if ran.cut_off and lines else [])])


def ended(ran: Ran) -> str:
    """How it ended, in words."""
    if ran.end == "ok":
        return "OK"
    if ran.code is not None:
        return f"FAILED (signal {-ran.code})" if ran.code < 0 else f"FAILED (exit {ran.code})"
    return f"{ran.end.upper()}: {ran.reason}"


def grouped(results: list[Ran], hosts: list[Host]) -> list[str]:
    """Equal answers once, the rarest first: it is what differs that is looked for. Hosts that could not be reached for
    the same reason are equal too, though each reason names its own."""
    from msgspec.structs import replace

    from fleet.cli.machines import names_of

    names, by_name = names_of(hosts), {host.name: host for host in hosts}
    groups: dict[tuple[str, *tuple[object, ...]], list[Ran]] = {}
    for ran in results:
        why = _nameless(ran.reason, by_name[ran.host])
        groups.setdefault((why, ran.end, ran.code, ran.stdout, ran.stderr), []).append(ran)
    told = []
    for (why, *_), group in sorted(groups.items(), key=lambda one: (len(one[1]), one[1][0].end == "ok")):
        first = group[0] if len(group) == 1 else replace(group[0], reason=why)
        told.append(answer(", ".join(names[ran.host] for ran in group), first))
    return told


def _nameless(reason: str, host: Host) -> str:
    """A reason without what the host is called and where it is."""
    for word in sorted({host.name, host.api_name, host.host} - {""}, key=len, reverse=True):
        reason = re.sub(rf"(?<![\w.-]){re.escape(word)}(?!\.?[\w-])", "HOST", reason)
    return reason


def _command(args: argparse.Namespace, context: Context) -> tuple[str, Command]:
    """What is run, as a person reads it and as a host does."""
    from fleet.hosts.fanout import Command

    if args.command is not None and args.script:
        raise UsageError("a command and --script cannot go together", hint="put the command into the script")
    if not args.script and not (args.command or "").strip():
        raise UsageError("give a command, or --script FILE", hint='such as: fleet exec "df -h /"')
    if args.script and args.stdin:
        raise UsageError("--stdin and --script cannot go together", hint="the script is sent by that way")
    seconds = args.timeout or context.settings.timeouts.command_exec
    if args.script:
        script = _bytes(args.script)
        return script.decode("utf-8", "replace"), Command(argv=("sh", "-c", SCRIPT), stdin=script, seconds=seconds)
    stdin = b""
    if args.stdin:
        stdin = sys.stdin.buffer.read() if args.stdin == "-" else _bytes(Path(args.stdin))
    return args.command, Command(argv=("sh", "-c", args.command), stdin=stdin, seconds=seconds)


def _bytes(file: Path) -> bytes:
    try:
        return file.read_bytes()
    except OSError as exc:
        raise NotFound(f"cannot read {file}: {exc.strerror}") from exc


def _head(args: argparse.Namespace, text: str, hosts: list[Host]) -> str:
    from fleet.cli.words import count, printable
    from fleet.policy.selection import noun

    flat = printable(args.script.name if args.script else " ".join(text.split()))
    return f"Executing on {count(len(hosts), noun(hosts))}: {flat[:LONGEST]}..."


def _agreed(text: str, hosts: list[Host], context: Context) -> bool:
    """Whether to go on: asked of a person at a terminal, where it looks destructive and goes to several hosts."""
    from fleet.cli.words import count
    from fleet.policy.destructive import looks_destructive
    from fleet.policy.selection import noun

    sign = looks_destructive(text) if len(hosts) > 1 else None
    if sign is None or sys.stdin is None or not (sys.stdin.isatty() and context.err.isatty()):
        return True
    context.err.write(f"This command {sign}, on {count(len(hosts), noun(hosts))}. Run it? [y/N] ")
    context.err.flush()
    return sys.stdin.readline().strip().lower() in ("y", "yes")
