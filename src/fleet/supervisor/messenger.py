"""The messenger: an alerter for a command that ends. What it found is told, whether a supervisor is up or not."""

from __future__ import annotations

import asyncio

from fleet.model.delivery import Delivery
from fleet.supervisor.alerter import Alerter
from fleet.supervisor.house import House


class Messenger:
    """To be made before what may raise an alert. Of a supervisor and of this, who announces it first sends it."""

    def __init__(self, house: House) -> None:
        self._house = house
        asyncio.run(Alerter(house).begin())

    def close(self) -> None:
        """Let go of the store."""
        self._house.store.close()

    def send(self, seconds: float) -> list[Delivery]:
        """Send what is new. Returns what is left after so long: the next one, or a supervisor, takes it over."""
        asyncio.run(Alerter(self._house).once(seconds))
        return [each for each in self._house.store.undelivered() if each.by == self._house.name]
