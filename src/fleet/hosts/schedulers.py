"""What keeps time on this machine: its systemd and its cron, driven by their own programs.

Below another root (`--root`) nothing is driven: systemd is only files there, and a crontab is the file that cron reads.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path

from fleet.config.files import failed, read_bytes, write_atomic
from fleet.config.installed import By, Scope
from fleet.errors import ProgramError, ProgramMissing

ANSWER_SECONDS = 30.0
START_SECONDS = 120.0  # a supervisor that takes over a thousand agents needs some time
SPOOL = "var/spool/cron/crontabs"
LINGER = "var/lib/systemd/linger"


class Machine:
    """This machine, or another root that will be one."""

    def __init__(self, root: Path | None, env: Mapping[str, str]) -> None:
        self.root = root
        self._env = env

    def place(self, path: str) -> Path:
        """Where a path of the machine lies now."""
        return Path(path) if self.root is None else self.root / path.lstrip("/")

    def keeper(self, scope: Scope) -> By:
        """systemd where it runs (or is installed, below another root), else cron. ProgramMissing without either."""
        if self.root is not None:
            return "systemd" if self.place("/usr/lib/systemd/systemd").exists() else "cron"
        if self._systemd_runs(scope):
            return "systemd"
        if shutil.which("crontab", path=self._env.get("PATH")):
            return "cron"
        raise ProgramMissing(
            "nothing on this machine keeps time: systemd does not run, and there is no crontab",
            hint="install cron (Debian, Ubuntu: apt-get install cron)",
        )

    def systemctl(self, scope: Scope, *words: str, check: bool = True) -> str:
        """What systemctl answers; nothing below another root, where nothing runs."""
        if self.root is not None:
            return ""
        argv = ["systemctl", *(["--user"] if scope == "user" else []), "--no-pager", *words]
        done = self._run(argv, seconds=START_SECONDS)
        if check and done.returncode:
            raise ProgramError(f"`{' '.join(argv)}` failed: {_said(done)}")
        return done.stdout

    def lingers(self, user: str) -> bool:
        """Whether what a user has systemd do goes on when they are not logged in."""
        return self.place(f"/{LINGER}/{user}").exists()

    def crontab(self, user: str) -> str | None:
        """The crontab of whoever runs this, or None where there is none."""
        if self.root is not None:
            data = read_bytes(self.root / SPOOL / user)
            return None if data is None else data.decode("utf-8", "surrogateescape")
        done = self._run(["crontab", "-l"])
        if done.returncode == 0:
            return done.stdout
        if any(words in done.stderr.lower() for words in ("no crontab", "can't open")):  # cron's word, busybox's word
            return None
        raise ProgramError(f"`crontab -l` failed: {_said(done)}", hint="may this user have a crontab?")

    def set_crontab(self, user: str, text: str | None) -> None:
        """Give whoever runs this a crontab, or take it away."""
        if self.root is not None:
            return self._set_file(self.root / SPOOL / user, text)
        argv = ["crontab", "-r"] if text is None else ["crontab", "-"]
        done = self._run(argv, stdin=text or "")
        if done.returncode:
            raise ProgramError(f"`{' '.join(argv)}` failed: {_said(done)}; the crontab is as it was")
        return None

    def _set_file(self, path: Path, text: str | None) -> None:
        if text is None:
            with contextlib.suppress(FileNotFoundError):
                path.unlink()
            return
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
        except OSError as exc:
            raise failed(exc, "make", path.parent) from exc
        write_atomic(path, text.encode("utf-8", "surrogateescape"), mode=0o600)

    def _systemd_runs(self, scope: Scope) -> bool:
        if not os.path.isdir("/run/systemd/system") or not shutil.which("systemctl", path=self._env.get("PATH")):
            return False
        if scope == "system":
            return True
        with contextlib.suppress(ProgramError):  # a user without a manager: a container, su, cron itself
            return self._run(["systemctl", "--user", "show-environment"]).returncode == 0
        return False

    def _run(
        self, argv: Sequence[str], *, stdin: str = "", seconds: float = ANSWER_SECONDS
    ) -> subprocess.CompletedProcess[str]:
        try:
            return subprocess.run(
                argv,
                input=stdin,
                capture_output=True,
                text=True,
                errors="surrogateescape",
                timeout=seconds,
                env={**self._env, "LC_ALL": "C"},
                check=False,
            )
        except FileNotFoundError as exc:
            raise ProgramMissing(f"there is no `{argv[0]}` on the PATH") from exc
        except subprocess.TimeoutExpired as exc:
            raise ProgramError(f"`{' '.join(argv)}` did not answer within {seconds:g} s") from exc
        except OSError as exc:
            raise ProgramError(f"`{argv[0]}` cannot be run: {exc.strerror}") from exc


def _said(done: subprocess.CompletedProcess[str]) -> str:
    return " ".join((done.stderr or done.stdout).split())[:300] or f"exit code {done.returncode}"
