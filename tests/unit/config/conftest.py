"""A home of its own for every test."""

from __future__ import annotations

from pathlib import Path

import pytest

from fleet.config.home import Home
from fleet.config.template import template


@pytest.fixture
def home(tmp_path: Path) -> Home:
    """A home with the fleet.toml that `fleet init` writes."""
    path = tmp_path / "home"
    path.mkdir(mode=0o700)
    (path / "fleet.toml").write_text(template())
    return Home(path)


@pytest.fixture
def env(tmp_path: Path) -> dict[str, str]:
    """An environment with a user's directory of its own, and nothing else."""
    user = tmp_path / "user"
    user.mkdir()
    return {"HOME": str(user)}
