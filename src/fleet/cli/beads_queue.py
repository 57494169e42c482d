"""Which queue a command speaks of: Fleet's own, or the one that bd keeps."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fleet.errors import UsageError

if TYPE_CHECKING:
    from fleet.cli.context import Context


def refuse_beads(context: Context, instead: str) -> None:
    """With `[queue] source = "beads"` the queue is bd's: say which command acts on it, show no other queue."""
    if context.settings.queue.source == "beads":
        raise UsageError("the queue of this home is kept by bd", hint=f"use `{instead}`")
