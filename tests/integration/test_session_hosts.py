"""Sessions on hosts that have little: busybox alone, or no setsid."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from fleet.model.launch import Launch
from tests.support.leftovers import LEFT
from tests.support.programs import need
from tests.support.session_host import LEFT_SECONDS, QUICK, SessionHost, do, stat_of, until

SCRIPT = "(sleep 1000 &); echo ready; sleep 1000; true"
# What the runner uses beside sh; the list is what a host must have.
PROGRAMS = [
    "awk",
    "cat",
    "chmod",
    "date",
    "df",
    "env",
    "ln",
    "ls",
    "mkdir",
    "mv",
    "rm",
    "rmdir",
    "sed",
    "sleep",
    "stat",
    "tail",
    "tr",
    "wc",
]


@pytest.fixture
def programs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The only place where programs are found."""
    place = tmp_path / "programs"
    place.mkdir()
    monkeypatch.setenv("PATH", str(place))
    return place


@pytest.fixture
def host(tmp_path: Path, programs: Path) -> Iterator[SessionHost]:
    """A place for sessions on such a host."""
    host = SessionHost(tmp_path, (str(programs / "sh"),))
    yield host
    LEFT.end_within(LEFT_SECONDS, host.root)


def runs_and_stops(host: SessionHost) -> None:
    """A session starts, leads its own process session, speaks, and is ended with what it started."""
    session = host.session()
    do(session.prepare(Launch(argv=("sh", "-c", SCRIPT), cwd="/"), QUICK))
    pid = do(session.start()).pid
    until(lambda: int(stat_of(pid)[3]) == pid)
    until(lambda: do(session.read(0)).lines)
    stopped = do(session.stop(grace_seconds=0.3))
    assert len(stopped.killed) == 3
    assert stopped.left == 0
    assert stopped.observed.exit is not None


def test_busybox_alone(host: SessionHost, programs: Path) -> None:
    """Sessions run, and are stopped, where there is nothing but busybox: no perl, no util-linux."""
    busybox = need("busybox", shutil.which("busybox", path="/usr/bin:/bin"), "run `sh scripts/tools`")
    subprocess.run([busybox, "--install", "-s", str(programs)], check=True, stderr=subprocess.DEVNULL)
    runs_and_stops(host)


def test_perl_instead_of_setsid(host: SessionHost, programs: Path) -> None:
    """Where there is no setsid, perl does the same."""
    for name in (*PROGRAMS, "sh", "perl"):
        found = need(name, shutil.which(name, path="/usr/bin:/bin"), f"install {name}")
        (programs / name).symlink_to(found)
    runs_and_stops(host)
