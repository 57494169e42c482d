"""Fixtures of the tests of sessions; a module imports those that it uses."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.session_host import SHELLS, SessionHost, shell_named


@pytest.fixture(name="host", params=sorted(SHELLS))
def under_each_shell(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[SessionHost]:
    """A place for sessions, under each shell in turn; nothing of them may be left at the end."""
    host = SessionHost(tmp_path, shell_named(request.param))
    yield host
    host.nothing_left()


@pytest.fixture(name="one_host")
def under_sh(tmp_path: Path) -> Iterator[SessionHost]:
    """A place for sessions, under the shell that the machine calls sh."""
    host = SessionHost(tmp_path, ("sh",))
    yield host
    host.nothing_left()
