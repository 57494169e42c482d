"""Whether a machine is well, by what a look at it found; and when it is the provider that is ill."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from msgspec.structs import replace

from fleet.model.host import Host

DISK_NEARLY_FULL_PCT = 90
CLOCK_OFF_SECONDS = 10
LOGIN_IDLE_DAYS = 30  # what renews a login does not live much longer by itself
DAY_MS = 86_400_000
DENIALS = 2  # in a row, before a machine that its provider alone denies is called down
API_FAULTS = frozenset({"not_found", "error"})
ASLEEP = frozenset({"warm", "cold"})
PROVIDER = "api:sprites"  # no host can have this name


class Health(NamedTuple):
    """The judgement, with its reason in a few words. None: it is not known, as of a machine that sleeps."""

    healthy: bool | None
    reason: str = ""


def judge(status: str, responsive: bool | None) -> Health:
    """A machine is healthy that its provider knows and that ran a command. Silence is never health."""
    if status in API_FAULTS:
        return Health(False, f"api:{status}")
    if responsive is None:
        return Health(None, "asleep" if status in ASLEEP else "unknown")
    return Health(True) if responsive else Health(False, "unresponsive")


def warnings(
    *, coder: bool | None, program: str, disk_used_pct: int | None, clock_ahead_seconds: int | None
) -> list[str]:
    """What a person should see to, though the machine answers."""
    told: list[str] = []
    if coder is False:
        told.append(f"{program} is not found")
    if disk_used_pct is not None and disk_used_pct >= DISK_NEARLY_FULL_PCT:
        told.append(f"its disk is {disk_used_pct} % full")
    if clock_ahead_seconds is not None and abs(clock_ahead_seconds) >= CLOCK_OFF_SECONDS:
        told.append(f"its clock is {abs(clock_ahead_seconds)} s {'ahead' if clock_ahead_seconds > 0 else 'behind'}")
    return told


def frozen(task: str, status: str, *, woken: bool) -> str:
    """What became of a task whose machine its provider found asleep: a warm one keeps its processes, a cold one not."""
    if status == "cold":
        return f"task {task} has lost its processes: the machine was asleep and is cold"
    if woken:
        return f"task {task} stood still: the machine was asleep until this check woke it"
    return f"task {task} stands still: the machine is asleep"


def login_warning(coder: str, *, expires_at: int | None, renewed_at: int | None, renews: bool, now: int) -> str | None:
    """Whether a coder's login has expired. One that renews itself has only when nobody has used it for long."""
    days = (now - (expires_at or renewed_at or now)) // DAY_MS
    if expires_at is not None and expires_at < now and not renews:
        return f"the login of {coder} has expired"
    if days >= LOGIN_IDLE_DAYS:
        return f"the login of {coder} was not renewed for {days} days: it may have expired"
    return None


def denial(reason: str, times: int) -> str:
    """The evidence of a machine that its provider denies; how often in a row, where it is not the first time."""
    return reason if times == 1 else f"{times} checks in a row did not find it"


def denied(host: Host, known: Host | None, reason: str, *, api_fault: str | None) -> Host:
    """A machine that its provider alone denies: it is not known to be down before it has been denied several times.

    Nor is it while the provider itself has a fault.
    """
    certain = not api_fault and (known.failures if known else 0) + 1 >= DENIALS
    return replace(host, state="down" if certain else host.state, evidence=reason)


def held(host: Host, api_fault: str | None) -> Host:
    """A machine as it stands while its provider has a fault: what the provider alone says of it is not believed."""
    return replace(host, state="unknown") if api_fault and host.status in API_FAULTS else host


def api_fault(statuses: Sequence[str], reasons: Sequence[str]) -> str | None:
    """One fault of the provider, where all of several of its machines have vanished at once: that is no coincidence."""
    if len(statuses) < 2 or not all(status in API_FAULTS for status in statuses):
        return None
    words = f"all {len(statuses)} are {statuses[0]}" if len(set(statuses)) == 1 else f"none of {len(statuses)} is found"
    reason = next((reason for reason in reasons if reason), "")
    return f"{words} at once: {reason}" if reason else f"{words} at once"


def provider(fault: str | None, now: int) -> Host:
    """The provider, as a machine that is down while it has a fault: told once, and once that it is over."""
    return _beside(PROVIDER, "api", fault, "it tells of the machines again", now)


def fault_of(known: Mapping[str, Host]) -> str | None:
    """The fault that the provider was last found to have; None where it has none."""
    found = known.get(PROVIDER)
    return found.evidence if found is not None and found.state == "down" else None


def vendor(coder: str, fault: str | None, now: int) -> Host:
    """Whoever answers a coder, in the same way."""
    return _beside(f"coder:{coder}", "coder", fault, "a session of it was answered again", now)


def _beside(name: str, kind: str, fault: str | None, well: str, now: int) -> Host:
    state = "down" if fault else "up"
    return Host(name=name, kind=kind, state=state, since=now, evidence=fault or well, probed_at=now)
