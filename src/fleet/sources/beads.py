"""The queue of beads, driven through its program `bd`.

bd's embedded database serves one process at a time, and unfairly; so the calls of one `Bd` go one after another.
A call that was cut off may have happened: read before saying it again.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import subprocess
import threading
from collections.abc import Mapping, Sequence

from fleet.config.home import Home
from fleet.errors import ProgramError, ProgramMissing
from fleet.sources.bd_answers import FLOOR, OLDEST, Answer, Trouble, Version, read, version_in

CALL_SECONDS = 120.0  # writes behind eight other processes took 23 s
INIT_SECONDS = 300.0
GRACE_SECONDS = 5.0
MADE = ("metadata.json", "embeddeddolt", "dolt", "beads.db")  # in .beads/, once there is a queue
ELSEWHERE = ("GIT_DIR", "GIT_WORK_TREE", "GIT_INDEX_FILE", "GIT_COMMON_DIR", "GIT_PREFIX", "BEADS_DB", "BD_DB")


def find_bd(env: Mapping[str, str]) -> str:
    """The bd program on the PATH."""
    found = shutil.which("bd", path=env.get("PATH"))
    if found is None:
        raise ProgramMissing(
            "bd is not installed, and [queue] source is beads",
            hint="install beads (https://github.com/gastownhall/beads), or run `fleet config set queue.source=fleet`",
        )
    return found


def environment(home: Home, env: Mapping[str, str]) -> dict[str, str]:
    """What bd gets to see: this home's queue and no other, and no repository that happens to surround the home."""
    made = {name: value for name, value in env.items() if name not in ELSEWHERE}
    made["BEADS_DIR"] = str(home.beads)
    made.setdefault("BD_JSON_ENVELOPE", "1")
    made.setdefault("BD_DISABLE_METRICS", "1")
    made.setdefault("BD_DISABLE_EVENT_FLUSH", "1")
    ceilings = [env.get("GIT_CEILING_DIRECTORIES", ""), os.path.dirname(os.path.realpath(home.path))]
    made["GIT_CEILING_DIRECTORIES"] = os.pathsep.join(filter(None, ceilings))
    if not (home.path / ".git").exists():
        _say_role(made)
    return made


def _say_role(env: dict[str, str]) -> None:
    """What `bd init` writes into a repository's configuration; without a repository bd would warn at every call."""
    given = env.get("GIT_CONFIG_COUNT", "0")
    n = int(given) if given.isdecimal() else 0
    env |= {
        "GIT_CONFIG_COUNT": str(n + 1),
        f"GIT_CONFIG_KEY_{n}": "beads.role",
        f"GIT_CONFIG_VALUE_{n}": "maintainer",
    }


class Bd:
    """One home's queue of beads."""

    def __init__(self, home: Home, program: str, env: Mapping[str, str]) -> None:
        self.home = home
        self.program = program
        self._env = environment(home, env)
        self._one_at_a_time = threading.Lock()
        self._running: subprocess.Popen[bytes] | None = None

    def forward(self, words: Sequence[str]) -> int:
        """Let bd speak with the terminal itself; returns its exit code. Ctrl-C reaches bd, and we wait for its end."""
        process = subprocess.Popen([self.program, *words], cwd=self.home.path, env=self._env)
        while True:
            try:
                code = process.wait()
            except KeyboardInterrupt:
                continue
            return code if code >= 0 else 128 - code

    def call(self, *words: str, stdin: bytes = b"", seconds: float = CALL_SECONDS) -> Answer:
        """Run one verb and read what it says. Never raises for what bd refuses."""
        quiet = {"BD_NON_INTERACTIVE": "1", "BD_NO_PAGER": "1", "NO_COLOR": "1", "BD_JSON_ENVELOPE": "1"}
        with self._one_at_a_time:
            process = subprocess.Popen(
                [self.program, *words],
                cwd=self.home.path,
                env=self._env | quiet,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                process_group=0,
            )
            self._running = process
            try:
                stdout, stderr = process.communicate(stdin, timeout=seconds)
            except subprocess.TimeoutExpired:
                stdout, stderr = _end(process)
                said = f"bd {words[0]} did not end within {seconds:g} s; it may have happened all the same"
                return Answer(code=process.returncode, stdout="", stderr=said, trouble=Trouble.UNKNOWN)
            except BaseException:
                _end(process)
                raise
            finally:
                self._running = None
        return read(process.returncode, stdout.decode("utf-8", "replace"), stderr.decode("utf-8", "replace"))

    def stop(self) -> None:
        """End a call that another thread makes: the supervisor does not wait for it. It may have happened."""
        process = self._running
        if process is not None:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGTERM)

    def version(self) -> Version:
        """Which bd this is. One that is not beads, or too old to be trusted, is refused."""
        answer = self.call("version", "--json", seconds=30)
        found = version_in(answer.stdout)
        if answer.code != 0 or found is None:
            raise ProgramError(
                f"{self.program} is not the bd of beads: {answer.text}", hint="put the right one first on the PATH"
            )
        if found < OLDEST:
            raise ProgramError(
                f"{self.program} is bd {_dotted(found)}; a failure of it cannot be told from a success",
                hint=f"install bd {_dotted(FLOOR)} or newer",
            )
        return found

    def show(self, issue: str) -> dict[str, object]:
        """An issue as it stands."""
        answer = self.call("show", issue, "--json")
        rows = answer.data if isinstance(answer.data, list) else [answer.data]
        for row in rows:
            if isinstance(row, dict) and row.get("id") == issue:
                return row
        raise ProgramError(f"bd does not show {issue}: {answer.text}")


def _end(process: subprocess.Popen[bytes]) -> tuple[bytes, bytes]:
    """End bd and all that it started."""
    for sign in (signal.SIGTERM, signal.SIGKILL):
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, sign)
        try:
            return process.communicate(timeout=GRACE_SECONDS)
        except subprocess.TimeoutExpired:
            continue
    process.kill()
    process.wait()
    return b"", b""


def has_queue(home: Home) -> bool:
    """Whether bd keeps a queue in this home."""
    return any((home.beads / sign).exists() for sign in MADE)


def init_beads(home: Home, *, prefix: str, force: bool, env: Mapping[str, str]) -> str | None:
    """Let bd make its queue in the home, once. Returns what there is to say about it.

    With `force` bd is asked again and may refuse: no flag is ever passed that lets it discard what is there. No
    repository is needed or made, and none that surrounds the home is touched.
    """
    there = has_queue(home)
    if there and not force:
        return None
    bd = Bd(home, find_bd(env), env)
    version = bd.version()
    ignore = home.path / ".gitignore"
    had_ignore = ignore.exists() or (home.path / ".git").exists()
    answer = bd.call(
        *("init", "--prefix", prefix, "--quiet", "--non-interactive", "--skip-hooks", "--skip-agents"),
        seconds=INIT_SECONDS,
    )
    if not had_ignore:
        ignore.unlink(missing_ok=True)  # bd's own; there is no repository here that it could speak to
    if there and "already initialized" in answer.text:
        return f"bd keeps the queue that is there in {home.beads}: it does not initialize it again"
    if answer.trouble or not has_queue(home):
        raise ProgramError(f"bd init failed: {answer.text}", hint=f"see what is in {home.beads}, then run it again")
    old = f", which is older than {_dotted(FLOOR)}: upgrade it" if version < FLOOR else ""
    return f"bd {_dotted(version)} keeps the queue in {home.beads}{old}"


def _dotted(version: Version) -> str:
    return ".".join(map(str, version))
