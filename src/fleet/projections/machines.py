"""The machines: what is known of each, since when, and whether it is well; by a look now, or by the last one."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import Any

import msgspec
from msgspec.structs import replace

from fleet.config.clock import utc_ms
from fleet.config.machines import Host
from fleet.config.settings import MODELLESS, Settings
from fleet.hosts.fanout import Way, across
from fleet.hosts.probe import Login
from fleet.hosts.sight import Look, Patience, look_at
from fleet.model import host as model
from fleet.model.session import Session
from fleet.policy import health
from fleet.policy.selection import called, noun, role_of, team_of
from fleet.store.reads import Reads

LITTLE_LATE = 0.5  # seconds
LEAST_SHARE = 0.5  # of its time, that even the last of many machines has
AT_ONCE = 200  # machines: one that does not answer must not keep the others waiting


class Machine(msgspec.Struct, frozen=True, kw_only=True):
    """One machine. What is None is not known."""

    name: str
    api_name: str
    kind: str
    team: str
    role: str
    status: str  # running, warm, cold, not_found or error of its provider; else up, down or unknown
    responsive: bool | None = None
    ms: int | None = None
    coder: bool | None = None
    healthy: bool | None = None
    reason: str = ""  # why it is not healthy, in a word or two
    detail: str = ""  # the evidence
    warnings: tuple[str, ...] = ()
    asleep: bool = False
    draining: bool = False  # it takes no new work, by a person's word
    disk_used_pct: int | None = None
    clock_ahead_seconds: int | None = None
    since: int | None = None  # when it came to be so, as far as is known
    probed_at: int | None = None  # when the last probe or look was
    answered_at: int | None = None  # its last good probe


class Machines(msgspec.Struct, frozen=True, kw_only=True):
    """All that were asked about, counted."""

    noun: str  # what one is called: sprite, or host where they are mixed
    total: int
    healthy: int
    unhealthy: int
    asleep: int
    unknown: int
    api_fault: str | None  # one fault of the provider, in the place of many dead machines
    machines: tuple[Machine, ...]


def program_of(host: Host, settings: Settings) -> str:
    """The coder's program that is looked for on a machine."""
    coder = settings.supervisor.coder
    if coder in MODELLESS:
        coder = "claude"
    options = settings.coders.get(coder)
    return host.agent_binary or (options.program if options else "") or coder


async def look_everywhere(
    hosts: Sequence[Host],
    way_to: Callable[[Host], Way],
    settings: Settings,
    *,
    wake: bool,
    tell: Callable[[Host, Look], None],
    rests: Callable[[Host], bool] = lambda _: False,
) -> None:
    """Look at every machine at once, within the timeouts; each is told as soon as it is known.

    One that `rests` is not probed where its provider tells of it. The time is that of all: to start some hundred probes
    takes seconds, and who is asked last may not end later for it.
    """
    times, began = settings.timeouts, time.monotonic()
    patience = Patience(api_seconds=times.api_status, probe_seconds=times.health_probe, wake=wake)

    async def look(host: Host) -> tuple[Host, Look]:
        left = time_left(times.health_probe, time.monotonic() - began)
        asked = replace(patience, probe=not rests(host), probe_seconds=left)
        return host, await look_at(host.name, host, way_to(host), program_of(host, settings), asked)

    await across(hosts, look, parallel=AT_ONCE, tell=lambda answer: tell(*answer))


def time_left(seconds: float, late: float) -> float:
    """What is left of a machine's time, when it is asked so much later than the first."""
    return seconds if late < LITTLE_LATE else max(round(seconds - late, 1), seconds * LEAST_SHARE)


def seen_now(
    host: Host, look: Look, known: model.Host | None, program: str, sessions: Sequence[Session] = ()
) -> Machine:
    """A machine by a look at it. `known` is what the store had of it; `sessions` are those that live on it."""
    if known is not None and look.found is None and look.status == "running":
        return _left_alone(host, look, known)
    judged = health.judge(look.status, look.responsive)
    facts = look.facts
    told = health.warnings(
        coder=facts.coder,
        program=program,
        disk_used_pct=facts.disk_used_pct,
        clock_ahead_seconds=facts.clock_ahead_seconds,
    )
    now = utc_ms()
    told += [text for login in facts.logins if (text := _login_warning(login, now))]
    if look.responsive and look.reason and look.reason != f"there is no program {program}":
        told.append(look.reason)
    if look.status in health.ASLEEP:
        told += [health.frozen(session.task, look.status, woken=look.responsive is True) for session in sessions]
    found = look.found
    return Machine(
        **_called(host),
        status=look.status,
        responsive=look.responsive,
        ms=look.ms,
        coder=facts.coder,
        healthy=judged.healthy,
        reason=judged.reason,
        detail="" if look.responsive else _repeated(look, known),
        warnings=tuple(told),
        asleep=look.asleep and look.responsive is None,
        draining=known is not None and known.draining,
        disk_used_pct=facts.disk_used_pct,
        clock_ahead_seconds=facts.clock_ahead_seconds,
        since=_since(found, known),
        probed_at=found.probed_at if found else None,
        answered_at=(found.answered_at if found else None) or (known.answered_at if known else None),
    )


def _left_alone(host: Host, look: Look, known: model.Host) -> Machine:
    """A machine that runs and was not probed, so that it may fall asleep: it is as its last probe found it."""
    return replace(seen_last(host, replace(known, status=look.status)), ms=look.ms)


def to_keep(look: Look, machine: Machine, known: model.Host | None, *, api_fault: str | None) -> model.Host | None:
    """What the store is told of a look; None where nothing was learned."""
    if look.found is None:
        return None
    status = look.status if machine.kind == "sprite" else ""
    found = replace(look.found, status=status, warnings=machine.warnings)
    if look.status not in health.API_FAULTS:
        return found
    return health.denied(found, known, machine.detail, api_fault=api_fault)


def seen_last(host: Host, known: model.Host | None) -> Machine:
    """A machine by what the store has of it."""
    if known is None or known.probed_at is None:
        draining = known is not None and known.draining
        return Machine(
            **_called(host), status="unknown", reason="unknown", detail="it was never probed", draining=draining
        )
    denied = known.status in health.API_FAULTS or known.state == "unknown"
    asleep = known.status in health.ASLEEP and (known.answered_at or 0) < known.probed_at  # nobody has woken it since
    responsive = None if denied or asleep else known.latency_ms is not None
    judged = health.judge(known.status or known.state, responsive)
    return Machine(
        **_called(host),
        status=known.status or known.state,
        responsive=responsive,
        ms=known.latency_ms,
        coder=known.coder if responsive else None,  # that of one which is not there, or silent, is not known
        healthy=judged.healthy,
        reason=judged.reason,
        detail="" if judged.healthy or asleep else known.evidence,
        warnings=known.warnings if judged.healthy else (),
        asleep=asleep,
        draining=known.draining,
        since=known.since,
        probed_at=known.probed_at,
        answered_at=known.answered_at,
    )


def recalled(hosts: Sequence[Host], reads: Reads) -> Machines:
    """The machines by what the store has of them."""
    known = {host.name: host for host in reads.hosts()}
    return counted(hosts, [seen_last(host, known.get(host.name)) for host in hosts])


def counted(hosts: Sequence[Host], machines: Sequence[Machine]) -> Machines:
    """The machines and their totals, in the order of the hosts."""
    place = {host.name: at for at, host in enumerate(hosts)}
    ordered = tuple(sorted(machines, key=lambda machine: place[machine.name]))
    sprites = [machine for machine in ordered if machine.kind == "sprite"]
    fault = health.api_fault([each.status for each in sprites], [each.detail for each in sprites])
    if fault is not None:  # of the machines themselves nothing is known
        ordered = tuple(_in_doubt(machine) if machine.kind == "sprite" else machine for machine in ordered)
    return Machines(
        noun=noun(hosts),
        total=len(ordered),
        healthy=sum(machine.healthy is True for machine in ordered),
        unhealthy=sum(machine.healthy is False for machine in ordered),
        asleep=sum(machine.asleep for machine in ordered),
        unknown=sum(machine.healthy is None and not machine.asleep for machine in ordered),
        api_fault=fault,
        machines=ordered,
    )


def _in_doubt(machine: Machine) -> Machine:
    return replace(machine, healthy=None, reason="unknown")


def _called(host: Host) -> dict[str, Any]:
    return {
        "name": host.name,
        "api_name": called(host),
        "kind": host.kind,
        "team": team_of(host.name),
        "role": role_of(host.name),
    }


def _since(found: model.Host | None, known: model.Host | None) -> int | None:
    """Since when it is up, or is not; None where this look learned nothing of that."""
    if found is None:
        return None
    return known.since if known and (known.state == "up") == (found.state == "up") else found.since


def _repeated(look: Look, known: model.Host | None) -> str:
    """The reason; of a denial, how often it came in a row."""
    if look.status != "not_found":
        return look.reason
    return health.denial(look.reason, (known.failures if known else 0) + 1)


def _login_warning(login: Login, now: int) -> str | None:
    return health.login_warning(
        login.coder, expires_at=login.expires_at, renewed_at=login.renewed_at, renews=login.renews, now=now
    )
