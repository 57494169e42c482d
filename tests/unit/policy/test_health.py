"""Whether a machine is well."""

from __future__ import annotations

import pytest

from fleet.model.host import Host
from fleet.policy.health import (
    Health,
    api_fault,
    fault_of,
    frozen,
    held,
    judge,
    login_warning,
    provider,
    vendor,
    warnings,
)


@pytest.mark.parametrize(
    ("status", "responsive", "expected"),
    [
        ("warm", True, Health(True)),
        ("up", True, Health(True)),
        ("not_found", None, Health(False, "api:not_found")),
        ("error", None, Health(False, "api:error")),
        ("warm", False, Health(False, "unresponsive")),
        ("down", False, Health(False, "unresponsive")),
        ("cold", None, Health(None, "asleep")),
        ("unknown", None, Health(None, "unknown")),
    ],
)
def test_judging(status: str, responsive: bool | None, expected: Health) -> None:
    """It is well that ran a command; what sleeps or was not asked is not known; the words are the first manager's."""
    assert judge(status, responsive) == expected


def test_warnings() -> None:
    """A missing coder, a disk that is nearly full and a clock that is off are told, each by its figure."""
    told = warnings(coder=False, program="claude", disk_used_pct=97, clock_ahead_seconds=-75)
    assert told == ["claude is not found", "its disk is 97 % full", "its clock is 75 s behind"]
    assert warnings(coder=True, program="claude", disk_used_pct=89, clock_ahead_seconds=3) == []
    assert warnings(coder=None, program="claude", disk_used_pct=None, clock_ahead_seconds=None) == []


def test_one_fault_in_the_place_of_many() -> None:
    """When all of several machines of a provider vanish at once, it is the provider's fault; one alone is not."""
    assert api_fault(["not_found"] * 8, [""] * 8) == "all 8 are not_found at once"
    told = api_fault(["error", "not_found"], ["", "the token is not accepted"])
    assert told == "none of 2 is found at once: the token is not accepted"
    assert api_fault(["not_found"], [""]) is None
    assert api_fault(["not_found", "warm"], ["", ""]) is None
    assert api_fault([], []) is None


DAY = 86_400_000


@pytest.mark.parametrize(
    ("expires_at", "renewed_at", "renews", "told"),
    [
        (1_000 * DAY + 1, None, False, None),
        (1_000 * DAY - 1, None, False, "the login of claude has expired"),
        (1_000 * DAY - 1, None, True, None),
        (960 * DAY, None, True, "the login of claude was not renewed for 40 days: it may have expired"),
        (None, 960 * DAY, True, "the login of claude was not renewed for 40 days: it may have expired"),
        (None, 999 * DAY, True, None),
        (None, None, False, None),
    ],
)
def test_expired_logins(expires_at: int | None, renewed_at: int | None, renews: bool, told: str | None) -> None:
    """One that cannot renew itself expires at its time; one that can, when it was not used for long."""
    found = login_warning("claude", expires_at=expires_at, renewed_at=renewed_at, renews=renews, now=1_000 * DAY)
    assert found == told


def test_work_on_a_machine_that_slept() -> None:
    """It stands still, or stood still until it was woken; on a cold one it is lost."""
    assert frozen("t", "warm", woken=False) == "task t stands still: the machine is asleep"
    assert frozen("t", "warm", woken=True) == "task t stood still: the machine was asleep until this check woke it"
    assert frozen("t", "cold", woken=True).startswith("task t has lost its processes")


def test_what_a_provider_with_a_fault_says_of_a_machine_is_not_believed() -> None:
    """It is unknown, though denied for long. What was learned of the machine itself, or without a fault, counts."""
    denied = Host(name="forge", kind="sprite", state="down", since=1, status="not_found")
    ill = Host(name="mallet", kind="sprite", state="down", since=1, status="running")
    assert held(denied, "all 2 are not_found at once").state == "unknown"
    assert held(denied, None) == denied
    assert held(ill, "all 2 are not_found at once") == ill


def test_whom_many_depend_on_is_told_as_a_machine() -> None:
    """Down with its fault, up without one, by a name that no host can have."""
    down = provider("all 2 are error at once", 5)
    assert (down.name, down.state, down.evidence, down.since) == ("api:sprites", "down", "all 2 are error at once", 5)
    assert fault_of({down.name: down}) == "all 2 are error at once"
    assert fault_of({down.name: provider(None, 6)}) is None
    assert (vendor("claude", "no", 5).name, vendor("claude", None, 5).state) == ("coder:claude", "up")
