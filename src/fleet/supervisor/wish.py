"""A wish: that a session shall end. It is kept with the session's progress, so that a crash does not forget it."""

from __future__ import annotations

import msgspec
from msgspec.structs import replace

from fleet.model.session import Progress

OF_PEOPLE = frozenset({"stop", "interrupt", "restart"})


class Wish(msgspec.Struct, frozen=True):
    """That a session shall end, why, and what then becomes of its task."""

    verb: str  # stop, interrupt, restart, shutdown, limit
    reason: str
    outcome: str = "interrupted"
    by: str = ""
    intent: str | None = None
    bound: str = ""  # of a limit


def kept(progress: Progress, wish: Wish) -> Progress:
    """The progress of a session that is about to be ended for a wish."""
    stopped_for = f"{wish.verb}:{wish.outcome}:{wish.bound}"
    return replace(progress, stopped_for=stopped_for, stopped_reason=wish.reason, stopped_by=wish.by)


def recalled(progress: Progress) -> Wish | None:
    """The wish for which a session was ended, if it was."""
    if progress.stopped_for is None:
        return None
    verb, outcome, bound = (*progress.stopped_for.split(":"), "", "")[:3]
    reason = progress.stopped_reason or f"{verb} asked before"
    return Wish(verb, reason, outcome=outcome, by=progress.stopped_by, bound=bound)
