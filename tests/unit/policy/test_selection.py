"""Which machines a word means."""

from __future__ import annotations

import pytest

from fleet.config.machines import Host
from fleet.errors import NotFound
from fleet.policy.selection import noun, role_of, select, team_of

NAMES = {
    "agents-review-claude-01": "hammer",
    "agents-review-codex-01": "anvil",
    "agents-synth-01": "forge",
    "dev-workspace-01": "mallet",
    "mobile-worker-01": "sprite-mobile-worker-1",
    "box": "",
}
HOSTS = [Host(name=name, api_name=api_name, kind="sprite") for name, api_name in NAMES.items()]


def found(**conditions: object) -> list[str]:
    """The names of what is selected."""
    return [host.name for host in select(HOSTS, **conditions)]  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("name", "team", "role"),
    [
        ("agents-review-claude-01", "agents", "review-claude"),
        ("dev-workspace-01", "dev", "workspace"),
        ("dev-01", "dev", ""),
        ("box", "", ""),
    ],
)
def test_the_parts_of_a_name(name: str, team: str, role: str) -> None:
    """The team is the first part, the id the last, the role what is between; a name of one part has neither."""
    assert (team_of(name), role_of(name)) == (team, role)


@pytest.mark.parametrize(
    ("conditions", "expected"),
    [
        ({}, list(NAMES)),
        ({"names": ["hammer"]}, ["agents-review-claude-01"]),
        ({"names": ["agents-synth-01", "hammer"]}, ["agents-review-claude-01", "agents-synth-01"]),
        ({"names": ["agents-*"]}, ["agents-review-claude-01", "agents-review-codex-01", "agents-synth-01"]),
        ({"names": ["sprite-*", "??????-synth-*"]}, ["agents-synth-01", "mobile-worker-01"]),
        ({"team": "agents", "role": "review-*"}, ["agents-review-claude-01", "agents-review-codex-01"]),
        ({"team": "[dm]*"}, ["dev-workspace-01", "mobile-worker-01"]),
        ({"names": ["box"]}, ["box"]),
    ],
)
def test_what_a_condition_selects(conditions: dict[str, object], expected: list[str]) -> None:
    """Every name of a machine is accepted, with globs; several conditions narrow, several names widen."""
    assert found(**conditions) == expected


def test_a_name_goes_before_an_api_name() -> None:
    """A machine's own name means it, though another one is called that by its provider."""
    hosts = [Host(name="one", api_name="two"), Host(name="two", api_name="one")]
    assert [host.name for host in select(hosts, names=["two"])] == ["two"]


@pytest.mark.parametrize(
    ("conditions", "words", "hint"),
    [
        ({"names": ["hamer"]}, "no host `hamer`", "did you mean `hammer`?"),
        ({"team": "agent"}, "no host of team `agent`", "the hosts are: agents-review-claude-01, "),
        ({"names": ["box"], "team": "dev"}, "no host of team `dev`", "the hosts are: "),
    ],
)
def test_a_condition_that_fits_nothing(conditions: dict[str, object], words: str, hint: str) -> None:
    """It is refused, and the nearest name or all of them are told."""
    with pytest.raises(NotFound, match=words) as caught:
        found(**conditions)
    assert caught.value.hint.startswith(hint)


def test_a_home_without_hosts() -> None:
    """It is told how to get some."""
    with pytest.raises(NotFound, match="there are no hosts"):
        select([])


def test_what_many_are_called() -> None:
    """Sprites where all are, else hosts."""
    assert noun(HOSTS) == "sprite"
    assert noun([*HOSTS, Host(name="here", kind="local")]) == "host"
