"""A PostgreSQL server for the tests: its own directory, a Unix socket only, gone afterwards."""

from __future__ import annotations

import os
import pwd
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

SECONDS = 100  # on a machine with much else to do


@contextmanager
def postgres_server(programs: Path) -> Iterator[str]:
    """Start a server and give its URL."""
    directory = Path(tempfile.mkdtemp(prefix="fleet-pg-"))
    data = directory / "data"
    as_user: list[str] = []
    if os.geteuid() == 0:  # the server refuses to run as root
        user = next(name for name in ("postgres", "nobody") if _exists(name))
        shutil.chown(directory, user)
        as_user = ["setpriv", "--reuid", user, "--regid", str(pwd.getpwnam(user).pw_gid), "--clear-groups", "--"]

    def run(*argv: str | Path | int) -> None:
        words = [*as_user, *map(str, argv)]
        done = subprocess.run(words, check=False, capture_output=True, timeout=SECONDS + 10, cwd=directory, text=True)
        if done.returncode:
            log = directory / "log"
            said = log.read_text(errors="replace")[-2000:] if log.exists() else ""
            raise OSError(f"{argv[0]} ended with {done.returncode}: {done.stdout[-1000:]}{done.stderr[-1000:]}{said}")

    try:
        run(programs / "initdb", "-D", data, "-U", "fleet", "-A", "trust", "--no-sync", "-E", "UTF8", "--locale=C")
        settings = f"-c listen_addresses= -c unix_socket_directories={directory} -c fsync=off -c max_connections=200"
        run(programs / "pg_ctl", "-D", data, "-w", "-t", SECONDS, "-l", directory / "log", "-o", settings, "start")
        try:
            yield f"postgresql://fleet@/postgres?host={directory}"
        finally:
            run(programs / "pg_ctl", "-D", data, "-m", "immediate", "-w", "-t", SECONDS, "stop")
    finally:
        shutil.rmtree(directory, ignore_errors=True)


def _exists(user: str) -> bool:
    try:
        pwd.getpwnam(user)
    except KeyError:
        return False
    return True
