"""A delivery: one alert on its way to one channel; recorded before anything is sent, with what came of it after."""

from __future__ import annotations

from typing import Literal

import msgspec

from fleet.model.alert import AlertKind

Action = Literal["trigger", "resolve"]
Came = Literal["sent", "failed", "dry_run", "duplicate", "dropped"]


class Delivery(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, forbid_unknown_fields=True):
    """What is to be told, and to which channel; never its address."""

    id: str  # of the event that it tells of, and the channel: the same alert goes to a channel once
    channel: str  # its name
    scope: str | None = None  # the run whose spec declares the channel; None: fleet.toml
    about: str  # the subject of the alert
    alert: AlertKind
    action: Action = "trigger"
    reason: str
    run: str | None = None
    task: str | None = None
    worker: str | None = None
    session: str | None = None
    status: str = ""
    raised_at: int
    by: str  # who sends it
    resolvable: bool = False  # the channel can be told that the trouble is over
    repeat: bool = False  # whoever was to send it before may have done so, and was cut off
    outcome: Came | None = None
    attempts: int = 0
    detail: str = ""
    ended_at: int | None = None

    @property
    def key(self) -> str:
        """What the alerts of one trouble have in common: a later one continues it, a resolve ends it."""
        return f"fleet/{self.alert.value}/{self.about}"
