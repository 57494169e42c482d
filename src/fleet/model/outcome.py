"""The outcome: what became of a session, by the coder's own words first, then its exit code, then its stderr."""

from __future__ import annotations

from enum import StrEnum

import msgspec


class OutcomeKind(StrEnum):
    """A closed set; each has its remedy."""

    OK = "ok"
    DENIED = "denied"
    AUTH = "auth"
    MISSING = "missing"  # the coder's program is not on the host: nothing ran
    PLAN_LIMIT = "plan_limit"
    TRANSIENT = "transient"
    CONTEXT = "context"
    REFUSAL = "refusal"
    BUDGET = "budget"
    INTERRUPTED = "interrupted"
    CRASHED = "crashed"
    STALLED = "stalled"
    PLUGIN = "plugin"  # what somebody plugged in for its coder failed in its own code; no coder says this itself


REMEDIES = {
    OutcomeKind.OK: "nothing to do",
    OutcomeKind.DENIED: "allow the tool that was denied, or change the task so that it is not needed, then restart it",
    OutcomeKind.AUTH: "sign in to the coder on that host, or name its key in [coders.NAME] secrets, then restart it",
    OutcomeKind.MISSING: "install it there (`fleet doctor` says how), or give the task another coder, then restart it",
    OutcomeKind.PLAN_LIMIT: "wait: the coder is paused until its limit resets, then the task goes on by itself",
    OutcomeKind.TRANSIENT: "wait: it is tried again by itself",
    OutcomeKind.CONTEXT: "wait: a fresh session goes on from the plan; split the task if this repeats",
    OutcomeKind.REFUSAL: "change the task's wording or its model, then restart it",
    OutcomeKind.BUDGET: "raise the budget or split the task, then restart it",
    OutcomeKind.INTERRUPTED: "restart it when you want it to go on",
    OutcomeKind.CRASHED: "look at its stderr: fleet task ID stderr",
    OutcomeKind.STALLED: "look at its log; restart it, or raise idle_seconds if it was only slow",
    OutcomeKind.PLUGIN: "mend or update the plugin that is named, then restart it",
}

UNKNOWN_RESET = "the coder is paused and tried again now and then; add credit or raise its plan if that does not help"


class Outcome(msgspec.Struct, frozen=True, kw_only=True):
    """What became of a session."""

    kind: OutcomeKind
    reason: str  # one sentence, by the coder's own words where it has any
    resets_at: int | None = None  # of a plan limit, UTC milliseconds
    bound: str = ""  # of a budget: which of its bounds, where Fleet itself found it crossed

    @property
    def remedy(self) -> str:
        """What a person can do about it."""
        if self.kind is OutcomeKind.PLAN_LIMIT and self.resets_at is None:
            return UNKNOWN_RESET
        return REMEDIES[self.kind]
