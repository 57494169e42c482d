"""Whether what `fleet service install` put on this machine is still there and works."""

from __future__ import annotations

import os
from pathlib import Path

import msgspec

from fleet.config import installed
from fleet.config.home import Home
from fleet.config.installed import By, Installed, Job, Scope
from fleet.errors import NotFound, ProgramError
from fleet.hosts.schedulers import Machine

TAIL_BYTES = 4096


class JobView(msgspec.Struct, frozen=True, kw_only=True):
    """A job, as it is now."""

    name: str
    every: str
    program: str
    log: str
    problem: str = ""  # why it is not done, where that is known
    last: str = ""  # the last line of its log
    state: str = ""  # what systemd says of it
    next: str = ""  # when systemd does it again


class ServiceView(msgspec.Struct, frozen=True, kw_only=True):
    """Everything that is installed for a home."""

    by: By
    scope: Scope
    user: str
    jobs: tuple[JobView, ...]
    lingers: bool | None = None  # of a user's systemd: whether it goes on when nobody is logged in

    @property
    def ok(self) -> bool:
        """Whether nothing is wrong with it."""
        return not any(job.problem for job in self.jobs)


def look(machine: Machine, home: Home, *, seen_home: str) -> ServiceView:
    """What is installed, and whether it is in place. NotFound where nothing is."""
    found = installed.read(home)
    if found is None:
        raise NotFound(f"no service is installed for {seen_home}", hint="`fleet service install` installs one")
    lines = ""
    if found.by == "cron":
        try:
            lines = machine.crontab(found.user) or ""
        except ProgramError as exc:
            lines = f"# {exc}"
    return ServiceView(
        by=found.by,
        scope=found.scope,
        user=found.user,
        jobs=tuple(_job(machine, found, job, lines) for job in found.jobs),
        lingers=machine.lingers(found.user) if (found.by, found.scope) == ("systemd", "user") else None,
    )


def _job(machine: Machine, found: Installed, job: Job, crontab: str) -> JobView:
    shown = _shown(machine, found, job)
    return JobView(
        name=job.name,
        every=job.every,
        program=job.program,
        log=job.log,
        problem=_problem(machine, found, job, crontab, shown),
        last=_last_line(machine.place(job.log)) if job.log else "",
        state=shown.get("ActiveState", ""),
        next=shown.get("NextElapseUSecRealtime", ""),
    )


def _problem(machine: Machine, found: Installed, job: Job, crontab: str, shown: dict[str, str]) -> str:
    of_job = [path for path in found.files if f"/fleet-{job.name}." in path] + [job.program]
    gone = [path for path in of_job if not os.path.lexists(machine.place(path))]
    if gone:
        return f"{gone[0]} is missing"
    if not os.access(machine.place(job.program), os.X_OK):
        return f"{job.program} cannot be run"
    if found.by == "cron":
        command = job.program.replace("%", "\\%")
        return "" if command in crontab else f"the crontab of {found.user} does not have it"
    state = shown.get("ActiveState")
    return f"systemd says it is {state}" if state not in (None, "active", "activating", "reloading") else ""


def _shown(machine: Machine, found: Installed, job: Job) -> dict[str, str]:
    if found.by != "systemd":
        return {}
    unit = f"fleet-{job.name}.{'timer' if job.every else 'service'}"
    try:
        said = machine.systemctl(found.scope, "show", "--property=ActiveState,NextElapseUSecRealtime", unit)
    except ProgramError as exc:
        return {"ActiveState": f"not known ({exc})"}
    return dict(line.split("=", 1) for line in said.splitlines() if "=" in line)


def _last_line(path: Path) -> str:
    try:
        with path.open("rb") as file:
            file.seek(max(0, file.seek(0, os.SEEK_END) - TAIL_BYTES))
            lines = file.read().decode("utf-8", "replace").splitlines()
    except OSError:
        return ""
    return lines[-1] if lines else ""
