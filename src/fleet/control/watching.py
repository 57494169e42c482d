"""What looks at the machines found is told to the store: the state of each, and of the provider that tells of them."""

from __future__ import annotations

from collections.abc import Sequence

from fleet.config.clock import utc_ms
from fleet.config.machines import Health
from fleet.model.host import Host
from fleet.policy.health import API_FAULTS, fault_of, provider
from fleet.store.store import Store


def keep(store: Store, found: Sequence[Host], api_fault: str | None, settings: Health, *, by: str) -> None:
    """Tell the store. One fault of the provider is one machine that is down: people hear of it once."""
    told = [
        store.probed(host, by=by, alert_after=settings.alert_after, keep_days=settings.keep_days)
        for host in [*found, *_provider(store, found, api_fault)]
    ]
    for each in told:
        each.result()


def _provider(store: Store, found: Sequence[Host], api_fault: str | None) -> list[Host]:
    """The provider as it stands; nothing where it is well and always was, or did not tell of any machine."""
    tells = any(host.kind == "sprite" and host.status not in API_FAULTS for host in found)
    if not api_fault and not (tells and fault_of({host.name: host for host in store.hosts()})):
        return []
    return [provider(api_fault, utc_ms())]
