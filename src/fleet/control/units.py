"""The text of what a service is made of: scripts, systemd units, lines of a crontab. Pure: from jobs to files."""

from __future__ import annotations

import shlex
from collections.abc import Sequence

import msgspec

from fleet.config.installed import Job, Scope
from fleet.errors import Conflict
from fleet.model.schedule import Every

PROGRAMS = {"health": "fleet-healthcheck", "pool-check": "fleet-pool-check", "supervisor": "fleet-supervisor"}
ABOUT = {
    "health": "Fleet: whether all hosts are well",
    "pool-check": "Fleet: what the workers of the pools do",
    "supervisor": "Fleet: the supervisor of the queue",
}
KEPT_UP = Every(5)  # how often cron looks whether a supervisor is up
BEGIN, END = "# BEGIN fleet service", "# END fleet service"


class Place(msgspec.Struct, frozen=True, kw_only=True):
    """For whom, and with what, the jobs are done."""

    home: str
    scope: Scope
    argv: tuple[str, ...]  # how this Fleet is called
    path: str  # where programs are looked for: neither cron nor systemd has the PATH of a person
    user_home: str
    shared_store: bool = False


class File(msgspec.Struct, frozen=True, kw_only=True):
    """A file to be written, or a link to one."""

    path: str
    text: str = ""
    mode: int = 0o644
    link: str = ""


def mark(home: str) -> str:
    """The words by which a file is known as ours, for this home."""
    return f"Made by `fleet service install` for {home}"


def script(job: Job, place: Place, *, detached: bool) -> File:
    """What runs a job, and may be run by hand. It exists so that cron and systemd need to know one word alone."""
    lines = [
        "#!/bin/sh",
        f"# {mark(place.home)}; `fleet service uninstall` removes it.",
        f"PATH={shlex.quote(place.path)}",
        f"HOME=${{HOME:-{shlex.quote(place.user_home)}}}",
        "export PATH HOME",
    ]
    call = shlex.join([*place.argv, "--home", place.home, *_words(job, detached=detached)])
    if detached:  # 3: there is a supervisor, as there should be
        lines.append(f"{call} >/dev/null 2>&1 || [ $? -eq 3 ]")
    else:
        lines.append(f'exec {call} "$@"')
    return File(path=job.program, text="\n".join(lines) + "\n", mode=0o755)


def units(job: Job, place: Place, directory: str) -> list[File]:
    """The units of systemd for a job, with the links that enable them."""
    name = unit_of(job)
    files = [File(path=f"{directory}/fleet-{job.name}.service", text=_service(job, place))]
    if job.every:
        files.append(File(path=f"{directory}/{name}", text=_timer(job, place)))
    files.append(File(path=f"{directory}/{_target(job, place)}.wants/{name}", link=f"../{name}"))
    return files


def unit_of(job: Job) -> str:
    """The unit that is enabled."""
    return f"fleet-{job.name}.{'timer' if job.every else 'service'}"


def with_block(crontab: str, jobs: Sequence[Job], place: Place) -> str:
    """A crontab with our lines in it, in the place of those that we put there before; all others stay."""
    before, after = _around(crontab, place.home)
    if before and not before.endswith("\n"):
        before += "\n"
    lines = [f"{BEGIN}: {place.home}", *(line for job in jobs for line in _cron_lines(job, place))]
    return before + "\n".join([*lines, f"{END}: {place.home}"]) + "\n" + after


def without_block(crontab: str, home: str) -> str:
    """A crontab without our lines."""
    return "".join(_around(crontab, home))


def block(crontab: str, home: str) -> list[str]:
    """Our lines in a crontab, without the marks."""
    before, after = _around(crontab, home)
    return crontab[len(before) : len(crontab) - len(after)].splitlines()[1:-1]


def _words(job: Job, *, detached: bool) -> list[str]:
    match job.name:
        case "health":
            return ["health", "--quiet", "--log", job.log]
        case "pool-check":
            return ["pool", "check", "--silent"]
        case "supervisor":
            return ["run", "--detach"] if detached else ["run", "--quiet"]


def _service(job: Job, place: Place) -> str:
    lines = [f"# {mark(place.home)}; `fleet service uninstall` removes it.", "[Unit]", f"Description={ABOUT[job.name]}"]
    if place.scope == "system":  # the manager of a user knows nothing of the network
        lines += ["Wants=network-online.target", "After=network-online.target"]
    if job.every:
        return "\n".join([*lines, "", "[Service]", "Type=oneshot", _exec(job), "TimeoutStartSec=15min"]) + "\n"
    lines += [
        "StartLimitIntervalSec=0",
        "",
        "[Service]",
        "Type=exec",
        _exec(job),
        "# Agents outlive their supervisor: a stop ends it alone, and an agent without memory does not end the others.",
        "KillMode=process",
        "OOMPolicy=continue",
        "# Not after `fleet run stop`, which is a person's word.",
        "Restart=on-failure",
        "RestartSec=5",
        "TimeoutStopSec=90",
        "",
        "[Install]",
        f"WantedBy={_target(job, place)}",
    ]
    return "\n".join(lines) + "\n"


def _timer(job: Job, place: Place) -> str:
    every = Every.parse(job.every)
    lines = [
        f"# {mark(place.home)}; `fleet service uninstall` removes it.",
        "[Unit]",
        f"Description={ABOUT[job.name]}, {every.words}",
        "",
        "[Timer]",
        f"OnCalendar={every.calendar}",
        "AccuracySec=10s",
        "Persistent=true",
        "",
        "[Install]",
        f"WantedBy={_target(job, place)}",
    ]
    return "\n".join(lines) + "\n"


def _target(job: Job, place: Place) -> str:
    if job.every:
        return "timers.target"
    return "multi-user.target" if place.scope == "system" else "default.target"


def _exec(job: Job) -> str:
    """systemd has its own quotes, and reads % and $ even within them."""
    word = job.program.replace("\\", "\\\\").replace('"', '\\"').replace("%", "%%").replace("$", "$$")
    return f'ExecStart="{word}"'


def _cron_lines(job: Job, place: Place) -> list[str]:
    command = shlex.quote(job.program).replace("%", "\\%")  # cron takes a % for the end of the line
    if job.every:
        return [f"{Every.parse(job.every).cron} {command}"]
    if place.shared_store:  # others may supervise too, so that nothing tells cron whether its own one is up
        return [f"@reboot {command}"]
    return [f"@reboot {command}", f"{KEPT_UP.cron} {command}"]


def _around(crontab: str, home: str) -> tuple[str, str]:
    """What stands before our lines, and what after; all of it before, where we have none."""
    begin, end = f"{BEGIN}: {home}", f"{END}: {home}"
    lines = crontab.splitlines(keepends=True)
    marks = [(at, line.rstrip("\r\n")) for at, line in enumerate(lines) if line.rstrip("\r\n") in (begin, end)]
    if not marks:
        return crontab, ""
    if [text for _, text in marks] != [begin, end]:
        raise Conflict(
            f"the crontab has marks of {home} that do not belong together; nothing was changed",
            hint=f"edit it with `crontab -e`: remove the lines between `{begin}` and `{end}`, and these two",
        )
    first, last = marks[0][0], marks[1][0]
    return "".join(lines[:first]), "".join(lines[last + 1 :])
