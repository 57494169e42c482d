"""The machines that sessions run on: list them, declare one, probe it, see how it answered, give it no more work.

Examples:
  fleet hosts
  fleet hosts probe builder-1
"""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from fleet.cli.parsing import add_verb, moment
from fleet.errors import Ambiguous

if TYPE_CHECKING:
    from collections.abc import Sequence

    from fleet.cli.context import Context
    from fleet.model.host import Host
    from fleet.projections.hosts import HostView

ADD = "fleet hosts add builder-1 host=builder.example.com working_directory=/srv/work agent_binary=claude"
HISTORY = "fleet hosts history builder-1 --since 7d --json"
DAY_MS = 86_400_000
HEADER = ("HOST", "KIND", "STATE", "SINCE", "BUSY", "MS", "CAN", "EVIDENCE")


def configure(parser: argparse.ArgumentParser) -> None:
    """The verbs of `fleet hosts`."""
    verbs = parser.add_subparsers(dest="verb", metavar="VERB")
    add_verb(verbs, "list", "what is known of each host, which is also what no verb means", "fleet hosts list")
    add = add_verb(
        verbs,
        "add",
        "declare a host in fleet.toml, of kind ssh unless kind=... says otherwise",
        ADD,
        f"{ADD} capabilities=linux,gpu",
    )
    add.add_argument("name", metavar="NAME", help="what you call it")
    add.add_argument("fields", metavar="FIELD=VALUE", nargs="*", help="as [[hosts]] of fleet.toml has them")
    remove = add_verb(verbs, "remove", "take a host out of fleet.toml", "fleet hosts remove builder-1")
    remove.add_argument("name", metavar="NAME", help="a host")
    probe = add_verb(verbs, "probe", "ask hosts whether they can run sessions", "fleet hosts probe builder-1")
    probe.add_argument("names", metavar="NAME", nargs="*", help="hosts; all where none is named")
    history = add_verb(verbs, "history", "how a host has answered over time", "fleet hosts history builder-1", HISTORY)
    history.add_argument("name", metavar="NAME", help="a host, by either name")
    history.add_argument(
        "--since", metavar="T", type=moment, help="from when on: 2h, 7d, 14:30 or 2026-01-31; a day if not given"
    )
    for name, text in (("drain", "give a host no new work; what runs on it goes on"), ("resume", "give it work again")):
        verb = add_verb(verbs, name, text, f"fleet hosts {name} builder-1")
        verb.add_argument("name", metavar="NAME", help="a host")


def run(args: argparse.Namespace, context: Context) -> int:
    """Print them, or do what was asked."""
    if args.verb not in (None, "list"):
        context.here(f"`fleet hosts {args.verb}`")
    match args.verb:
        case "add":
            return _add(args, context)
        case "remove":
            context.host_verbs.remove(args.name)
            return _say(context, {"removed": args.name}, f"Removed {args.name} from {context.home.toml}")
        case "probe":
            return _probe(args.names, context)
        case "history":
            return _history(args, context)
        case "drain" | "resume":
            verbs = context.host_verbs
            host = verbs.drain(args.name) if args.verb == "drain" else verbs.resume(args.name)
            word = "takes no new work; `fleet hosts resume` undoes it" if host.draining else "takes work again"
            return _say(context, host, f"{host.name} {word}")
        case _:
            return _list(context)


def _add(args: argparse.Namespace, context: Context) -> int:
    made = context.host_verbs.add(args.name, args.fields)
    hint = f"`fleet hosts probe {args.name}` asks whether it can run sessions"
    return _say(context, made, f"Added {args.name} to {context.home.toml}; {hint}")


def _probe(names: Sequence[str], context: Context) -> int:
    """The exit code is 1 where a host cannot run sessions."""
    found = context.host_verbs.probe(names)
    if context.json:
        context.print_json(found)
    else:
        for host in found:
            context.print(_probed(host))
        if not found:
            context.note("no host is declared that sessions run on; `fleet hosts add` adds one")
    return 1 if any(host.state != "up" for host in found) else 0


def _probed(host: Host) -> str:
    took = f" in {host.latency_ms} ms" if host.latency_ms is not None else ""
    return f"{host.name}: {host.state}{took}: {host.evidence}"


def _history(args: argparse.Namespace, context: Context) -> int:
    from fleet.cli.host_history import drawn
    from fleet.config.clock import utc_ms
    from fleet.policy.selection import called, select
    from fleet.projections.availability import history

    host, *more = select(context.settings.hosts, names=[args.name])
    if more:
        several = ", ".join(each.name for each in (host, *more))
        raise Ambiguous(f"several hosts are meant: {several}", hint="name one of them")
    now = utc_ms()
    found = history(context.reads, host.name, since=args.since if args.since is not None else now - DAY_MS, now=now)
    if context.json:
        context.print_json(found)
    else:
        context.print("\n".join(drawn(found, called(host))))
    return 0


def _list(context: Context) -> int:
    found = context.front.hosts()
    if context.json:
        context.print_json(found)
        return 0
    from fleet.cli.words import aligned

    lines = aligned([HEADER, *(_cells(host) for host in found)])
    for line in lines:
        context.print(line)
    return 0


def _cells(host: HostView) -> tuple[str, ...]:
    from fleet.cli.words import ago

    return (
        host.name,
        host.kind,
        f"{host.state}, drains" if host.draining else host.state,
        ago(host.since) if host.since else "-",
        f"{host.sessions}/{host.slots}",
        str(host.latency_ms) if host.latency_ms is not None else "-",
        ",".join(host.capabilities) or "-",
        host.evidence,
    )


def _say(context: Context, value: object, text: str) -> int:
    if context.json:
        context.print_json(value)
    else:
        context.print(text)
    return 0
