"""Who `fleet health` calls ill."""

from __future__ import annotations

from msgspec.structs import replace

from fleet.cli.health import ill_of
from fleet.config.machines import Host
from fleet.projections.machines import Machine, counted


def a_machine(
    name: str, healthy: bool | None, reason: str = "", *, kind: str = "sprite", status: str = "warm"
) -> Machine:
    """One that was looked at."""
    return Machine(name=name, api_name=name, kind=kind, team="", role="", status=status, healthy=healthy, reason=reason)


def ill(*machines: Machine) -> list[tuple[str, str]]:
    """Who of these is."""
    hosts = [Host(name=each.name, kind="sprite") for each in machines]
    return ill_of(counted(hosts, machines))


def test_what_is_not_known_is_not_health() -> None:
    """A machine of which nothing was learned is listed, with that word."""
    assert ill(a_machine("a", True), a_machine("b", None, "unknown")) == [("b", "unknown")]


def test_whom_the_provider_does_not_know_goes_first() -> None:
    """In the order of the settings otherwise."""
    found = ill(a_machine("a", False, "unresponsive"), a_machine("b", False, "api:error"), a_machine("c", True))
    assert found == [("b", "api:error"), ("a", "unresponsive")]


def test_one_fault_stands_for_all_sprites() -> None:
    """And for no other machine."""
    gone = [a_machine(name, False, "api:not_found", status="not_found") for name in ("a", "b")]
    box = a_machine("box", False, "unresponsive", kind="ssh", status="down")
    assert ill(*gone, box) == [("api", "all 2 are not_found at once"), ("box", "unresponsive")]


def test_one_that_sleeps_is_not_ill() -> None:
    """Where nobody was to wake it, as by the last probes of a fleet elsewhere."""
    asleep = replace(a_machine("a", None, "asleep"), asleep=True)
    assert ill(asleep, a_machine("b", None, "unknown")) == [("b", "unknown")]
