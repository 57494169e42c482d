"""What `fleet exec --group` folds."""

from __future__ import annotations

from fleet.cli.exec import grouped
from fleet.config.machines import Host
from fleet.hosts.fanout import End, Ran


def away(n: int) -> Host:
    """A machine over ssh."""
    return Host(name=f"web-{n}", kind="ssh", host=f"10.0.0.{n}", working_directory="/srv", agent_binary="claude")


AWAY = [away(n) for n in (1, 10, 3)]
REFUSED = "cannot reach host HOST: ssh: connect to host HOST port 22: Connection refused"
SPRITE = Host(name="review", api_name="hammer")


def refused(host: Host) -> Ran:
    """As ssh tells it, by the address that it was given."""
    return Ran(host=host.name, end=End.UNREACHABLE, reason=REFUSED.replace("HOST", host.host))


def test_hosts_that_are_away_for_the_same_reason_are_told_once() -> None:
    """A reason that names its own host is the same reason; another reason, and another end, stand for themselves."""
    slow = Ran(host="review", end=End.UNREACHABLE, reason="cannot run it on hammer: hammer.example is slow")
    done = Ran(host="web-2", end=End.OK, code=0, stdout="up\n")
    found = grouped([*map(refused, AWAY), slow, done], [*AWAY, SPRITE, away(2)])
    assert found == [
        "[hammer] UNREACHABLE: cannot run it on hammer: hammer.example is slow",
        "[web-2] OK\n  up",
        f"[web-1, web-10, web-3] UNREACHABLE: {REFUSED}",
    ]


def test_one_alone_is_called_by_its_name() -> None:
    """What nobody shares is told as it was said."""
    assert grouped([refused(AWAY[0])], AWAY) == [f"[web-1] UNREACHABLE: {refused(AWAY[0]).reason}"]
