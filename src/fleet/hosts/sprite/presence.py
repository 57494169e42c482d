"""Whether a sprite is there: no single answer that it is not is believed.

The provider has answered 404, and listed nothing, for sprites that were there. One is missing only when several checks,
some time apart, all say so: the question for it, the list, and the list shows others. Until then it is `missing?`.
"""

from __future__ import annotations

from enum import StrEnum

import msgspec

from fleet.errors import HostMissing, TransportError
from fleet.hosts.sprite.answers import Sprite
from fleet.hosts.sprite.api import SpriteApi

CHECKS = 3
APART_SECONDS = 120.0  # between the first check that counts and the last


class Presence(StrEnum):
    """What is known of a sprite."""

    RUNNING = "running"
    WARM = "warm"  # asleep: its processes stand still
    COLD = "cold"  # asleep: no process has survived
    UNKNOWN = "unknown"  # the API did not say
    MISSING_MAYBE = "missing?"
    MISSING = "missing"


class Seen(msgspec.Struct, frozen=True, kw_only=True):
    """What a check found, and by what evidence."""

    name: str
    presence: Presence
    evidence: str
    sprite: Sprite | None = None

    @property
    def asleep(self) -> bool:
        """Whether nothing runs on it."""
        return self.presence in {Presence.WARM, Presence.COLD}


class Doubt:
    """The checks of one sprite that did not find it, as long as none did."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._times: list[float] = []

    def found(self, sprite: Sprite) -> Seen:
        """It is there; all doubt is gone."""
        self._times.clear()
        known = sprite.status in {"running", "warm", "cold"}
        presence = Presence(sprite.status) if known else Presence.UNKNOWN
        return Seen(name=self._name, presence=presence, evidence="the API says so", sprite=sprite)

    def not_found(self, others: int, now: float) -> Seen:
        """Neither the question nor the list knows it. `others`: how many the list shows."""
        if not others:
            return self._maybe("the API shows no sprite at all: the fault may be the API's own")
        self._times.append(now)
        count, span = len(self._times), now - self._times[0]
        if count >= CHECKS and span >= APART_SECONDS:
            evidence = f"{count} checks in {span:.0f} s did not find it among {others} others"
            return Seen(name=self._name, presence=Presence.MISSING, evidence=evidence)
        return self._maybe(f"{count} of {CHECKS} checks did not find it")

    def _maybe(self, evidence: str) -> Seen:
        return Seen(name=self._name, presence=Presence.MISSING_MAYBE, evidence=evidence)


async def check(api: SpriteApi, doubt: Doubt, name: str, now: float) -> Seen:
    """Ask the API, which wakes nothing. It never raises: an API that fails is evidence of nothing."""
    try:
        try:
            return doubt.found(await api.get(name))
        except HostMissing:
            listed = {sprite.name: sprite for sprite in await api.list()}
        if name in listed:
            return doubt.found(listed[name])
        return doubt.not_found(len(listed), now)
    except TransportError as exc:
        return Seen(name=name, presence=Presence.UNKNOWN, evidence=str(exc))
