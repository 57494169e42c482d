"""Faults of those whom many depend on: the provider of machines, and whoever answers a coder.

Where all machines of a provider vanish at once, or the sessions of a coder fail one after the other, that is one fault
of theirs, not many: it is told to the store as of a machine that is down, once, and once that it is over.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping
from typing import TYPE_CHECKING

from fleet.config.clock import utc_ms
from fleet.errors import FleetError
from fleet.model.host import Host
from fleet.model.notice import short
from fleet.model.outcome import Outcome, OutcomeKind
from fleet.policy.health import API_FAULTS, PROVIDER, api_fault, provider, vendor
from fleet.policy.redaction import redact

if TYPE_CHECKING:
    from fleet.supervisor.house import House

K = OutcomeKind
REFUSED = frozenset({K.AUTH, K.PLAN_LIMIT, K.TRANSIENT})  # by whoever answers the coder, whatever the task is
ANSWERED = frozenset({K.OK, K.DENIED, K.CONTEXT, K.REFUSAL, K.BUDGET})
IN_A_ROW = 3  # sessions of a coder, of more than one task
REMEMBERED = 20


class Faults:
    """What one supervisor found of them."""

    def __init__(self, house: House) -> None:
        self._house = house
        self._down: set[str] | None = None  # those that the store knows to have a fault
        self._told_at = 0  # when the provider of machines was last found to have one
        self._refused: dict[str, deque[str]] = {}  # by coder: the tasks of sessions that failed since one was answered

    async def of_machines(self, health: Mapping[str, Host]) -> str | None:
        """The fault of the provider, by what it last said of each of its machines. It is told once for each round."""
        seen = [host for host in health.values() if host.status]
        fault = api_fault([host.status for host in seen], [host.evidence for host in seen])
        if fault:
            if self._told_at > utc_ms():
                self._told_at = 0  # the clock was set back
            if min(host.probed_at or 0 for host in seen) > self._told_at:
                self._told_at = utc_ms()
                await self._tell(provider(fault, self._told_at), alert_after=self._house.settings.health.alert_after)
        elif self._is_down(PROVIDER) and any(host.status not in API_FAULTS for host in seen):
            await self._tell(provider(None, utc_ms()))
        return fault

    async def of_coder(self, coder: str, task: str, outcome: Outcome) -> None:
        """A session of a coder ended so."""
        if outcome.kind in ANSWERED:
            self._refused.pop(coder, None)
            if self._is_down(vendor(coder, None, 0).name):
                await self._tell(vendor(coder, None, utc_ms()))
        if outcome.kind not in REFUSED:
            return
        refused = self._refused.setdefault(coder, deque(maxlen=REMEMBERED))
        refused.append(task)
        if len(refused) < IN_A_ROW or len(set(refused)) < 2 or self._is_down(vendor(coder, None, 0).name):
            return
        words = f"{len(refused)} sessions in a row failed, the last with {outcome.kind.value}: {redact(outcome.reason)}"
        await self._tell(vendor(coder, short(words), utc_ms()))

    def _is_down(self, name: str) -> bool:
        if self._down is None:
            try:
                self._down = {host.name for host in self._house.store.hosts() if host.state == "down"}
            except (FleetError, OSError) as exc:  # it is asked again at the next occasion
                self._house.log("faults_not_known", error=str(exc))
                return False
        return name in self._down

    async def _tell(self, found: Host, *, alert_after: int = 1) -> None:
        house = self._house
        down = found.state == "down"
        if self._is_down(found.name) != down:
            house.log("fault_found" if down else "fault_over", of=found.name, evidence=found.evidence)
        try:
            days = house.settings.health.keep_days
            await house.store.probed(found, by=house.name, alert_after=alert_after, keep_days=days)
        except (FleetError, OSError) as exc:  # it is told at the next occasion
            house.log("fault_not_told", of=found.name, error=str(exc))
            self._told_at = 0
            return
        if self._down is not None:
            (self._down.add if down else self._down.discard)(found.name)
