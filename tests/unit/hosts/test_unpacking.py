"""Unpacking: what a directory gets where others share their programs at the same moment."""

from __future__ import annotations

import asyncio
import os
import subprocess
from pathlib import Path

import pytest

from fleet.hosts.unpacking import SHARED, digest, unpack

PROGRAMS = {"runner.sh": b"exit 0\n", "bin/fleet": b"exit 0\n"}


async def here(body: str, stdin: bytes) -> tuple[str, bytes, bytes]:
    """An exchange with a shell of this machine."""
    done = subprocess.run(["sh", "-c", f'{body}\necho "$code"'], input=stdin, capture_output=True, check=True)
    return done.stdout.decode().split()[-1], done.stdout, done.stderr


def unpacked(directory: Path) -> list[str]:
    """What is in a directory after it was unpacked."""
    assert asyncio.run(unpack(here, str(directory), {"launch": b"x"}, PROGRAMS))[0] == "0"
    return sorted(os.listdir(directory))


@pytest.mark.parametrize("vanishes", [False, True])
def test_those_who_share_at_once_leave_nothing_of_each_other(tmp_path: Path, vanishes: bool) -> None:
    """The slower one's programs stand among the shared ones for an instant: no session gets them, or half a copy."""
    first = unpacked(tmp_path / "one")
    others = tmp_path / SHARED / digest(PROGRAMS) / f"{digest(PROGRAMS)}.77"
    others.mkdir()
    (others / "runner.sh").write_bytes(b"")
    programs = tmp_path / "programs"
    programs.mkdir()
    if vanishes:  # while it is copied
        cp = programs / "cp"
        cp.write_text('#!/bin/sh\n/bin/cp "$@"; exit 1\n')
        cp.chmod(0o700)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PATH", f"{programs}:{os.environ['PATH']}")
        assert unpacked(tmp_path / "two") == first == ["bin", "launch", "runner.sh"]
    assert sorted(os.listdir(tmp_path)) == [SHARED, "one", "programs", "two"]
