"""From what a person wants of a service to everything that it takes: which jobs, which programs, which paths."""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Mapping

import msgspec

from fleet.config.environment import expand, user_home
from fleet.config.installed import By, Job, Scope
from fleet.config.settings import Settings
from fleet.control.service import Plan, plan
from fleet.control.units import PROGRAMS, Place
from fleet.errors import UsageError
from fleet.hosts.schedulers import Machine
from fleet.model.schedule import Every

HEALTH_LOG = "/var/log/fleet-healthcheck.log"  # for the whole machine; a user's own lies in the home
USUAL_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"


class Wish(msgspec.Struct, frozen=True, kw_only=True):
    """What a person asks for; what is left out is chosen."""

    scope: Scope | None = None
    by: By | None = None
    health_every: Every | None = None
    pool_check: Every | None = None
    supervisor: bool = False
    scripts: str | None = None
    health_log: str | None = None


def scope_of(wish: Scope | None, machine: Machine) -> Scope:
    """For the machine where root asks, else for whoever asks."""
    root = os.geteuid() == 0
    if wish == "system" and not root and machine.root is None:
        raise UsageError("only root may install for the whole machine", hint="use sudo, or --user for yourself alone")
    return wish or ("system" if root else "user")


def make_plan(
    wish: Wish, machine: Machine, home: str, settings: Settings, *, user: str, env: Mapping[str, str]
) -> Plan:
    """All that has to be written and started."""
    scope = scope_of(wish.scope, machine)
    scripts = _absolute(wish.scripts or ("/usr/local/bin" if scope == "system" else "~/.local/bin"), env)
    jobs = _timed(wish, scripts, _health_log(wish, scope, home, settings, env))
    if wish.supervisor:
        jobs.append(Job(name="supervisor", every="", program=f"{scripts}/{PROGRAMS['supervisor']}"))
    if not jobs:
        raise UsageError("nothing is to be done", hint="leave out --no-health, or add --supervisor")
    place = Place(
        home=_fit(home),
        scope=scope,
        argv=fleet_itself(),
        path=_fit(env.get("PATH") or USUAL_PATH),
        user_home=_fit(user_home(env)),
        shared_store=bool(settings.store.url),
    )
    by = wish.by or machine.keeper(scope)
    return plan(machine, by=by, place=place, user=user, jobs=jobs, unit_directory=_unit_directory(scope, env))


def fleet_itself() -> tuple[str, ...]:
    """How this very Fleet is called, from anywhere."""
    beside = os.path.join(os.path.dirname(sys.executable), "fleet")
    if shutil.which(beside):
        return (beside,)
    return (sys.executable, "-P", "-m", "fleet")  # -P: not what lies in the current directory


def _timed(wish: Wish, scripts: str, log: str) -> list[Job]:
    """What is done every so often. Where the pools log to is a setting of each pool."""
    jobs = []
    if wish.health_every:
        program = f"{scripts}/{PROGRAMS['health']}"
        jobs.append(Job(name="health", every=str(wish.health_every), program=program, log=log))
    if wish.pool_check:
        jobs.append(Job(name="pool-check", every=str(wish.pool_check), program=f"{scripts}/{PROGRAMS['pool-check']}"))
    return jobs


def _health_log(wish: Wish, scope: Scope, home: str, settings: Settings, env: Mapping[str, str]) -> str:
    usual = HEALTH_LOG if scope == "system" else os.path.join(home, expand(settings.health.log_file, env))
    return _absolute(wish.health_log or usual, env)


def _unit_directory(scope: Scope, env: Mapping[str, str]) -> str:
    if scope == "system":
        return "/etc/systemd/system"
    return _absolute(env.get("XDG_CONFIG_HOME") or "~/.config", env) + "/systemd/user"


def _absolute(path: str, env: Mapping[str, str]) -> str:
    return _fit(os.path.abspath(expand(path, env)))


def _fit(text: str) -> str:
    """A word that can stand in a script, a unit and a crontab."""
    if not text.isprintable():
        raise UsageError(f"{text!r} has characters that neither a unit nor a crontab can hold")
    return text


def account() -> str:
    """The name of the account that this runs as: whose crontab it is, and whom systemd lets linger."""
    import pwd

    try:
        return pwd.getpwuid(os.geteuid()).pw_name
    except KeyError:
        return str(os.geteuid())
