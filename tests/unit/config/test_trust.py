"""The trusted list: what is on it, and when the list itself is refused."""

from __future__ import annotations

import os
import stat
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from fleet.config.trust import is_trusted, list_path, trust
from fleet.errors import HomeError


def test_where_the_list_is(env: dict[str, str]) -> None:
    """XDG_CONFIG_HOME decides where it is absolute, else ~/.config does."""
    default = Path(env["HOME"]) / ".config" / "fleet" / "trusted"
    assert list_path(env) == default
    assert list_path({**env, "XDG_CONFIG_HOME": "relative"}) == default
    assert list_path({**env, "XDG_CONFIG_HOME": "/xdg"}) == Path("/xdg/fleet/trusted")


def test_trusting(tmp_path: Path, env: dict[str, str]) -> None:
    """A directory is trusted once it was put on the list, once, in a file that only its owner may touch."""
    one, two = tmp_path / "one", tmp_path / "two"
    assert not is_trusted(one, env)
    assert trust(one, env)
    assert not trust(one, env)
    assert trust(two, env)
    assert is_trusted(one, env)
    assert is_trusted(two, env)
    assert not is_trusted(tmp_path, env)
    assert list_path(env).read_text() == f"{one}\n{two}\n"
    assert stat.S_IMODE(list_path(env).stat().st_mode) == 0o600
    assert stat.S_IMODE(list_path(env).parent.stat().st_mode) == 0o700


def test_trust_is_by_real_path(tmp_path: Path, env: dict[str, str]) -> None:
    """A link to a trusted directory is trusted; what a link is turned to later is not."""
    (tmp_path / "real").mkdir()
    (tmp_path / "other").mkdir()
    link = tmp_path / "link"
    link.symlink_to(tmp_path / "real")
    trust(link, env)
    assert is_trusted(tmp_path / "real", env)
    link.unlink()
    link.symlink_to(tmp_path / "other")
    assert not is_trusted(link, env)


def test_names_of_any_bytes(tmp_path: Path, env: dict[str, str]) -> None:
    """A name that is not UTF-8 can be trusted; one with a line break cannot."""
    odd = tmp_path / os.fsdecode(b"\xff\xfe name")
    trust(odd, env)
    assert is_trusted(odd, env)
    with pytest.raises(HomeError, match="line break"):
        trust(tmp_path / "a\nb", env)


@pytest.mark.parametrize("mode", [0o620, 0o602, 0o666])
def test_a_list_that_others_may_write_is_refused(tmp_path: Path, env: dict[str, str], mode: int) -> None:
    """A list that others may write is not read, and the hint says what to do."""
    trust(tmp_path, env)
    list_path(env).chmod(mode)
    with pytest.raises(HomeError, match="others may write") as caught:
        is_trusted(tmp_path, env)
    assert "chmod go-w" in caught.value.hint
    with pytest.raises(HomeError):
        trust(tmp_path / "more", env)


def test_a_list_in_an_open_directory_is_refused(tmp_path: Path, env: dict[str, str]) -> None:
    """Where everybody may replace the list, it is refused too."""
    trust(tmp_path, env)
    list_path(env).parent.chmod(0o777)
    with pytest.raises(HomeError, match="others may write"):
        is_trusted(tmp_path, env)


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a file to another user")
def test_a_list_of_another_user_is_refused(tmp_path: Path, env: dict[str, str]) -> None:
    """A list that belongs to somebody else is not read."""
    trust(tmp_path, env)
    os.chown(list_path(env), 65534, 65534)
    with pytest.raises(HomeError, match="belongs to another user"):
        is_trusted(tmp_path, env)


def test_trusting_at_the_same_time_loses_nothing(tmp_path: Path, env: dict[str, str]) -> None:
    """Twenty who trust at once are all on the list."""
    places = [tmp_path / f"p{n}" for n in range(20)]
    with ThreadPoolExecutor(8) as pool:
        assert all(pool.map(lambda place: trust(place, env), places))
    assert sorted(list_path(env).read_text().split()) == sorted(str(place) for place in places)
