"""Small filesystems for the tests, where the machine lets us make them."""

from __future__ import annotations

import contextlib
import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest


@contextlib.contextmanager
def small_disk(where: Path, *, kilobytes: int) -> Iterator[Path]:
    """A filesystem of that size, mounted at a directory."""
    where.mkdir(exist_ok=True)
    _mount("-t", "tmpfs", "-o", f"size={kilobytes}k", "tmpfs", str(where))
    try:
        yield where
    finally:
        subprocess.run(["umount", "--lazy", str(where)], check=True, capture_output=True)


@contextlib.contextmanager
def read_only(directory: Path) -> Iterator[None]:
    """A directory that nobody can write, not even root."""
    _mount("--bind", str(directory), str(directory))
    try:
        _mount("-o", "remount,ro,bind", str(directory))
        yield
    finally:
        subprocess.run(["umount", "--lazy", str(directory)], check=True, capture_output=True)


def _mount(*argv: str) -> None:
    if os.geteuid() != 0:
        pytest.skip("only root can mount a filesystem")
    done = subprocess.run(["mount", *argv], check=False, capture_output=True, text=True)
    if done.returncode:
        reason = f"this machine lets nobody mount a filesystem: {done.stderr.strip()}"
        if os.environ.get("FLEET_TESTS_REQUIRE_ALL"):
            pytest.fail(reason)
        pytest.skip(reason)
