"""Kinds of hosts, and the transports that they stand for."""

from __future__ import annotations

import tomllib
from contextlib import closing
from pathlib import Path

import msgspec
import pytest

from fleet import hosts, plugins
from fleet.config.home import Home
from fleet.config.machines import Host
from fleet.config.settings import Settings
from fleet.errors import HostUnfit, NotFound
from fleet.hosts.kinds import passed_on, sprite_name, working_directory
from fleet.hosts.local import LocalTransport
from fleet.hosts.sprite.transport import SpriteTransport
from fleet.hosts.ssh.transport import SshTransport
from fleet.model.reach import Reach
from fleet.wiring import open_house, open_transport
from tests.support.homes import make

ROOT = Path(__file__).parents[3]
BUILDER = Reach(kind="ssh", host="builder", working_directory="/srv/work/", agent_binary="claude")


def test_the_table_and_the_entry_points_are_the_same() -> None:
    """Built-ins are registered as a stranger would, and can be loaded without a search."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    assert project["entry-points"]["fleet.hosts"] == hosts.BUILT_IN


def test_each_kind_has_its_transport(tmp_path: Path) -> None:
    """What the settings call a kind becomes its transport, without a connection."""
    assert isinstance(open_transport(BUILDER, Settings(), Home(tmp_path)), SshTransport)
    assert isinstance(open_transport(Reach(kind="local"), Settings(), Home(tmp_path)), LocalTransport)
    assert isinstance(open_transport(Reach(kind="sprite", host="one"), Settings(), Home(tmp_path)), SpriteTransport)


def test_what_a_sprite_is_called() -> None:
    """By its provider's name for it, else by our own; one without any is refused."""
    assert sprite_name(Reach(kind="sprite", host="theirs")) == "theirs"
    assert sprite_name(Host(name="ours", kind="sprite")) == "ours"
    assert sprite_name(Host(name="ours", kind="sprite", api_name="theirs")) == "theirs"
    with pytest.raises(HostUnfit, match="without a name"):
        sprite_name(Reach(kind="sprite"))


def test_a_kind_that_is_not_registered() -> None:
    """The error lists what there is."""
    with pytest.raises(NotFound) as caught:
        plugins.load("hosts", "docker")
    assert "ssh" in caught.value.hint


def test_where_work_happens() -> None:
    """In the working directory; on a sprite that names none, in its home."""
    assert working_directory(BUILDER) == "/srv/work/"
    assert working_directory(Reach(kind="sprite", host="one")) == "/home/sprite"


def test_what_is_passed_on() -> None:
    """An agent gets the variables of the allow-list that have a value, and no other."""
    reach = Reach(kind="local", env_allowlist=("MY_PROFILE", "NOT_SET"))
    assert passed_on(reach, {"MY_PROFILE": "x", "OTHER": "y"}) == {"MY_PROFILE": "x"}


def test_a_supervisor_opens_machines_by_the_settings_in_force(tmp_path: Path) -> None:
    """A machine that is reached for the first time after an edit of fleet.toml is reached as the edit says."""
    home = make(tmp_path / "home")
    house = open_house(home, Settings(), coder=None, model=None, echo=None)
    with closing(house.store):
        edit = {"hosts": [{"name": "one", "kind": "sprite"}], "sprites": {"url": "https://sprites.example"}}
        house.take(msgspec.convert(edit, Settings))
        transport = house.site("one").transport
    assert isinstance(transport, SpriteTransport)
    assert transport._api.url == "https://sprites.example"
