"""A worker as its facts show it, and the line that the check writes about it."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from fleet.cli.pool_check import line
from fleet.errors import TransportError
from fleet.hosts.pool_worker import Facts, parse
from fleet.policy.allocation import Member
from fleet.projections.pools import view

KITE = Member(pool="kite", worker="kite-1")
NOW = 1_800_000_000_000
AT_WORK = Facts(
    setup="ready", now=NOW, tmux="up", pane="%1", state="running", since=NOW - 60_000, why="it was given a prompt"
)


def test_a_worker_without_a_commit_for_too_long_is_reported() -> None:
    """Counted from its last commit or from when it began to work, whichever is later; only while it works."""
    old, new = NOW // 1000 - 3600, NOW // 1000 - 60
    begun = replace(AT_WORK, since=NOW - 3_600_000, commit=old)
    assert view(KITE, begun, "t-1", "", minutes=30).overdue
    assert not view(KITE, replace(begun, commit=new), "t-1", "", minutes=30).overdue
    assert not view(KITE, replace(AT_WORK, commit=old), "t-1", "", minutes=30).overdue
    assert not view(KITE, replace(begun, state="completed"), None, "", minutes=30).overdue
    shown = line(view(KITE, begun, "t-1", "", minutes=30), 1_800_000_000)
    assert shown == (
        "[2027-01-15T08:00:00Z] kite-1 running it was given a prompt since 07:00:00Z; no commit for too long: remind it"
    )


def test_who_is_busy() -> None:
    """One with a task, or whose agent works or waits, whoever gave it that; one that has ended its turn is not."""
    assert view(KITE, AT_WORK, None, "", minutes=30).busy
    done = replace(AT_WORK, state="completed")
    assert not view(KITE, done, None, "", minutes=30).busy
    assert view(KITE, done, "t-1", "", minutes=30).busy
    absent = view(KITE, Facts(), None, "", minutes=30)
    assert (absent.state, absent.busy) == ("absent", False)
    failed = view(KITE, Facts(setup="failed", setup_why="no compiler"), None, "", minutes=30)
    assert (failed.state, failed.evidence) == ("error", "its setup failed: no compiler")


def test_facts_that_were_cut_off_are_none() -> None:
    """An answer without its last line, or with nonsense in it, is an error and not a fact."""
    text = "setup=ready\nnow=5\npane=%1\ndead=0\nmode=1\nstate=running\nwhy=a=b\nbranch=\nend=1\n"
    facts = parse(text)
    assert (facts.dead, facts.mode, facts.why, facts.now, facts.agent_lives) == (False, True, "a=b", 5, True)
    for broken in ("", "setup=ready\n", "now=soon\nend=1\n"):
        with pytest.raises(TransportError):
            parse(broken)
