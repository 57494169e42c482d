"""The recorded transcripts: of which coder, how the process ended, and what a person should learn from it.

A transcript is the stdout of the real program, byte for byte, run against a stand-in for its model; those of agy are
written by hand after public reports. Beside each stands what is expected of it, as JSON.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from fleet import plugins
from fleet.coders.coder import Coder, Exit
from fleet.model.outcome import Outcome, OutcomeKind
from fleet.model.stream import AnySaid

HERE = Path(__file__).parent
OK, DENIED, AUTH, _, PLAN_LIMIT, TRANSIENT, CONTEXT, REFUSAL, BUDGET, INTERRUPTED, CRASHED, STALLED, _ = OutcomeKind


@dataclass(frozen=True)
class Case:
    """One transcript, how its process ended, and the kind of outcome that is right."""

    coder: str
    name: str
    kind: OutcomeKind
    code: int | None = 0
    signal: int | None = None
    stopped_for: str | None = None
    stderr: str = ""
    before: str = ""  # the transcript whose conversation this one goes on with

    @property
    def id(self) -> str:
        """As a test calls it."""
        return f"{self.coder}-{self.name}"

    @property
    def transcript(self) -> Path:
        """The lines."""
        return HERE / self.coder / f"{self.name}.jsonl"

    @property
    def expected(self) -> Path:
        """What they mean."""
        return HERE / self.coder / f"{self.name}.json"

    @property
    def exit(self) -> Exit:
        """How the process ended."""
        return Exit(code=self.code, signal=self.signal, stopped_for=self.stopped_for)


def lines(case: Case) -> list[bytes]:
    """The transcript, split as a caller splits it."""
    return case.transcript.read_bytes().split(b"\n")


def feed(coder: Coder, state: Any, given: Iterable[bytes]) -> tuple[Any, list[AnySaid]]:
    """The state and everything said after these lines."""
    events: list[AnySaid] = []
    for line in given:
        state, said = coder.parse(state, line)
        events += said
    return state, events


def state_before(case: Case, coder: Coder) -> Any:
    """The state to begin with: that of the conversation's earlier session, where there was one."""
    if not case.before:
        return coder.begin()
    earlier = BY_ID[f"{case.coder}-{case.before}"]
    state, _ = feed(coder, state_before(earlier, coder), lines(earlier))
    return coder.begin(state)


def play(case: Case) -> tuple[list[AnySaid], Outcome]:
    """What the coder makes of the transcript."""
    coder: Coder = plugins.load("coders", case.coder)
    state, events = feed(coder, state_before(case, coder), lines(case))
    return events, coder.outcome(state, case.exit, case.stderr)


CASES = [
    Case("claude", "ok", OK),
    Case("claude", "subagent", OK),
    Case("claude", "bgbash", OK),
    Case("claude", "priority-now", OK),
    Case("claude", "partial", OK),
    Case("claude", "hooks", OK),
    Case("claude", "allowbash", OK),
    Case("claude", "denied", DENIED),
    Case("claude", "dontask", DENIED),
    Case("claude", "compact", OK),
    Case("claude", "compact3", OK, before="compact"),
    Case("claude", "f-401", AUTH, code=1),
    Case("claude", "f-403", AUTH, code=1),
    Case("claude", "noauth", AUTH, code=1),
    Case("claude", "oauth-401", AUTH, code=1),
    Case("claude", "f-404", REFUSAL, code=1),
    Case("claude", "f-refuse", REFUSAL, code=1),
    Case("claude", "f-429", TRANSIENT, code=1),
    Case("claude", "f-429_30", TRANSIENT, code=1),
    Case("claude", "f-500", TRANSIENT, code=1),
    Case("claude", "f-529", TRANSIENT, code=1),
    Case("claude", "f-refused", TRANSIENT, code=1),
    Case("claude", "f-529x1", OK),
    Case("claude", "f-cut", OK),
    Case("claude", "oauth-limits", OK),
    Case("claude", "oauth-quota", PLAN_LIMIT, code=1),
    Case("claude", "f-quota", PLAN_LIMIT, code=1),
    Case("claude", "f-credit", PLAN_LIMIT, code=1),
    Case("claude", "f-ctx", CONTEXT, code=1),
    Case("claude", "resume-bad", CONTEXT, code=1),
    Case("claude", "maxturns", BUDGET, code=1),
    Case("claude", "budget", BUDGET, code=1),
    Case("claude", "f-maxtok", BUDGET, code=143, stopped_for="budget"),
    Case("claude", "sig-SIGINT", INTERRUPTED, code=0),
    Case("claude", "sig-SIGTERM", INTERRUPTED, code=143),
    Case("claude", "sig-SIGKILL", CRASHED, code=None, signal=9),
    Case("claude", "sig-hang", STALLED, code=143, stopped_for="stalled"),
    Case("claude", "resume0", OK),
    Case("claude", "resume1", OK, before="resume0"),
    Case("claude", "resume2", OK, before="resume1"),
    Case("claude", "sig-resume", OK, before="sig-SIGTERM"),
    Case("codex", "ok", OK),
    Case("codex", "items", OK),
    Case("codex", "hooks", OK),
    Case("codex", "compact", OK),
    Case("codex", "ro", OK),
    Case("codex", "f-529x1_n_a", OK),
    Case("codex", "f-401", AUTH, code=1),
    Case("codex", "f-403", AUTH, code=1),
    Case("codex", "noauth", AUTH, code=1),
    Case("codex", "f-404", REFUSAL, code=1),
    Case("codex", "f-429", TRANSIENT, code=1),
    Case("codex", "f-ratesse", TRANSIENT, code=1),
    Case("codex", "f-500", TRANSIENT, code=1),
    Case("codex", "f-503", TRANSIENT, code=1),
    Case("codex", "f-oversse", TRANSIENT, code=1),
    Case("codex", "f-cut", TRANSIENT, code=1),
    Case("codex", "f-errevent", TRANSIENT, code=1),
    Case("codex", "f-refused", STALLED, code=1, stopped_for="stalled"),
    Case("codex", "f-usagelimit", PLAN_LIMIT, code=1),
    Case("codex", "f-quota", PLAN_LIMIT, code=1),
    Case("codex", "f-ctx", CONTEXT, code=1),
    Case("codex", "f-ctxsse", CONTEXT, code=1),
    Case("codex", "f-maxtok", CONTEXT, code=1),
    Case("codex", "s0", OK),
    Case("codex", "resume", OK, before="s0"),
    Case("codex", "resume-last", OK, before="resume"),
    Case("codex", "sig-SIGINT", INTERRUPTED, code=1, stopped_for="interrupted"),
    Case("codex", "sig-SIGINT-resume", OK, before="sig-SIGINT"),
    Case("codex", "sig-SIGTERM", INTERRUPTED, code=None, signal=15),
    Case("codex", "sig-SIGKILL", OK, code=None, signal=9),
    Case("gemini", "ok", OK),
    Case("gemini", "denied", DENIED),
    Case("gemini", "res0", OK),
    Case("gemini", "res1", OK, before="res0"),
    Case("gemini", "res2", OK, before="res1"),
    Case("gemini", "f-401", AUTH, code=145),
    Case("gemini", "f-ctx", CONTEXT, code=144),
    Case(
        "gemini",
        "f-429",
        STALLED,
        code=0,
        stopped_for="stalled",
        stderr="Attempt 1 failed with status 429. Retrying with backoff...\n",
    ),
    Case("gemini", "f-refused", STALLED, code=0, stopped_for="stalled"),
    Case("gemini", "norelaunch-sig-SIGINT", INTERRUPTED, code=0),
    Case("gemini", "sig-SIGINT", OK, code=0),
    Case("opencode", "ok", OK),
    Case("opencode", "denied", DENIED),
    Case("opencode", "res0", OK),
    Case("opencode", "res1", OK, before="res0"),
    Case("opencode", "f-401", AUTH, code=1),
    Case("opencode", "f-ctx", CONTEXT, code=1),
    Case("opencode", "f-refuse", REFUSAL, code=1),
    Case("agy", "ok", OK),
    Case("agy", "cache-apart", OK),
    Case("agy", "denied", DENIED),
    Case("agy", "timeout", STALLED, stderr="[agy] print timeout after 5m0s with turn in progress\n"),
    Case("agy", "quota", PLAN_LIMIT, code=3, stderr="AGY_ERROR: RESOURCE_EXHAUSTED: individual quota reached\n"),
    Case("agy", "not-signed-in", AUTH, code=1),
    Case("agy", "bad-model", REFUSAL, code=1),
]
BY_ID = {case.id: case for case in CASES}
