"""Making, adopting and repairing a home."""

from __future__ import annotations

import errno
import os
import stat
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from fleet.config.home import Home
from fleet.config.load import load
from fleet.config.settings import Settings
from fleet.config.template import template
from fleet.control.home import keep_out_of_git, prepare
from fleet.errors import ConfigError, HomeError


def snapshot(path: Path) -> dict[str, tuple[int, bytes | None]]:
    """Everything below a directory: modes and contents."""
    return {
        str(each.relative_to(path)): (each.stat().st_mode, each.read_bytes() if each.is_file() else None)
        for each in sorted(path.rglob("*"))
    }


def test_a_new_home(tmp_path: Path) -> None:
    """A home is made with its directories and settings, closed to others, parents included."""
    home = Home(tmp_path / "deep" / "home")
    done = prepare(home)
    assert (done.created, done.notes) == (True, [])
    assert stat.S_IMODE(home.path.stat().st_mode) == 0o700
    assert all(each.is_dir() for each in (home.logs, home.tasks, home.sessions, home.bells, home.leases))
    assert home.toml.read_text() == template()
    assert stat.S_IMODE(home.toml.stat().st_mode) == 0o600


@pytest.mark.parametrize("force", [False, True])
def test_a_second_time(tmp_path: Path, force: bool) -> None:
    """Preparing again changes nothing, with force or without."""
    home = Home(tmp_path / "home")
    prepare(home)
    home.toml.write_text("# mine\nmax_concurrent = 5\n")
    before = snapshot(home.path)
    done = prepare(home, force=force)
    assert (done.created, done.notes) == (False, [])
    assert snapshot(home.path) == before


def test_the_store_and_beads_come_last(tmp_path: Path) -> None:
    """The store is opened once the settings are in place, then beads gets to know of force and may say something."""
    home = Home(tmp_path / "home")
    calls: list[object] = []

    def open_store(force: bool) -> list[str]:
        calls.append((force, load(home)))
        return []

    def init_beads(force: bool) -> str | None:
        calls.append(force)
        return "bd made a queue" if force else None

    assert prepare(home, open_store=open_store, init_beads=init_beads).notes == []
    assert prepare(home, force=True, init_beads=init_beads).notes == ["bd made a queue"]
    assert calls == [(False, Settings()), False, True]


def older(path: Path) -> Home:
    """A home as an older supervisor leaves it."""
    (path / "logging").mkdir(parents=True)
    (path / "logging" / "fleet-2026-05-24.jsonl").write_text("{}\n")
    (path / "tasks" / "fleet-abc").mkdir(parents=True)
    (path / "tasks" / "fleet-abc" / "task.json").write_text("{}")
    (path / ".beads").mkdir()
    (path / "runtime.toml").write_text('max_concurrent = 7\nmodel = "opus"\ntelegram_chat_id = ""\n')
    path.chmod(0o700)
    return Home(path)


def test_an_older_home_is_adopted(tmp_path: Path) -> None:
    """What an older supervisor left is taken over and named; its files stay, and a second time says nothing."""
    home = older(tmp_path / "home")
    before = snapshot(home.path)
    done = prepare(home)
    assert not done.created
    assert done.notes == [
        "adopted runtime.toml: max_concurrent, model went into fleet.toml, the file stays",
        "runtime.toml: telegram_chat_id was not taken over",
        "adopted logging/: it stays where it is, and `fleet log` reads it too",
        "adopted tasks/: 1 task directory stays where it is",
        "adopted .beads/: `fleet config set queue.source=beads` goes on working on that queue",
    ]
    supervisor = load(home).supervisor
    assert (supervisor.max_concurrent, supervisor.model) == (7, "opus")
    assert before.items() <= snapshot(home.path).items()
    assert prepare(home).notes == []


def test_an_older_home_with_faults(tmp_path: Path) -> None:
    """A runtime.toml with faults stops the adoption; with force it is left alone and named."""
    home = older(tmp_path / "home")
    home.runtime_toml.write_text("max_concurrent = 'x'\n")
    with pytest.raises(ConfigError, match=r"runtime.toml:1"):
        prepare(home)
    assert not home.toml.exists()
    done = prepare(home, force=True)
    assert "runtime.toml could not be read and was not taken over" in done.notes[0]
    assert load(home) == Settings()
    assert home.runtime_toml.read_text() == "max_concurrent = 'x'\n"


def test_a_broken_fleet_toml(tmp_path: Path) -> None:
    """Without force a broken file is told and left; with force it is kept aside, each time anew."""
    home = Home(tmp_path / "home")
    prepare(home)
    for text in ("[broken\n", "also = 'broken'\n"):
        home.toml.write_text(text)
        with pytest.raises(ConfigError, match=r"fleet.toml:1") as caught:
            prepare(home)
        assert "fleet init --force" in caught.value.hint
        assert home.toml.read_text() == text
        done = prepare(home, force=True)
        assert "fleet.toml was broken (fleet.toml:1" in done.notes[0]
        assert home.toml.read_text() == template()
    kept = sorted(home.path.glob("fleet.toml.broken-*"))
    assert [each.read_text() for each in kept] == ["[broken\n", "also = 'broken'\n"]
    assert all(stat.S_IMODE(each.stat().st_mode) == 0o600 for each in kept)


def test_what_is_missing_is_made_again(tmp_path: Path) -> None:
    """Directories and settings that were lost come back, and what is there stays."""
    home = Home(tmp_path / "home")
    prepare(home)
    (home.tasks / "fleet-abc").mkdir()
    home.logs.rmdir()
    home.toml.unlink()
    home.db.touch()
    assert not prepare(home).created
    assert home.logs.is_dir()
    assert home.toml.read_text() == template()
    assert (home.tasks / "fleet-abc").is_dir()


def test_modes(tmp_path: Path) -> None:
    """A home that others may look into is told of; with force it is closed."""
    home = Home(tmp_path / "home")
    prepare(home)
    home.secrets.touch(mode=0o600)
    home.path.chmod(0o755)
    home.secrets.chmod(0o644)
    assert len(prepare(home).notes) == 2
    assert stat.S_IMODE(home.path.stat().st_mode) == 0o755
    assert f"the mode of {home.path} was 0755 and is 0700 now" in prepare(home, force=True).notes
    assert stat.S_IMODE(home.path.stat().st_mode) == 0o700
    assert stat.S_IMODE(home.secrets.stat().st_mode) == 0o600


@pytest.mark.parametrize("where", ["home", "home/logs", "."])
def test_a_file_in_the_way(tmp_path: Path, where: str) -> None:
    """Where a file stands in the way, it stays and the error says so."""
    base = tmp_path / "base"
    blocker = base / where
    blocker.parent.mkdir(parents=True, exist_ok=True)
    blocker.write_text("precious")
    with pytest.raises(HomeError, match="cannot") as caught:
        prepare(Home(base / "home"))
    assert "file" in caught.value.hint
    assert blocker.read_text() == "precious"


@contextmanager
def as_nobody() -> Iterator[Path]:
    """A directory that this process may not write for a while, root or not."""
    with tempfile.TemporaryDirectory(dir="/tmp") as directory:
        os.chmod(directory, 0o555)
        root = os.geteuid() == 0
        if root:
            os.seteuid(65534)
        try:
            yield Path(directory)
        finally:
            if root:
                os.seteuid(0)
            os.chmod(directory, 0o755)


def test_a_parent_that_cannot_be_written() -> None:
    """A read-only parent is an error in words with a hint."""
    with as_nobody() as directory:
        with pytest.raises(HomeError, match="Permission denied") as caught:
            prepare(Home(directory / "home"))
        assert "--home" in caught.value.hint


def test_no_space(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A full disk is an error in words, and leaves no half-written settings."""

    def full(*args: object) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    home = Home(tmp_path / "home")
    prepare(home)
    home.toml.write_text("[broken\n")
    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(HomeError, match="No space left") as caught:
        prepare(home, force=True)
    assert "free some space" in caught.value.hint
    assert home.toml.read_text() == "[broken\n"


def test_git_ignores_it(tmp_path: Path) -> None:
    """A home in a repository ignores itself; a .gitignore that is there stays."""
    home = Home(tmp_path)
    keep_out_of_git(home)
    assert (tmp_path / ".gitignore").read_text() == "*\n"
    (tmp_path / ".gitignore").write_text("mine\n")
    keep_out_of_git(home)
    assert (tmp_path / ".gitignore").read_text() == "mine\n"
