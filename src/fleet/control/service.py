"""Put a home into the hands of systemd or cron, and take it out again. What was put there is listed in the home."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Sequence
from pathlib import Path

import msgspec
from msgspec.structs import replace

from fleet.config import installed
from fleet.config.files import failed, read_bytes, write_atomic
from fleet.config.home import Home
from fleet.config.installed import By, Installed, Job
from fleet.control.units import File, Place, mark, script, unit_of, units, with_block, without_block
from fleet.errors import Conflict, NotFound
from fleet.hosts.schedulers import Machine


class Plan(msgspec.Struct, frozen=True, kw_only=True):
    """Everything that an installation writes and starts; nothing of it has happened."""

    by: By
    place: Place
    user: str
    jobs: tuple[Job, ...]
    files: tuple[File, ...]
    crontab: str | None = None  # all of it, where cron is used


class Removed(msgspec.Struct, frozen=True, kw_only=True):
    """What was taken away, and what stays."""

    by: By
    jobs: tuple[Job, ...]
    files: tuple[str, ...]
    logs_kept: tuple[str, ...]


def plan(machine: Machine, *, by: By, place: Place, user: str, jobs: Sequence[Job], unit_directory: str) -> Plan:
    """What it takes to have these jobs done. Conflict where something of somebody else's is in the way."""
    files = [script(job, place, detached=by == "cron" and job.name == "supervisor") for job in jobs]
    crontab = None
    if by == "systemd":
        files += [file for job in jobs for file in units(job, place, unit_directory)]
    else:
        crontab = with_block(machine.crontab(user) or "", jobs, place)
    for file in files:
        _refuse_foreign(machine.place(file.path), file, place.home)
    return Plan(by=by, place=place, user=user, jobs=tuple(jobs), files=tuple(files), crontab=crontab)


def install(machine: Machine, home: Home, plan: Plan) -> list[str]:
    """Do what was planned; what an earlier installation has beyond it is taken away. Returns what changed.

    The list in the home goes first: whatever we are stopped in, `uninstall` finds all of it.
    """
    before = installed.read(home)
    if before is not None and (before.by, before.scope) != (plan.by, plan.place.scope):
        uninstall(machine, home)
        before = None
    made = tuple(_missing_directories(machine, plan.files))
    now = Installed(
        home=plan.place.home,
        by=plan.by,
        scope=plan.place.scope,
        user=plan.user,
        jobs=plan.jobs,
        files=tuple(file.path for file in plan.files),
        directories=_united(before.directories if before else (), made),
        crontab_made=before.crontab_made if before else plan.by == "cron" and machine.crontab(plan.user) is None,
    )
    old = before.files if before else ()
    installed.write(home, replace(now, files=_united(old, now.files)))
    surplus = [path for path in old if path not in now.files]
    if surplus and before:
        _stop(machine, before, [job for job in before.jobs if job.name not in {one.name for one in plan.jobs}])
    changed = [file.path for file in plan.files if _put(machine.place(file.path), file)]
    changed += [path for path in surplus if _take(machine.place(path))]
    changed += _schedule(machine, plan, changed)
    installed.write(home, now)
    return changed


def uninstall(machine: Machine, home: Home) -> Removed:
    """Take away everything that was installed for this home, and stop it. Agents run on, logs and home stay.

    So does a supervisor that cron has started: cron never stops what it starts.
    """
    found = installed.read(home)
    if found is None:
        raise NotFound(f"no service is installed for {home.path}", hint="`fleet service install` installs one")
    _stop(machine, found, found.jobs)
    if found.by == "cron":
        _leave_crontab(machine, found)
    taken = tuple(path for path in found.files if _take(machine.place(path)))
    for directory in reversed(found.directories):
        with contextlib.suppress(OSError):  # somebody else has put something into it
            machine.place(directory).rmdir()
    if found.by == "systemd":
        machine.systemctl(found.scope, "daemon-reload")
        machine.systemctl(found.scope, "reset-failed", "fleet-*", check=False)
    installed.forget(home)
    logs = tuple(job.log for job in found.jobs if job.log and machine.place(job.log).exists())
    return Removed(by=found.by, jobs=found.jobs, files=taken, logs_kept=logs)


def _leave_crontab(machine: Machine, found: Installed) -> None:
    present = machine.crontab(found.user)
    if present is None:
        return
    rest = without_block(present, found.home)
    if rest != present:
        machine.set_crontab(found.user, None if found.crontab_made and not rest.strip() else rest)


def _schedule(machine: Machine, plan: Plan, changed: Sequence[str]) -> list[str]:
    """Let systemd or cron know; what has not changed goes on undisturbed. Returns what else was changed."""
    if plan.crontab is not None:
        if plan.crontab == machine.crontab(plan.user):
            return []
        machine.set_crontab(plan.user, plan.crontab)
        return [f"the crontab of {plan.user}"]
    scope = plan.place.scope
    if changed:
        machine.systemctl(scope, "daemon-reload")
    for job in plan.jobs:
        ours = [path for path in changed if path == job.program or f"/fleet-{job.name}." in path]
        machine.systemctl(scope, "restart" if ours else "start", unit_of(job))
    return []


def _stop(machine: Machine, found: Installed, jobs: Sequence[Job]) -> None:
    if found.by == "systemd":
        for job in jobs:
            machine.systemctl(found.scope, "stop", unit_of(job), check=False)  # it may be gone by hand
            if job.every:  # systemd keeps when a timer last went off
                machine.systemctl(found.scope, "clean", "--what=state", unit_of(job), check=False)


def _refuse_foreign(path: Path, file: File, home: str) -> None:
    if not os.path.lexists(path):
        return
    if file.link:
        ours = path.is_symlink() and os.readlink(path) == file.link
    else:
        ours = path.is_file() and mark(home).encode() + b";" in (read_bytes(path) or b"")
    if not ours:
        raise Conflict(
            f"{path} is there already, and was not made for {home}",
            hint="if it is of another home, `fleet --home THAT_HOME service uninstall`; else move it away",
        )


def _missing_directories(machine: Machine, files: Sequence[File]) -> list[str]:
    """The directories that must be made for the files, the outermost first."""
    missing: list[str] = []
    for file in files:
        parents = [str(parent) for parent in reversed(Path(file.path).parents)]
        missing += [each for each in parents if not machine.place(each).is_dir() and each not in missing]
    return missing


def _put(path: Path, file: File) -> bool:
    """Whether anything had to be written."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        if file.link:
            if path.is_symlink() and os.readlink(path) == file.link:
                return False
            path.symlink_to(file.link)
            return True
        if read_bytes(path) == file.text.encode() and path.stat().st_mode & 0o777 == file.mode:
            return False
    except OSError as exc:
        raise failed(exc, "write", path) from exc
    write_atomic(path, file.text.encode(), mode=file.mode)
    return True


def _take(path: Path) -> bool:
    try:
        path.unlink()
    except FileNotFoundError:
        return False
    except OSError as exc:
        raise failed(exc, "remove", path) from exc
    return True


def _united(first: Sequence[str], second: Sequence[str]) -> tuple[str, ...]:
    return (*first, *(each for each in second if each not in first))
