"""Which home is used, and what lies where in it."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from fleet.config.home import Home, require, resolve, untrusted_note
from fleet.config.trust import trust
from fleet.errors import HomeError, NoHome, UsageError


def make_home(path: Path) -> Path:
    path.mkdir(parents=True)
    (path / "fleet.toml").touch()
    return path


def test_the_flag_goes_first(tmp_path: Path, env: dict[str, str]) -> None:
    """--home wins over everything, is expanded and made absolute."""
    env["FLEET_HOME"] = "/elsewhere"
    assert resolve("~/h", env=env, cwd=tmp_path).path == Path(env["HOME"]) / "h"
    assert resolve("h", env=env, cwd=tmp_path).path == tmp_path / "h"
    assert resolve("/abs", env=env, cwd=tmp_path).path == Path("/abs")


def test_the_variable_goes_next(tmp_path: Path, env: dict[str, str]) -> None:
    """$FLEET_HOME wins over a trusted .fleet upward."""
    trust(make_home(tmp_path / ".fleet"), env)
    env["FLEET_HOME"] = "~/other"
    assert resolve(None, env=env, cwd=tmp_path).path == Path(env["HOME"]) / "other"


@pytest.mark.parametrize("empty", ["", "  "])
def test_empty_names(tmp_path: Path, env: dict[str, str], empty: str) -> None:
    """An empty flag is an error; an empty variable is as good as none."""
    with pytest.raises(UsageError, match="--home"):
        resolve(empty, env=env, cwd=tmp_path)
    env["FLEET_HOME"] = empty
    assert resolve(None, env=env, cwd=tmp_path).path == Path(env["HOME"]) / ".fleet"


def test_the_nearest_trusted_one_upward(tmp_path: Path, env: dict[str, str]) -> None:
    """From deep below, the nearest trusted .fleet is found."""
    trust(make_home(tmp_path / "a" / ".fleet"), env)
    trust(make_home(tmp_path / "a" / "b" / ".fleet"), env)
    deep = tmp_path / "a" / "b" / "c" / "d"
    deep.mkdir(parents=True)
    assert resolve(None, env=env, cwd=deep) == Home(tmp_path / "a" / "b" / ".fleet")


def test_an_untrusted_one_is_not_used(tmp_path: Path, env: dict[str, str]) -> None:
    """A .fleet that came with a repository is passed over and reported."""
    strange = make_home(tmp_path / "clone" / ".fleet")
    home = resolve(None, env=env, cwd=strange.parent)
    assert home == Home(Path(env["HOME"]) / ".fleet", ignored=strange)
    assert untrusted_note(home, strange.parent) == (
        "./.fleet is not on your trusted list and was not used; run `fleet init --here` to trust it"
    )
    below = strange.parent / "src"
    below.mkdir()
    note = untrusted_note(resolve(None, env=env, cwd=below), below)
    assert note == (
        f"{strange} is not on your trusted list and was not used; "
        f"run `fleet init --here` in {strange.parent} to trust it"
    )


def test_an_untrusted_one_hides_no_trusted_one(tmp_path: Path, env: dict[str, str]) -> None:
    """A repository cannot turn the user away from the trusted home above it."""
    mine = make_home(tmp_path / "work" / ".fleet")
    strange = make_home(tmp_path / "work" / "clone" / ".fleet")
    trust(mine, env)
    assert resolve(None, env=env, cwd=strange.parent) == Home(mine, ignored=strange)


def test_a_directory_of_another_program_is_no_home(tmp_path: Path, env: dict[str, str]) -> None:
    """A .fleet without any file of ours is neither used nor spoken of."""
    (tmp_path / ".fleet").mkdir()
    (tmp_path / ".fleet" / "run.json").touch()
    assert resolve(None, env=env, cwd=tmp_path) == Home(Path(env["HOME"]) / ".fleet")


def test_the_default_needs_no_trust(env: dict[str, str]) -> None:
    """Below the user's own directory, ~/.fleet is the default and not an untrusted find."""
    default = make_home(Path(env["HOME"]) / ".fleet")
    project = Path(env["HOME"]) / "project"
    project.mkdir()
    assert resolve(None, env=env, cwd=project) == Home(default)


def test_links_stay_in_what_is_printed(tmp_path: Path, env: dict[str, str]) -> None:
    """Trust is by real path, and the home keeps the name that the user gave it."""
    real = make_home(tmp_path / "real" / ".fleet")
    trust(real, env)
    (tmp_path / "link").symlink_to(real.parent)
    assert resolve(None, env=env, cwd=tmp_path / "link").path == tmp_path / "link" / ".fleet"
    assert resolve(str(tmp_path / "link" / ".fleet"), env=env).path == tmp_path / "link" / ".fleet"


def test_a_moved_directory_is_no_longer_trusted(tmp_path: Path, env: dict[str, str]) -> None:
    """Trust belongs to the place, not to the content."""
    trust(make_home(tmp_path / "a" / ".fleet"), env)
    (tmp_path / "a").rename(tmp_path / "b")
    assert resolve(None, env=env, cwd=tmp_path / "b").ignored == tmp_path / "b" / ".fleet"


def test_without_a_current_directory(tmp_path: Path, env: dict[str, str], monkeypatch: pytest.MonkeyPatch) -> None:
    """Where the current directory was removed, the default is used and a relative name refused."""
    gone = tmp_path / "gone"
    gone.mkdir()
    monkeypatch.chdir(gone)
    gone.rmdir()
    assert resolve(None, env=env).path == Path(env["HOME"]) / ".fleet"
    with pytest.raises(HomeError, match="no longer exists"):
        resolve("relative", env=env)


def test_the_user_without_a_home_variable() -> None:
    """Without $HOME the system's list of users is asked."""
    assert resolve(None, env={}, cwd=Path("/")).path.is_absolute()


@pytest.mark.parametrize("sign", ["fleet.toml", "fleet.db", "runtime.toml"])
def test_what_makes_a_home(tmp_path: Path, sign: str) -> None:
    """A directory is a home once it holds one of three files; an empty one is not."""
    assert not Home(tmp_path / "none").exists
    assert not Home(tmp_path).exists
    (tmp_path / sign).touch()
    assert Home(tmp_path).exists
    assert require(Home(tmp_path)) == Home(tmp_path)


def test_a_missing_home(tmp_path: Path) -> None:
    """A command that needs a home says which one is missing and how to make it, with exit code 4."""
    with pytest.raises(NoHome, match=str(tmp_path)) as caught:
        require(Home(tmp_path))
    assert caught.value.exit_code == 4
    assert "fleet init" in caught.value.hint


def test_a_missing_home_tells_of_the_one_passed_over(tmp_path: Path) -> None:
    """Where an untrusted home is near, the hint says how to trust it."""
    with pytest.raises(NoHome) as caught:
        require(Home(tmp_path / "none", ignored=tmp_path / ".fleet"))
    assert "not on your trusted list" in caught.value.hint


def test_a_name_that_the_system_refuses(tmp_path: Path) -> None:
    """A path too long for the system is an error in words."""
    with pytest.raises(HomeError, match="cannot look into"):
        _ = Home(tmp_path / ("x" * 5000)).exists


def test_the_map_of_the_home() -> None:
    """Everything has its place in the home."""
    home = Home(Path("/h"))
    places = (home.toml, home.db, home.mirror, home.logs, home.tasks, home.sessions, home.bells, home.leases)
    names = ["fleet.toml", "fleet.db", "fleet.jsonl", "logs", "tasks", "sessions", "bells", "leases"]
    assert [os.path.relpath(place, "/h") for place in places] == names
    assert (home.beads, home.secrets, home.old_logs) == (Path("/h/.beads"), Path("/h/secrets.env"), Path("/h/logging"))


@pytest.mark.parametrize("uid", ["..", "a/b", "", ".hidden", "-x", "a\n"])
def test_an_id_never_becomes_a_path_unchecked(uid: str) -> None:
    """A task's directory is named by an id, and nothing else gets through."""
    assert Home(Path("/h")).task_dir("fleet-abc") == Path("/h/tasks/fleet-abc")
    with pytest.raises(UsageError):
        Home(Path("/h")).task_dir(uid)
