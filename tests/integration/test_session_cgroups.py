"""The cgroups of sessions: each has one where the machine gives them, and none is left, however the session ended."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

from fleet.hosts.facts import HostState
from fleet.hosts.kernel import cgroup_of, make_cgroup, remove_cgroup, remove_orphaned_cgroups, start_time
from fleet.hosts.launch_file import Rules
from fleet.hosts.session import HostedSession
from fleet.model.launch import Launch
from tests.support.session_fixtures import under_each_shell, under_sh, where_cgroups_are_made  # noqa: F401  # fixtures
from tests.support.session_host import SessionHost, do, stat_of, until

CONTAINED = Rules(look_seconds=1, grace_ms=200, use_cgroup=True)


def test_an_end_leaves_none(host: SessionHost, cgroups: Path) -> None:
    """A session whose agent ended by itself is cleared without a process."""
    session = host.started(f"cat /proc/self/cgroup >{host.root}/inside; echo >>{host.root}/inside", CONTAINED)
    place = cgroup_of(session.directory)
    assert place.startswith(str(cgroups.parent))
    host.ended(session)
    assert f"/{Path(place).name}\n" in host.said("inside")
    session.clear()
    assert not Path(place).exists()
    session.clear()


def test_one_that_is_in_use_is_kept(one_host: SessionHost, cgroups: Path) -> None:
    """To clear a session that runs changes nothing."""
    session = one_host.started("exec sleep 1000", CONTAINED)
    session.clear()
    assert Path(cgroup_of(session.directory)).exists()
    do(session.stop(grace_seconds=1))
    assert not Path(cgroup_of(session.directory)).exists()


def test_a_second_start_leaves_none(one_host: SessionHost, cgroups: Path) -> None:
    """Whoever starts what another has started made a cgroup for nothing, and removes it."""
    session = one_host.started("exec sleep 1000", CONTAINED)
    again = HostedSession(one_host.transport, str(one_host.root), session.session, 1, shell=one_host.shell)
    do(again.prepare(Launch(argv=("sleep", "1000"), cwd="/"), CONTAINED))
    before = set(cgroups.parent.glob(f"fleet-{session.session}.*"))
    do(again.start())
    assert set(cgroups.parent.glob(f"fleet-{session.session}.*")) == before
    do(session.stop(grace_seconds=1))


def test_two_of_one_name(cgroups: Path) -> None:
    """Sessions of one name, of two homes or one after the other, have each its own: clearing one leaves the other's."""
    first, second = Path(make_cgroup("t.1")), Path(make_cgroup("t.1"))
    try:
        assert first.parent == second.parent == cgroups.parent
        remove_cgroup(str(first))
        assert (first.exists(), second.exists()) == (False, True)
    finally:
        remove_cgroup(str(second))


def test_a_runner_killed_before_the_agent_began(host: SessionHost, cgroups: Path) -> None:
    """The watch over all sessions removes what such a runner left, though there is no record of an end."""
    other = host.started("exec sleep 1000", CONTAINED)  # there is something to watch over
    dead = host.prepared("exec sleep 1000", CONTAINED)
    place = Path(make_cgroup(dead.session))
    host.file(dead, "claim").write_text(f"runner 999999 1 {'0' * 36} 1 0 {place}\n")
    do(other.stop(grace_seconds=1))
    until(lambda: not place.exists(), "its removal")
    assert do(dead.observe()).state is HostState.ABANDONED


def test_orphans_are_removed(cgroups: Path) -> None:
    """What nobody knows of any more goes when it is empty and old enough; what is not ours, or in use, stays."""
    empty, used, other = (cgroups / name for name in ("fleet-a.1", "fleet-b.1", "theirs"))
    for each in (empty, used, other):
        each.mkdir()
    process = subprocess.Popen(["sleep", "1000"])
    try:
        (used / "cgroup.procs").write_text(str(process.pid))
        remove_orphaned_cgroups(str(cgroups))
        assert empty.exists()
        remove_orphaned_cgroups(str(cgroups), seconds=0)
        assert not empty.exists()
        assert used.exists()
        assert other.exists()
    finally:
        process.kill()
        process.wait()
        used.rmdir()
        other.rmdir()
    remove_orphaned_cgroups(str(cgroups / "not-there"), seconds=0)


def test_the_start_of_a_process() -> None:
    """It is the one that the kernel tells, whatever the name of the process; there is none of one that is not there."""
    assert start_time(os.getpid()) == stat_of(os.getpid())[19]
    assert start_time(1 << 30) == ""
