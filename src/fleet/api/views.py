"""The objects that the API alone gives, and those that it takes. All others are those of the commands."""

from __future__ import annotations

from typing import Annotated, Any

import msgspec
from msgspec import Meta

from fleet.config.tokens import Role
from fleet.projections.happened import About

Text = Annotated[str, Meta(min_length=1, max_length=100_000)]
Short = Annotated[str, Meta(min_length=1, max_length=2000, description="Stands in the ledger, with who asked.")]


class Health(msgspec.Struct, frozen=True, kw_only=True):
    """The server answers."""

    status: str
    version: str


class Me(msgspec.Struct, frozen=True, kw_only=True):
    """Who asks: the name that stands in the ledger, and the role of the token."""

    name: str
    role: Role


class EventLine(msgspec.Struct, frozen=True, kw_only=True):
    """An event in its place: `position` is where to go on after it, `about` the task that it is about."""

    position: str
    seq: int
    hash: str
    about: About | None
    event: dict[str, Any]


class Replay(msgspec.Struct, frozen=True, kw_only=True):
    """A piece of the ledger. `next` is the position to ask for the following one with."""

    events: list[EventLine]
    next: str
    more: bool


class Stopped(msgspec.Struct, frozen=True, kw_only=True):
    """What became of what was stopped: tasks, or wishes that supervisors carry out."""

    stopped: list[Any]


class Reason(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Why."""

    reason: Short | None = None


class Restart(Reason, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Why, and what is to be overridden."""

    force: bool = False
    abandon: bool = False  # give up its session: the host does not answer


class Asking(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What a person is asked."""

    text: Text


class Reply(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The answer to a question."""

    text: Text


class Judgement(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A person's verdict; without `passed`, the verifier is to run again."""

    passed: bool | None = None
    note: Annotated[str, Meta(max_length=2000)] = ""
