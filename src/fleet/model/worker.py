"""A worker: a named slot on a host, with what it can do and how much of it at once."""

from __future__ import annotations

from typing import Annotated

import msgspec
from msgspec import Meta

from fleet.model.clash import ClashError
from fleet.model.reach import Reach

TOKEN = r"^[A-Za-z0-9][A-Za-z0-9._-]{0,127}$(?!\n)"


class Worker(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A worker on a machine; repeat the table for each."""

    id: Annotated[
        str,
        Meta(pattern=TOKEN, description="Names it; unique.", extra={"expected": "letters, digits and . _ -"}),
    ]
    host: Annotated[
        str | Reach,
        Meta(
            description="Where it is: the name of a host, or a table with the fields of one.",
            extra={"expected": "the name of a host, or a table"},
        ),
    ]
    name: Annotated[str, Meta(description="What people call it.")] = ""
    capabilities: Annotated[tuple[str, ...], Meta(description="What it can do, for tasks that ask for it.")] = ()
    max_concurrent_tasks: Annotated[int, Meta(ge=1, le=1000, description="How many tasks it may run at once.")] = 1

    @property
    def title(self) -> str:
        """Its id, and what people call it."""
        return f"{self.id} ({self.name})" if self.name not in ("", self.id) else self.id

    def __post_init__(self) -> None:
        if isinstance(self.host, Reach) and self.host.max_concurrent_tasks != 1:
            raise ClashError(("host", "max_concurrent_tasks"), "is the worker's to say: give it beside `host`")
