"""Stopping: INT, TERM, KILL to everything that belongs to a session, until nothing is left but what can escape."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from fleet.hosts.facts import Cause, HostState
from fleet.hosts.launch_file import Rules
from fleet.hosts.session import HostedSession
from fleet.model.launch import Launch
from tests.support.session_fixtures import under_each_shell, under_sh, where_cgroups_are_made  # noqa: F401  # fixtures
from tests.support.session_host import SessionHost, do, kill, lives, until

CONTAINED = Rules(look_seconds=1, grace_ms=200, use_cgroup=True)
DAEMON = "(setsid sh -c 'echo $$ >{}; exec sleep 1000' >/dev/null 2>&1 &)"  # forked twice, in a session of its own
ESCAPED = "(env -i /usr/bin/setsid /bin/sh -c 'echo $$ >{}; exec sleep 1000' >/dev/null 2>&1 &)"


def signals_of(session: HostedSession, pid: int, grace: float) -> list[str]:
    """The last signals that a process took when the session was stopped."""
    return [one.signal for one in do(session.stop(grace_seconds=grace)).killed if one.pid == pid]


@pytest.mark.parametrize(("ignored", "last"), [("", "INT"), ("INT", "TERM"), ("INT TERM", "KILL")])
def test_it_escalates(host: SessionHost, ignored: str, last: str) -> None:
    """An agent ends by the first signal that it does not ignore, and each waits for its grace."""
    trap = f"trap '' {ignored}; " if ignored else ""
    session = host.started(f"{trap}echo ready >ready; while :; do sleep 0.05; done")
    host.said("ready")
    pid = do(session.start()).pid
    began = time.monotonic()
    assert signals_of(session, pid, 0.2) == [last]
    assert time.monotonic() - began >= 0.2 * len(ignored.split())
    record = do(session.exit())
    assert record is not None
    assert (record.signal, record.cause) == (f"SIG{last}", Cause.STOP)


def test_an_agent_may_end_in_order(host: SessionHost) -> None:
    """An agent that handles INT has its grace to write its last line, and its own code is recorded."""
    session = host.started("trap 'echo bye; exit 5' INT; echo ready >ready; while :; do sleep 0.02; done")
    host.said("ready")
    stopped = do(session.stop(grace_seconds=10))
    assert stopped.observed.exit is not None
    assert stopped.observed.exit.code == 5
    assert host.file(session, "stdout").read_text() == "bye\n"


def test_nothing_is_left(host: SessionHost) -> None:
    """Children, grandchildren in sessions of their own, daemons and holders of stdout all end, and are listed."""
    parts = [
        DAEMON.format("daemon"),
        "setsid sh -c 'echo $$ >apart; sleep 1000; true' &",
        "sh -c 'trap \"\" INT TERM HUP; echo $$ >deaf; while :; do sleep 0.05; done' &",
        "env -u FLEET_SESSION sh -c 'echo $$ >unmarked; exec sleep 1000' &",
        "wait",
    ]
    session = host.started("\n".join(parts))
    pids = {name: int(host.said(name)) for name in ("daemon", "apart", "deaf", "unmarked")}
    stopped = do(session.stop(grace_seconds=0.2))
    assert {name for name, pid in pids.items() if lives(pid)} == set()
    assert set(pids.values()) <= {one.pid for one in stopped.killed}
    assert next(one for one in stopped.killed if one.pid == pids["daemon"]).name == "sleep"
    assert stopped.left == 0
    assert stopped.observed.state is HostState.EXITED
    again = do(session.stop(grace_seconds=0))
    assert again.killed == ()


def test_a_neighbour_is_not_touched(host: SessionHost) -> None:
    """Stopping a session leaves alone one whose name begins with its own, and one of its name in another home."""
    elsewhere = host.elsewhere(host.root / "it's $another (home)")
    one, other, namesake = host.session(name="t.1"), host.session(name="t.10"), elsewhere.session(name="t.1")
    for session in (one, other, namesake):
        do(session.prepare(Launch(argv=("sleep", "1000"), cwd="/"), Rules(use_cgroup=False)))
        do(session.start())
    do(one.stop(grace_seconds=1))
    for session in (other, namesake):
        assert do(session.observe()).state is HostState.RUNNING
        assert len(do(session.stop(grace_seconds=1)).killed) == 1


def test_names_that_deceive(one_host: SessionHost) -> None:
    """A process whose name has brackets, blanks and a line break in it is still found."""
    odd = one_host.root / "x) S 1\n(y"
    odd.symlink_to("/bin/sleep")
    session = one_host.started("(setsid './x) S 1\n(y' 1000 & echo $! >odd); wait; exec sleep 1000")
    pid = int(one_host.said("odd"))
    until(lambda: "S 1" in Path(f"/proc/{pid}/stat").read_text())
    do(session.stop(grace_seconds=1))
    assert not lives(pid)


def test_a_stop_before_the_start(host: SessionHost) -> None:
    """What is stopped before it was started never runs."""
    session = host.prepared("touch ran")
    assert do(session.stop(grace_seconds=0)).observed.state is HostState.ABANDONED
    assert do(host.session().stop(grace_seconds=0)).observed.state is HostState.ABSENT


def test_what_can_escape_without_a_cgroup(one_host: SessionHost) -> None:
    """A process that cleared its environment, left the session and lost its parent is not found: as documented."""
    session = one_host.started(ESCAPED.format("away") + "; exec sleep 1000")
    away = int(one_host.said("away"))
    try:
        assert away not in {one.pid for one in do(session.stop(grace_seconds=1)).killed}
        assert lives(away)
    finally:
        kill(away)


@pytest.fixture
def contained(one_host: SessionHost, cgroups: Path) -> Iterator[HostedSession]:
    """A session in a cgroup, whose agent has sent a process away."""
    session = one_host.started(ESCAPED.format("away") + "; until [ -e go ]; do sleep 0.02; done", CONTAINED)
    place = Path(one_host.file(session, "claim").read_text().split()[6])
    assert place.is_dir()
    yield session
    assert not place.exists()


def test_nothing_escapes_a_cgroup(one_host: SessionHost, contained: HostedSession) -> None:
    """Where the host gives a cgroup, a stop ends that process too, and the cgroup is removed."""
    away = int(one_host.said("away"))
    assert away in {one.pid for one in do(contained.stop(grace_seconds=0.2)).killed}
    assert not lives(away)


def test_the_sweep_knows_the_cgroup(one_host: SessionHost, contained: HostedSession) -> None:
    """The sweep after the agent's own end finds it as well."""
    away = int(one_host.said("away"))
    (one_host.root / "go").touch()
    assert away in {one.pid for one in one_host.ended(contained).killed}
    assert not lives(away)
