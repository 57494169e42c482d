"""A run: tasks that were submitted together."""

from __future__ import annotations

import msgspec

from fleet.model.states import RunState


class NewRun(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A run as a person asks for it."""

    name: str
    labels: dict[str, str] = {}


class Run(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, forbid_unknown_fields=True):
    """A run as it stands."""

    id: str
    name: str
    labels: dict[str, str] = {}
    state: RunState = RunState.ACTIVE
    tasks: int = 0
    created_at: int
    created_by: str
    ended_at: int | None = None
