"""A person at a shell, with a home that `fleet init` made."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from fleet.config.home import Home
from tests.support.cli import Cli


@pytest.fixture(scope="session")
def new_home(tmp_path_factory: pytest.TempPathFactory) -> Home:
    """A home as `fleet init` leaves it; made once, copied for each test."""
    first = Cli(tmp_path_factory.mktemp("first"))
    first.ok("init")
    return first.home


@pytest.fixture
def newcomer(tmp_path: Path) -> Cli:
    """Somebody who has not run `fleet init` yet."""
    return Cli(tmp_path)


@pytest.fixture
def cli(newcomer: Cli, new_home: Home) -> Cli:
    """Somebody with a home."""
    shutil.copytree(new_home.path, newcomer.home.path)
    return newcomer
