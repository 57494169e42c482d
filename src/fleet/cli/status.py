"""Where everything stands, on one screen: the work counted by state, who failed, what needs you; then the machines.

The machines are probed at once, each within its time. A sprite that sleeps is shown as asleep; --wake wakes it, which
costs money. The exit code is 0 whatever is found: `fleet health` judges.

Examples:
  fleet status
  fleet status --team agents
"""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from fleet.cli.parsing import add_selection
from fleet.errors import NotFound, UsageError

if TYPE_CHECKING:
    from fleet.cli.context import Context
    from fleet.projections.status import Status


def configure(parser: argparse.ArgumentParser) -> None:
    """The options of `fleet status`."""
    parser.add_argument("--run", metavar="R", help="only the tasks of this run")
    add_selection(parser)
    parser.add_argument("--no-probe", action="store_true", help="show what the last probes of the hosts found")
    parser.add_argument("--wake", action="store_true", help="wake sleeping hosts to probe them, which costs money")
    parser.add_argument("-w", "--watch", action="store_true", help="keep the hosts up to date, until Ctrl-C")


def run(args: argparse.Namespace, context: Context) -> int:
    """The work, then the machines; of chosen machines, only these."""
    chosen = bool(args.team or args.role or args.host)
    if args.run and (chosen or args.watch):
        raise UsageError("--run is for tasks, --team, --role, --host and --watch are for machines", hint="give one")
    if args.wake and args.no_probe:
        raise UsageError("--wake and --no-probe cannot go together", hint="--no-probe asks no host anything")
    if context.url:
        if chosen or args.watch or args.wake:
            context.here("a look at the machines")
        return _work(args, context)
    if not (chosen or args.watch) and (args.run or not context.settings.hosts):
        return _work(args, context)
    from fleet.cli import machine_table
    from fleet.cli.machines import selected

    if args.watch and not context.settings.hosts:
        hint = "`fleet top` shows the work as it goes; machines are declared as [[hosts]] in fleet.toml"
        raise NotFound("there are no hosts to watch", hint=hint)
    hosts = selected(args, context)
    if args.watch:
        return machine_table.watch(args, hosts, context)
    if context.json:
        from msgspec import structs

        found, code = machine_table.machines(args, hosts, context)
        context.print_json(found if chosen else {**structs.asdict(_status(args, context)), "machines": found})
        return code
    if not chosen and _status(args, context).total:
        _work(args, context)
        context.print()
        context.out.flush()
    return machine_table.machine_part(args, hosts, context)


def _status(args: argparse.Namespace, context: Context) -> Status:
    return context.front.status(args.run)


def _work(args: argparse.Namespace, context: Context) -> int:
    """The counts, then what needs a person."""
    found = _status(args, context)
    if context.json:
        context.print_json(found)
    else:
        context.print("\n".join(_lines(found)))
        if context.bd_keeps_the_queue:
            context.print(_queue(found))
    return 0


def _queue(found: Status) -> str:
    """How the outside queue answers, as far as a supervisor has asked it."""
    from fleet.cli.words import ago, lasting

    last = found.queue
    if last is None or not found.supervisors:
        return "Queue: kept by bd; the tasks above are those that were taken from it (fleet bd stats shows all)"
    if last.error:
        return f"Queue: bd has failed {lasting(last.since)} and is asked again: {last.error}"
    waits = f"{last.left} more ready" if last.left else "all that is ready is taken"
    return f"Queue: kept by bd; {waits} ({ago(last.at)})"


def _lines(found: Status) -> list[str]:
    from fleet.cli.words import ago, count, span
    from fleet.model.task import ASKED

    n = found.counts
    lines = [f"Fleet: {count(found.total, 'task')} in {found.home}", ""]
    lines.append(_row(n, "queued", "running", "verifying", "blocked"))
    lines.append(_row(n, "completed", "partial", "failed", "cancelled"))
    lines.append(_row(n, "restarted", "escalated", "interrupted", "stale"))
    if n["failed"]:
        who = ", ".join(f"{name} {n[name + '_failed']}" for name in ("transport", "task", "verifier"))
        lines.append(f"  failed by source: {who}")
    if found.runs:
        lines += ["", "Runs:"]
        lines += [f"  {each.id}  {each.name}: {count(each.tasks, 'task')}, {each.left} left" for each in found.runs]
    if needs := [*found.needs_you, *found.to_verify, *found.gave_up]:
        lines += ["", "Needs you:"]
        lines += [f"  {each.id}  {each.kind}, {ago(each.asked_at)}: {' '.join(each.text.split())}" for each in needs]
    lines += [f'  answer with: fleet answer {each.id} "..."' for each in found.needs_you if each.kind in ASKED][:1]
    lines += [f"  settle with: fleet verify {each.id} --pass (or --fail) --note ..." for each in found.to_verify][:1]
    lines += [f"  what may be done: fleet why {each.id}" for each in needs if each.kind not in {*ASKED, "verify"}][:1]
    if found.needs_you_count > len(found.needs_you):
        lines.append(f"  and {found.needs_you_count - len(found.needs_you)} more: fleet questions")
    lines.append("")
    quiet = {name: f" (no sign of life for {span(ms)}: fleet doctor)" for name, ms in found.silent.items()}
    names = ", ".join(f"{name}{quiet.get(name, '')}" for name in found.supervisors)
    lines.append(f"Supervisors: {names}" if names else "Supervisors: none is running")
    return lines


def _row(counts: dict[str, int], *names: str) -> str:
    return "  " + "".join(f"{f'{name} {counts[name]}':<16}" for name in names).rstrip()
