"""More than one user on a machine: whose a home is, what others may see of it, and what root leaves there."""

from __future__ import annotations

import os
import shutil
import stat
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from fleet.config.home import Home, require
from fleet.errors import HomeError
from fleet.front.logs import supervisor_log
from tests.support.children import NOBODY, in_child
from tests.support.cli import Cli

ROOT = os.geteuid() == 0
UNKNOWN = 54321  # that no account here has
needs_root = pytest.mark.skipif(not ROOT, reason="only root can be another user")


def below(home: Home) -> list[Path]:
    """All that is in a home."""
    return [Path(at, name) for at, folders, files in os.walk(home.path) for name in (*folders, *files)]


@pytest.fixture
def seen_home(cli: Cli) -> Iterator[Home]:
    """A copy of the home, where another user can at least stand before it."""
    with tempfile.TemporaryDirectory(prefix="fleet-home-", dir="/tmp") as place:
        os.chmod(place, 0o755)
        shutil.copytree(cli.home.path, f"{place}/home")
        yield Home(Path(place, "home"))


@needs_root
def test_root_leaves_nothing_in_the_home_of_another(cli: Cli) -> None:
    """It is told whose home it is and how to go on; looking is free, and the owner can use the home as before."""
    for each in (cli.home.path, *below(cli.home)):
        os.chown(each, NOBODY, NOBODY)
    for words in ("add x", "run --drain", "init", "init --force", "serve", "serve token x", "service install"):
        done = cli.run(*words.split())
        assert done.code == 1, words
        assert f"error: {cli.home.path} belongs to nobody, and you are root" in done.err
        assert "sudo -H -u nobody" in done.err
    cli.ok("status")
    cli.ok("config", "set", "supervisor.max_concurrent=5")  # which keeps the file's owner
    assert {each.stat().st_uid for each in below(cli.home)} == {NOBODY}


@needs_root
def test_root_makes_no_home_beside_what_is_anothers(newcomer: Cli) -> None:
    """`sudo fleet init` that keeps $HOME would make a home that its user cannot open."""
    user = Path(newcomer.env["HOME"])
    user.mkdir()
    os.chown(user, NOBODY, NOBODY)
    done = newcomer.run("init", env={"FLEET_HOME": ""})
    assert (done.code, list(user.iterdir())) == (1, [])
    assert f"error: {user} belongs to nobody, and you are root" in done.err
    newcomer.ok("init")  # in a place that was named


@needs_root
def test_root_works_in_a_home_whose_owner_has_no_account_here(cli: Cli) -> None:
    """As in a container that a directory of its host was mounted into: there is nobody to be instead."""
    for each in (cli.home.path, *below(cli.home)):
        os.chown(each, UNKNOWN, UNKNOWN)
    cli.ok("add", "x")
    assert "x" in cli.ok("ready").out


@needs_root
@pytest.mark.parametrize("mode", [0o700, 0o755])
def test_another_user_is_told_whose_home_it_is(seen_home: Home, mode: int) -> None:
    """However open the directory is: nothing of it is read, and that it has no log yet is not said."""
    seen_home.path.chmod(mode)

    def look() -> None:
        supervisor_log(require(seen_home), None)

    with pytest.raises(HomeError, match="Permission denied") as refused:
        in_child(look, as_nobody=True)
    assert "belongs to root; choose a home of your own" in refused.value.hint


def test_nothing_in_a_home_is_open_to_others_whatever_the_umask(cli: Cli) -> None:
    """A home that its user opened, and tasks that run under a umask that keeps nobody out, in worktrees too."""
    cli.home.path.chmod(0o755)
    git = ("git", "-C", str(cli.cwd), "-c", "user.name=ana", "-c", "user.email=ana@example.org")
    subprocess.run([*git, "init", "--quiet"], check=True)
    subprocess.run([*git, "commit", "--quiet", "--allow-empty", "-m", "begin"], check=True)
    before = os.umask(0)
    try:
        cli.ok("config", "set", "supervisor.coder=command", "supervisor.isolation=worktree")
        cli.ok("add", "echo new >file; git add file; echo kept >$FLEET_ARTIFACT_DIR/x; touch $FLEET_ARTIFACT_DIR/made")
        done = cli.ok("run", "--drain")
    finally:
        os.umask(before)
    assert "1 task completed" in done.err + done.out
    agents = {*cli.home.tasks.glob("*/artifacts/*"), *below(Home(cli.home.worktrees))}  # they are as it made them
    assert {"x", "made", "file"} <= {each.name for each in agents}
    others = [each for each in below(cli.home) if each not in agents and not each.is_symlink()]
    assert cli.home.worktrees in others
    assert [each for each in others if stat.S_IMODE(each.stat().st_mode) & 0o077] == []
