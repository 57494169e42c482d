"""Fixtures of the tests of sessions; a module imports those that it uses."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from fleet.hosts.kernel import own_cgroup
from tests.support.leftovers import LEFT
from tests.support.programs import need
from tests.support.session_host import LEFT_SECONDS, SHELLS, SessionHost, shell_named


@pytest.fixture(name="host", params=sorted(SHELLS))
def under_each_shell(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[SessionHost]:
    """A place for sessions, under each shell in turn; nothing of them may be left at the end."""
    host = SessionHost(tmp_path, shell_named(request.param))
    yield host
    LEFT.end_within(LEFT_SECONDS, host.root)


@pytest.fixture(name="one_host")
def under_sh(tmp_path: Path) -> Iterator[SessionHost]:
    """A place for sessions, under the shell that the machine calls sh."""
    host = SessionHost(tmp_path, ("sh",))
    yield host
    LEFT.end_within(LEFT_SECONDS, host.root)


@pytest.fixture(name="cgroups")
def where_cgroups_are_made() -> Iterator[Path]:
    """A cgroup of the test's own, within ours, on a machine that lets us make one; it must be empty at the end."""
    place = Path(own_cgroup(), f"fleet-test.{os.getpid()}")
    try:
        place.mkdir()
    except OSError:
        need("a cgroup that may be divided", None, "run as root, or where systemd delegates one")
    yield place
    place.rmdir()
