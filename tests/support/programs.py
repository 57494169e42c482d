"""Programs that tests need. What a machine lacks is skipped with its reason at home, and fails in CI."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest


def need(name: str, found: str | Path | None, hint: str) -> str:
    """The program's path; else the test is skipped, or fails where everything must be there."""
    if found:
        return str(found)
    reason = f"{name} is not installed: {hint}"
    if os.environ.get("FLEET_TESTS_REQUIRE_ALL"):
        pytest.fail(reason)
    pytest.skip(reason)


def find_postgres() -> Path | None:
    """The directory with initdb and pg_ctl."""
    on_path = shutil.which("initdb")
    if on_path and shutil.which("pg_ctl"):
        return Path(on_path).parent
    candidates = sorted(Path("/usr/lib/postgresql").glob("*/bin/initdb"), reverse=True)
    return candidates[0].parent if candidates else None


def find_bd() -> str | None:
    """The real bd: where the tools script put it, or on the PATH."""
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "fleet-tools" / "bd-1.3.0" / "bd"
    for candidate in (os.environ.get("FLEET_TEST_BD"), str(cache), shutil.which("bd")):
        if candidate and os.access(candidate, os.X_OK):
            return candidate
    return None
