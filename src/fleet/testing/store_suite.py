"""What the suites over a store share: how they get at one, and the first steps of most tests."""

from __future__ import annotations

from typing import Protocol

import pytest

from fleet.model.session import Claimed
from fleet.model.task import Task
from fleet.store.store import Store
from fleet.testing.builders import DEFAULTS, EXITED, a_pass, a_task, slots

ME = "ana"
SUP = "sup-1"


class Stores(Protocol):
    """How a suite gets at an implementation: several handles on one database, a clock, and a way to end a lease."""

    def open(self, *, grouped: bool = False) -> Store:
        """One more handle, as another process would have."""

    def tick(self, seconds: float) -> None:
        """Let time pass on the clock that the stores use."""

    def end_lease(self, store: Store, supervisor: str) -> None:
        """As if the process that holds the lease through this handle were gone."""


class StoreSuite:
    """A suite over every implementation."""

    @pytest.fixture
    def stores(self) -> Stores:
        raise NotImplementedError

    @pytest.fixture
    def store(self, stores: Stores) -> Store:
        store = stores.open()
        store.join(SUP, machine="here", pid=1, seconds=60).result()
        return store

    def add(self, store: Store, *titles: str, **fields: object) -> list[Task]:
        return store.submit([a_task(title, **fields) for title in titles], by=ME).result()

    def claim(self, store: Store, n: int = 1, supervisor: str = SUP) -> list[Claimed]:
        return store.claim(supervisor, slots(n), DEFAULTS).result()

    def claim_one(self, store: Store) -> Claimed:
        (claimed,) = self.claim(store)
        return claimed

    def complete(self, store: Store, claimed: Claimed) -> Task:
        store.started(claimed.session.fence, 42, by=SUP).result()
        return store.finish(claimed.session.fence, EXITED, a_pass(), by=SUP).result()
