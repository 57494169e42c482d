"""The checkup: what a machine and a home have, what they lack, and what mends it. It looks and changes nothing."""

from __future__ import annotations

import os
import shlex
import shutil
import stat
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from enum import StrEnum
from pathlib import Path

import msgspec

from fleet.config.home import Home
from fleet.config.settings import MODELLESS, Settings
from fleet.errors import FleetError, HomeError
from fleet.model.states import OPEN
from fleet.model.supervisor import Supervisor
from fleet.model.task import effective
from fleet.projections.plugged import failed_lately, tried
from fleet.store.mirror import decode_line
from fleet.store.reads import Reads

LOOK_SECONDS = 5.0  # for a program to tell its version
LITTLE_SPACE, NO_SPACE = 1 << 30, 50 << 20
OLDEST_PYTHON = (3, 11)
OLDEST_SQLITE = (3, 51, 3)  # past the WAL-reset bug
LOOKED_AT = 1000
INSTALL = {
    "claude": "npm install -g @anthropic-ai/claude-code@latest",
    "codex": "npm install -g @openai/codex@latest",
    "gemini": "npm install -g @google/gemini-cli@latest",
    "opencode": "npm install -g opencode-ai@latest",
    "agy": "install Antigravity (https://antigravity.google); the PyPI package `agy` is something else",
}


class Level(StrEnum):
    """How bad it is."""

    OK = "ok"
    WARN = "warn"
    FAIL = "FAIL"


class Check(msgspec.Struct, frozen=True, kw_only=True):
    """One thing that was looked at."""

    level: Level
    what: str
    detail: str
    hint: str = ""


def ok(what: str, detail: str) -> Check:
    """It is fine."""
    return Check(level=Level.OK, what=what, detail=detail)


def warn(what: str, detail: str, hint: str = "") -> Check:
    """It works, but."""
    return Check(level=Level.WARN, what=what, detail=detail, hint=hint)


def fail(what: str, detail: str, hint: str = "") -> Check:
    """Something will not work."""
    return Check(level=Level.FAIL, what=what, detail=detail, hint=hint)


def checkup(
    home: Home,
    settings: Settings | FleetError,
    *,
    open_reads: Callable[[], Reads],
    supervisor: int | None,
    env: Mapping[str, str],
) -> list[Check]:
    """Everything, in the order in which one would mend it. `supervisor` is the process that holds the home, if any."""
    checks = [*_language(), *_programs(env), *_home(home)]
    if isinstance(settings, FleetError):
        return [*checks, fail("settings", str(settings), settings.hint)]
    checks.append(ok("settings", f"{home.toml.name} is right" if home.toml.exists() else "all defaults"))
    wanted: dict[str, int] = {}
    if home.exists:
        checks += _store(home, settings, open_reads, supervisor, wanted)
    return [*checks, *_coders(settings, wanted, env), *_plugins(settings, wanted), *_beads(settings, env)]


def _language() -> list[Check]:
    import apsw

    python, sqlite = ".".join(map(str, sys.version_info[:3])), apsw.sqlite_lib_version()
    good = sys.version_info >= OLDEST_PYTHON
    new = tuple(int(part) for part in sqlite.split(".")) >= OLDEST_SQLITE
    return [
        ok("python", f"{python} at {sys.executable}")
        if good
        else fail("python", f"{python} is too old", "install Python 3.11 or newer"),
        ok("sqlite", f"{sqlite}, with apsw")
        if new
        else fail("sqlite", f"{sqlite} may damage a database", "pip install --upgrade apsw"),
    ]


def _programs(env: Mapping[str, str]) -> list[Check]:
    """What the runner of sessions and some agents need."""
    path = env.get("PATH")
    found = {name: shutil.which(name, path=path) for name in ("sh", "setsid", "perl", "git", "tmux")}
    checks = [
        ok("sh", found["sh"]) if found["sh"] else fail("sh", "not on the PATH", "no agent can be started without it")
    ]
    leader = found["setsid"] or found["perl"]
    checks.append(
        ok("setsid or perl", leader)
        if leader
        else fail("setsid or perl", "neither is on the PATH", "install util-linux, or perl")
    )
    git = found["git"]
    checks.append(
        ok("git", _version(git, env)) if git else warn("git", "not installed", "most agents want it: install git")
    )
    tmux = found["tmux"]
    checks.append(ok("tmux", _version(tmux, env, "-V") if tmux else "not installed; only pools need it"))
    return checks


def _home(home: Home) -> list[Check]:
    try:
        if not home.exists:
            return [fail("home", f"there is none at {home.path}", "fleet init")]
    except HomeError as exc:  # another's, most likely
        return [fail("home", str(exc), exc.hint)]
    checks = []
    mode = stat.S_IMODE(home.path.stat().st_mode)
    if home.path.stat().st_uid != os.geteuid():
        checks.append(fail("home", f"{home.path} belongs to somebody else", "choose another with --home"))
    elif not os.access(home.path, os.W_OK, effective_ids=os.access in os.supports_effective_ids):
        hint = "chmod u+w, unless its disk is mounted read-only; or choose another with --home"
        checks.append(fail("home", f"{home.path} cannot be written (mode {mode:o})", hint))
    elif mode & 0o077:
        checks.append(warn("home", f"others may look into {home.path} (mode {mode:o})", "fleet init --force"))
    else:
        checks.append(ok("home", f"{home.path} (mode {mode:o})"))
    checks += _private(home)
    needed = (home.logs, home.tasks, home.sessions, home.bells, home.leases)
    missing = [each.name for each in needed if not each.is_dir()]
    if missing:
        checks.append(fail("directories", f"{', '.join(missing)} missing", "fleet init"))
    free = shutil.disk_usage(home.path).free
    space = f"{free / (1 << 30):.1f} GiB free"
    if free < NO_SPACE:
        checks.append(fail("disk", space, "free some space: nothing can be recorded on a full disk"))
    elif free < LITTLE_SPACE:
        checks.append(warn("disk", space, "agents write logs and files: free some space"))
    else:
        checks.append(ok("disk", space))
    return checks


def _private(home: Home) -> list[Check]:
    """The files with secrets in them: one that others may read is refused where it is needed."""
    there = [path for path in home.private if path.exists()]
    opened = [path for path in there if stat.S_IMODE(path.stat().st_mode) & 0o077]
    if not opened:
        return [ok("secrets", f"{', '.join(path.name for path in there)}: nobody else may read")] if there else []
    names = shlex.join(str(path) for path in opened)
    return [fail("secrets", f"others may read {', '.join(map(str, opened))}", f"chmod 600 {names}")]


def _store(
    home: Home, settings: Settings, open_reads: Callable[[], Reads], supervisor: int | None, wanted: dict[str, int]
) -> list[Check]:
    """The database, the mirror, who supervises. Notes in `wanted` how many open tasks want each coder."""
    where = "PostgreSQL" if settings.store.url else home.db.name
    try:
        with closing(open_reads()) as reads:
            total = sum(reads.counts().values())
            newest = reads.last(1)
            events = newest[0].seq if newest else 0
            checks = [ok("store", f"{where} answers, {events} {'event' if events == 1 else 'events'}")]
            checks += _mirror(home, settings, reads)
            checks += _supervisor(reads, supervisor, total)
            checks += [
                warn("plugins", f"{uid}: {why}", f"fleet why {uid}") for uid, why in failed_lately(reads).items()
            ]
            given = settings.supervisor
            for task in reads.tasks(OPEN, limit=LOOKED_AT):
                chosen = effective(task.coder, None, default_coder=given.coder, default_model="")
                wanted[chosen.coder] = wanted.get(chosen.coder, 0) + 1
            return checks
    except FleetError as exc:
        return [fail("store", str(exc), exc.hint)]


def _mirror(home: Home, settings: Settings, reads: Reads) -> list[Check]:
    """Whether fleet.jsonl ends where the ledger does."""
    if settings.store.mirror == "off" or (settings.store.mirror == "auto" and settings.store.url):
        return []
    newest = reads.last(1)
    if not newest:
        return []
    try:
        line = _last_line(home.mirror)
        entry = decode_line(line, home.mirror.name) if line else None
    except FileNotFoundError:
        entry = None
    except (OSError, FleetError) as exc:
        return [warn("mirror", f"{home.mirror.name} cannot be read: {exc}", "fleet init begins it again")]
    at = entry.seq if entry else 0
    if entry is not None and (known := reads.place(at)) is not None and known[0] != entry.hash:
        return [warn("mirror", f"{home.mirror.name} is of another ledger", "fleet init begins it again")]
    if at < newest[0].seq:
        behind = f"{home.mirror.name} ends at event {at} of {newest[0].seq}"
        return [warn("mirror", behind, "fleet init (the next change catches up too)")]
    return [ok("mirror", f"{home.mirror.name} is in step")]


def _last_line(path: Path) -> bytes:
    """The last whole line of a file."""
    with path.open("rb") as file:
        size, block = file.seek(0, os.SEEK_END), 1 << 16
        while True:
            start = max(0, size - block)
            file.seek(start)
            lines = file.read(size - start).split(b"\n")[:-1]
            if len(lines) > 1 or not start:
                return lines[-1] if lines else b""
            block *= 4


def _supervisor(reads: Reads, pid: int | None, total: int) -> list[Check]:
    present, orphans = reads.supervisors(), reads.orphans()
    live = reads.sessions(live=True)
    names = ", ".join(f"{each.id} (process {each.pid})" for each in present)
    checks = [ok("supervisor", f"{names}, {_sessions(len(live))} live")] if present else []
    silent = reads.silent()
    checks += [_silent(each, silent[each.id]) for each in present if each.id in silent]
    if not present and (live or (total and reads.ready(limit=1))):
        work = f"{_sessions(len(live))} open" if live else "tasks are ready"
        checks.append(warn("supervisor", f"none is running, and {work}", "fleet run --detach"))
    elif not present:
        checks.append(ok("supervisor", "none is running, and nothing waits for one"))
    lapsed = [session.id for session in live if session.supervisor not in {each.id for each in present}]
    if present and (orphans or lapsed):
        checks.append(warn("leases", f"{_sessions(len(orphans) or len(lapsed))} left by a supervisor that is gone"))
    elif present:
        checks.append(ok("leases", "every live session belongs to a supervisor that lives"))
    if pid is not None and not present:
        checks.append(fail("leases", f"process {pid} holds the home and has no lease", "fleet run stop"))
    return checks


def _silent(each: Supervisor, ms: int) -> Check:
    """A supervisor that lives and does nothing."""
    return fail(
        "supervisor",
        f"{each.id} (process {each.pid}) has given no sign of life for {ms // 1000} s: it was stopped, or hangs",
        f"kill -CONT {each.pid}; if that does not help kill -9 {each.pid} and fleet run --detach: its agents go on",
    )


def _sessions(n: int) -> str:
    return "1 session is" if n == 1 else f"{n} sessions are"


def _coders(settings: Settings, wanted: dict[str, int], env: Mapping[str, str]) -> list[Check]:
    """The programs of the coders. One that is not there matters only where it is asked for."""
    programs = {name: program_of(settings, name) for name in INSTALL}
    for name in (settings.supervisor.coder, *wanted):
        configured = settings.coders.get(name)
        if name not in MODELLESS and not (configured and configured.python):  # a file tells its own program
            programs.setdefault(name, program_of(settings, name))
    found = {name: shutil.which(program, path=env.get("PATH")) for name, program in programs.items()}
    there = {name: path for name, path in found.items() if path}
    with ThreadPoolExecutor(max_workers=len(there) or 1) as pool:
        versions = dict(zip(there, pool.map(lambda path: _version(path, env), there.values()), strict=True))
    checks = [ok(name, f"{versions[name]} at {path}") for name, path in there.items()]
    for name in (name for name in programs if name not in there):
        hint = INSTALL.get(name, f"install it, or name its program in [coders.{name}]")
        if name == settings.supervisor.coder:
            other = "; or choose another: fleet config set coder=..."
            checks.append(fail(name, f"the coder of every task that names none: no `{programs[name]}`", hint + other))
        elif wanted.get(name):
            checks.append(fail(name, f"{wanted[name]} open tasks want it: no `{programs[name]}` on the PATH", hint))
    asked = {settings.supervisor.coder, *wanted}
    unasked = [name for name in INSTALL if name not in there and name not in asked]
    if unasked:
        checks.append(ok("other coders", f"not installed, and not asked for: {', '.join(unasked)}"))
    return checks


def _plugins(settings: Settings, wanted: dict[str, int]) -> list[Check]:
    """The coders that others brought: one that breaks its contract fails each of its sessions."""
    checks = []
    for name, wrong in tried(settings, (settings.supervisor.coder, *settings.own_coders, *wanted)).items():
        hint = f"mend or update the plugin, or give its tasks another coder than {name}"
        checks.append(
            fail("plugins", wrong, hint) if wrong else ok("plugins", f"the coder `{name}` is of the contract")
        )
    return checks


def program_of(settings: Settings, name: str) -> str:
    """The program that a coder runs: what [coders.NAME] says, else its own name."""
    configured = settings.coders.get(name)
    if configured is None:
        return name
    return configured.program or (configured.argv[0] if configured.argv else name)


def _beads(settings: Settings, env: Mapping[str, str]) -> list[Check]:
    if settings.queue.source != "beads":
        return []
    from fleet.sources.beads import find_bd

    try:
        return [ok("bd", _version(find_bd(env), env))]
    except FleetError as exc:
        return [fail("bd", str(exc), exc.hint)]


def _version(program: str, env: Mapping[str, str], flag: str = "--version") -> str:
    """What a program says of itself, or why it does not."""
    said = _say([program, flag], env)
    return said or "it does not tell its version"


def _say(argv: Sequence[str], env: Mapping[str, str]) -> str:
    """The first line that a program answers, else complains, within a deadline; it is ended with what it started."""
    try:
        with subprocess.Popen(
            argv,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env=dict(env),
            start_new_session=True,
        ) as process:
            try:
                out, err = process.communicate(timeout=LOOK_SECONDS)
            except subprocess.TimeoutExpired:
                os.killpg(process.pid, 9)
                process.communicate()
                return f"no answer within {LOOK_SECONDS:g} s"
    except OSError as exc:
        return f"it cannot be started: {exc.strerror}"
    lines = (out.strip() or err).decode("utf-8", "replace").strip().splitlines()
    return "".join(c for c in lines[0] if c.isprintable())[:80] if lines else ""
