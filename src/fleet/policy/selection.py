"""Which machines are meant: by name, by the name of the provider, by team and by role, with * and ? in any of them."""

from __future__ import annotations

from collections.abc import Sequence
from fnmatch import fnmatchcase

from fleet.config.machines import Host
from fleet.errors import NotFound
from fleet.model.ids import some_of
from fleet.model.nearest import nearest


def team_of(name: str) -> str:
    """The first part of `team-role-id`; empty where the name has one part only."""
    team, dash, _ = name.partition("-")
    return team if dash else ""


def role_of(name: str) -> str:
    """What stands between the team and the id, such as `review-claude`; empty where nothing does."""
    return "-".join(name.split("-")[1:-1])


def called(host: Host) -> str:
    """What its provider calls it."""
    return host.api_name or host.name


def noun(hosts: Sequence[Host]) -> str:
    """What many of these are called: sprites where all are, else hosts."""
    return "sprite" if all(host.kind == "sprite" for host in hosts) else "host"


def select(
    hosts: Sequence[Host], *, names: Sequence[str] = (), team: str | None = None, role: str | None = None
) -> list[Host]:
    """The machines that fit every given condition, in the order of the settings; all of them without a condition.

    Raises NotFound where a word fits nothing: a command for no machine is a mistake.
    """
    if not hosts:
        raise NotFound(
            "there are no hosts",
            hint="declare one: `fleet hosts add --help`; `fleet config import FILE` takes over a list",
        )
    wanted = {host.name for name in names for host in _named(hosts, name)} if names else None
    found = [
        host
        for host in hosts
        if (wanted is None or host.name in wanted)
        and (team is None or fnmatchcase(team_of(host.name), team))
        and (role is None or fnmatchcase(role_of(host.name), role))
    ]
    if not found:
        raise NotFound(_nothing(team, role), hint=f"the hosts are: {some_of(host.name for host in hosts)}")
    return found


def _named(hosts: Sequence[Host], pattern: str) -> list[Host]:
    """A machine's own name goes before what another one is called by its provider."""
    exact = [host for host in hosts if host.name == pattern] or [host for host in hosts if called(host) == pattern]
    found = exact or [host for host in hosts if any(fnmatchcase(name, pattern) for name in (host.name, called(host)))]
    if found:
        return found
    known = [name for host in hosts for name in dict.fromkeys((host.name, called(host)))]
    near = nearest(pattern, known)
    raise NotFound(
        f"there is no host `{pattern}`",
        hint=f"did you mean `{near}`?" if near else f"the hosts are: {some_of(host.name for host in hosts)}",
    )


def _nothing(team: str | None, role: str | None) -> str:
    said = [f"{word} `{value}`" for word, value in (("team", team), ("role", role)) if value is not None]
    return f"there is no host of {' and '.join(said)}" if said else "there is no such host"
