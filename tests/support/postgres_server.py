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

    def run(*argv: str | Path) -> None:
        subprocess.run([*as_user, *map(str, argv)], check=True, capture_output=True, timeout=60, cwd=directory)

    try:
        run(programs / "initdb", "-D", data, "-U", "fleet", "-A", "trust", "--no-sync", "-E", "UTF8", "--locale=C")
        settings = f"-c listen_addresses= -c unix_socket_directories={directory} -c fsync=off -c max_connections=200"
        run(programs / "pg_ctl", "-D", data, "-w", "-t", "30", "-l", directory / "log", "-o", settings, "start")
        try:
            yield f"postgresql://fleet@/postgres?host={directory}"
        finally:
            run(programs / "pg_ctl", "-D", data, "-m", "immediate", "-w", "stop")
    finally:
        shutil.rmtree(directory, ignore_errors=True)


def _exists(user: str) -> bool:
    try:
        pwd.getpwnam(user)
    except KeyError:
        return False
    return True
