"""Have systemd or cron do it: check the hosts every quarter of an hour, keep a supervisor up, look after the pools.

systemd timers where systemd runs, else lines in your crontab, between two marks; other lines stay as they are. As root
for the whole machine, else for yourself alone. Installing again changes only what differs; uninstalling leaves nothing
behind but the home and the logs. `status` ends with 1 where something is not in place, with 4 where nothing is there.

Examples:
  fleet service install --health-every 15m --supervisor
  fleet service status
"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING

from fleet.cli.parsing import add_verb
from fleet.errors import UsageError

if TYPE_CHECKING:
    from fleet.cli.context import Context
    from fleet.config.home import Home
    from fleet.config.settings import Settings
    from fleet.control.service import Plan
    from fleet.control.service_plan import Wish
    from fleet.hosts.schedulers import Machine
    from fleet.model.schedule import Every
    from fleet.projections.service import JobView


def configure(parser: argparse.ArgumentParser) -> None:
    """The verbs of `fleet service`."""
    verbs = parser.add_subparsers(dest="verb", metavar="VERB", required=True)
    install = add_verb(
        verbs,
        "install",
        "have systemd or cron check the hosts, and what else is named",
        "fleet service install --health-every 15m --supervisor",
        "fleet service install --by cron --dry-run",
    )
    install.add_argument("--health-every", metavar="TIME", type=_every, help="how often the hosts are checked (15m)")
    install.add_argument("--no-health", action="store_true", help="do not check the hosts")
    install.add_argument("--supervisor", action="store_true", help="also keep a supervisor of the queue up")
    install.add_argument("--pool-check", metavar="TIME", type=_every, help="also look after the pools, every 30m say")
    install.add_argument("--by", choices=["systemd", "cron"], help="who is to do it (systemd, where it runs)")
    install.add_argument("--bin-dir", metavar="DIR", help="where the scripts go (/usr/local/bin or ~/.local/bin)")
    install.add_argument("--health-log", metavar="FILE", help="(/var/log/fleet-healthcheck.log; --user: in the home)")
    install.add_argument("--token-file", metavar="FILE", help="has the token of the sprites, to be kept; - is stdin")
    install.add_argument("--dry-run", action="store_true", help="print what would be written; write nothing")
    who = install.add_mutually_exclusive_group()
    who.add_argument("--user", action="store_const", dest="scope", const="user", help="for yourself alone")
    who.add_argument("--system", action="store_const", dest="scope", const="system", help="for the whole machine")
    status = add_verb(
        verbs,
        "status",
        "whether what was installed is in place, and what it last said",
        "fleet service status",
        "fleet service status --json",
    )
    uninstall = add_verb(
        verbs,
        "uninstall",
        "take away what was installed; the home, the logs and the agents stay",
        "fleet service uninstall",
        "fleet service uninstall --json",
    )
    for verb in (install, status, uninstall):
        verb.add_argument("--root", metavar="DIR", help="take DIR for /: write below it, ask and start nothing")


def run(args: argparse.Namespace, context: Context) -> int:
    """Install, look, or take away."""
    from fleet.config.environment import environ
    from fleet.config.home import Home, refuse_root_elsewhere, require
    from fleet.hosts.schedulers import Machine

    machine = Machine(Path(args.root).resolve() if args.root else None, environ())
    home = Home(machine.place(str(context.home.path)))
    if machine.root is None:
        require(home)
    match args.verb:
        case "install":
            refuse_root_elsewhere(home)  # what is installed would be refused whenever it begins
            return _install(args, context, machine, home)
        case "status":
            return _status(context, machine, home)
        case _:
            return _uninstall(context, machine, home)


def _install(args: argparse.Namespace, context: Context, machine: Machine, home: Home) -> int:
    from fleet.cli import tokens
    from fleet.config.environment import environ
    from fleet.config.load import load
    from fleet.control.service import install
    from fleet.control.service_plan import account, make_plan

    settings = load(home)
    plan = make_plan(_wish(args), machine, str(context.home.path), settings, user=account(), env=environ())
    if args.dry_run:
        return _show(plan, context, machine)
    given = tokens.find(home, settings.sprites.token_env, file=args.token_file, ask=_wants_token(settings))
    changed = install(machine, home, plan)
    kept = tokens.keep(home, settings.sprites.token_env, given, wanted=_wants_token(settings))
    notes = _notes(plan, machine)
    if context.json:
        done = {"by": plan.by, "scope": plan.place.scope, "user": plan.user, "jobs": plan.jobs, "changed": changed}
        context.print_json({**done, "token": kept, "notes": notes})
        return 0
    who = "the whole machine" if plan.place.scope == "system" else plan.user
    context.print(f"{'Installed' if changed else 'Nothing has changed: installed'} for {who}, by {plan.by}")
    for job in plan.jobs:
        context.print(f"  {job.name:<11} {_often(job.every):<17} {job.program}")
        if job.log:
            context.print(f"  {'':<29} logs to {job.log}")
    context.print(f"  {'token':<11} {kept}")
    for note in notes:
        context.note(f"note: {note}")
    context.note("`fleet service status` tells how it goes")
    return 0


def _wish(args: argparse.Namespace) -> Wish:
    from fleet.control.service_plan import Wish
    from fleet.model.schedule import Every

    if args.no_health and (args.health_every or args.health_log):
        raise UsageError("--no-health goes with neither --health-every nor --health-log")
    return Wish(
        scope=args.scope,
        by=args.by,
        health_every=None if args.no_health else args.health_every or Every(15),
        pool_check=args.pool_check,
        supervisor=args.supervisor,
        scripts=args.bin_dir,
        health_log=args.health_log,
    )


def _wants_token(settings: Settings) -> bool:
    """Where only machines of other kinds are declared, nobody needs to be asked for a token."""
    return not settings.hosts or any(host.kind == "sprite" for host in settings.hosts)


def _show(plan: Plan, context: Context, machine: Machine) -> int:
    if context.json:
        told = {"by": plan.by, "scope": plan.place.scope, "user": plan.user, "jobs": plan.jobs}
        context.print_json({**told, "files": plan.files, "crontab": plan.crontab})
        return 0
    for file in plan.files:
        path = machine.place(file.path)
        if file.link:
            context.print(f"=== {path} -> {file.link}\n")
        else:
            context.print(f"=== {path} (mode {file.mode:04o})\n{file.text}")
    if plan.crontab is not None:
        context.print(f"=== the crontab of {plan.user}\n{plan.crontab}")
    context.note("nothing was written")
    return 0


def _notes(plan: Plan, machine: Machine) -> list[str]:
    """What a person should know before they walk away."""
    notes = []
    if (plan.by, plan.place.scope) == ("systemd", "user") and not machine.lingers(plan.user):
        notes.append(
            f"this happens only while {plan.user} is logged in; `loginctl enable-linger {plan.user}` makes it go on"
        )
    if plan.place.scope == "system" and any(job.name == "supervisor" for job in plan.jobs):
        notes.append("agents will run as root; to run them as somebody else, install as that user with --user")
    if machine.root is not None:
        notes.append(f"this is below {machine.root}; nothing was started")
    return notes


def _status(context: Context, machine: Machine, home: Home) -> int:
    from fleet.projections.service import look

    view = look(machine, home, seen_home=str(context.home.path))
    if context.json:
        context.print_json({"ok": view.ok, "service": view})
        return int(not view.ok)
    who = "the whole machine" if view.scope == "system" else view.user
    context.print(f"Installed for {who}, by {view.by}")
    for job in view.jobs:
        _print_job(job, context)
    if view.lingers is False:
        context.note(f"note: only while {view.user} is logged in; `loginctl enable-linger {view.user}` makes it go on")
    return int(not view.ok)


def _print_job(job: JobView, context: Context) -> None:
    from fleet.cli.transcript import one_line
    from fleet.cli.words import printable

    context.print(f"{'FAIL' if job.problem else 'ok':<4}  {job.name:<11} {_often(job.every):<17} {job.program}")
    if job.problem:
        context.print(f"      {job.problem}; mend it with: fleet service install, as before")
    if job.next:
        context.print(f"      next: {job.next}")
    if job.last:
        context.print(f"      last: {printable(one_line(job.last, 200))}")
    elif job.log:
        context.print(f"      nothing in {job.log} yet")


def _uninstall(context: Context, machine: Machine, home: Home) -> int:
    from fleet.control.service import uninstall

    removed = uninstall(machine, home)
    if context.json:
        context.print_json(removed)
        return 0
    context.print(f"Uninstalled: {', '.join(job.name for job in removed.jobs)}")
    for path in removed.files:
        context.print(f"  removed {path}")
    for path in removed.logs_kept:
        context.print(f"  kept    {path}")
    context.print(f"  kept    {context.home.path}")
    if removed.by == "cron" and any(job.name == "supervisor" for job in removed.jobs):
        from fleet.supervisor.guard import holders

        if holders(home.path):
            context.note("note: the supervisor that runs goes on; `fleet run stop` ends it")
    return 0


def _often(every: str) -> str:
    from fleet.model.schedule import Every

    return Every.parse(every).words if every else "all the time"


def _every(word: str) -> Every:
    from fleet.model.schedule import Every

    try:
        return Every.parse(word)
    except ValueError as exc:
        raise argparse.ArgumentTypeError(str(exc)) from exc
