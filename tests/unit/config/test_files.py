"""Writing in one step, locking, reading within bounds."""

from __future__ import annotations

import errno
import os
import signal
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from fleet.config.files import locked, read_bytes, write_atomic
from fleet.errors import ConfigError, Conflict, HomeError


def test_a_write_replaces_the_whole(tmp_path: Path) -> None:
    """New content is there whole, and nothing else is left behind."""
    path = tmp_path / "f"
    write_atomic(path, b"one")
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    write_atomic(path, b"two")
    assert path.read_bytes() == b"two"
    assert os.listdir(tmp_path) == ["f"]


def test_a_write_keeps_the_mode(tmp_path: Path) -> None:
    """The mode that a file had stays, unless another is asked for."""
    path = tmp_path / "f"
    path.touch()
    path.chmod(0o640)
    write_atomic(path, b"x")
    assert stat.S_IMODE(path.stat().st_mode) == 0o640
    write_atomic(path, b"x", mode=0o600)
    assert stat.S_IMODE(path.stat().st_mode) == 0o600


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a file to another user")
def test_a_write_keeps_the_owner(tmp_path: Path) -> None:
    """When root edits a user's file it stays the user's."""
    path = tmp_path / "f"
    path.touch()
    os.chown(path, 1234, 1235)
    write_atomic(path, b"x")
    assert (path.stat().st_uid, path.stat().st_gid) == (1234, 1235)


def test_a_write_follows_a_link(tmp_path: Path) -> None:
    """A file that is a link, as into a directory of dotfiles, stays a link."""
    (tmp_path / "dotfiles").mkdir()
    real = tmp_path / "dotfiles" / "f"
    real.touch()
    (tmp_path / "f").symlink_to(real)
    write_atomic(tmp_path / "f", b"x")
    assert (tmp_path / "f").is_symlink()
    assert real.read_bytes() == b"x"


@pytest.mark.parametrize("step", ["fsync", "replace"])
def test_killed_before_the_rename(tmp_path: Path, step: str) -> None:
    """A process killed before its rename leaves the old file as it was."""
    path = tmp_path / "f"
    path.write_bytes(b"old")
    code = (
        "import os, signal, sys; from pathlib import Path; from fleet.config.files import write_atomic\n"
        f"os.{step} = lambda *args: os.kill(os.getpid(), signal.SIGKILL)\n"
        "write_atomic(Path(sys.argv[1]), b'new')"
    )
    done = subprocess.run([sys.executable, "-c", code, str(path)], check=False)
    assert done.returncode == -signal.SIGKILL
    assert path.read_bytes() == b"old"


@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EROFS, errno.EACCES])
def test_a_write_that_fails(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, number: int) -> None:
    """A full or read-only disk is an error in words with a hint; the old file stays and no other is left."""

    def refuse(*args: object) -> None:
        raise OSError(number, os.strerror(number))

    path = tmp_path / "f"
    path.write_bytes(b"old")
    monkeypatch.setattr(os, "fsync", refuse)
    with pytest.raises(HomeError, match=os.strerror(number)) as caught:
        write_atomic(path, b"new")
    assert caught.value.hint
    assert path.read_bytes() == b"old"
    assert os.listdir(tmp_path) == ["f"]


def test_reading(tmp_path: Path) -> None:
    """No file reads as None, one that is too large is refused, a directory is an error in words."""
    assert read_bytes(tmp_path / "none") is None
    (tmp_path / "f").write_bytes(b"x" * 11)
    assert read_bytes(tmp_path / "f", 11) == b"x" * 11
    with pytest.raises(ConfigError, match="larger"):
        read_bytes(tmp_path / "f", 10)
    with pytest.raises(HomeError, match="directory"):
        read_bytes(tmp_path)


def test_the_lock_keeps_others_out(tmp_path: Path) -> None:
    """While one holds the lock another waits no longer than it may, and gets it afterwards."""
    path = tmp_path / "lock"
    with locked(path), pytest.raises(Conflict, match="another process"), locked(path, seconds=0.02):
        pass
    with locked(path, seconds=0):
        pass


def test_the_lock_ends_with_the_process(tmp_path: Path) -> None:
    """A holder that is killed leaves no lock behind."""
    path = tmp_path / "lock"
    code = (
        "import sys; from pathlib import Path; from fleet.config.files import locked\n"
        "with locked(Path(sys.argv[1])): print('held', flush=True); sys.stdin.read()"
    )
    with subprocess.Popen(
        [sys.executable, "-c", code, str(path)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as holder:
        assert holder.stdout
        assert holder.stdout.readline() == "held\n"
        with pytest.raises(Conflict), locked(path, seconds=0):
            pass
        holder.kill()
        holder.wait()
        with locked(path, seconds=5):
            pass
