"""The receipt: the verdict on one attempt, with its evidence."""

from __future__ import annotations

from typing import Literal

import msgspec

from fleet.model.states import Result, Source

Place = Literal["artifacts", "workspace", "fleet"]


class ArtifactRef(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, forbid_unknown_fields=True):
    """A file kept as evidence, by reference: its content is kept under its sha256, so that it cannot change."""

    kind: str  # what the task calls it
    path: str  # where it was found, below its place
    sha256: str
    size: int
    mime_type: str = "application/octet-stream"
    place: Place = "artifacts"  # the artifact directory, the workspace, or made by Fleet itself


class Score(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, forbid_unknown_fields=True):
    """What one scorer found."""

    at: str = ""  # its place in a combination, such as 0.2: the third part of the first
    kind: str
    value: float  # from 0 to 1
    passed: bool
    source: Source | None = None  # who failed: the task, or the scorer itself; None when it passed
    evidence: tuple[str, ...] = ()


class Awaits(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, forbid_unknown_fields=True):
    """What a partial receipt waits for: a session of a verifier, or a person."""

    kind: str  # command, verifier_prompt, manual
    at: str = ""  # its place in a combination
    coder: str | None = None  # who verifies
    model: str | None = None
    host: str | None = None  # where the files are

    @property
    def by_person(self) -> bool:
        """Whether a person is to judge it; else the session of a verifier does."""
        return self.kind == "manual"


class Usage(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, forbid_unknown_fields=True):
    """What an attempt consumed. Money is counted in millionths of a dollar, so that sums are exact."""

    input_tokens: int = 0
    output_tokens: int = 0
    cached_tokens: int = 0
    tool_calls: int = 0
    events: int = 0
    cost_microusd: int = 0

    @property
    def tokens(self) -> int:
        """What a budget of tokens counts: output, and input that came from no cache."""
        return self.input_tokens + self.output_tokens

    def plus(self, other: Usage) -> Usage:
        """Both together."""
        return Usage(**{name: getattr(self, name) + getattr(other, name) for name in self.__struct_fields__})


NO_USAGE = Usage()  # one for all: a value is left out of what is stored where it is the default itself


class Verdict(msgspec.Struct, frozen=True, kw_only=True):
    """What is to become a receipt; the store gives it its id, its task and its time."""

    result: Result
    reason: str  # one sentence a person can act on
    source: Source | None = None  # who failed; None when nobody did
    scorer: str | None = None  # None: nothing checked it; shown as unverified
    evidence: tuple[str, ...] = ()
    artifacts: tuple[ArtifactRef, ...] = ()
    usage: Usage = NO_USAGE
    duration_ms: int = 0
    skipped_for: str | None = None  # the needed task that will not be completed
    score: float | None = None  # from 0 to 1; None: nothing measured it
    scores: tuple[Score, ...] = ()
    awaits: Awaits | None = None  # of a partial receipt
    exit_code: int | None = None
    commit_before: str | None = None  # of the workspace, where it is a git repository
    commit_after: str | None = None
    verify_usage: Usage = NO_USAGE  # what the verifiers used, beside the work
    verify_ms: int = 0


class Receipt(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, forbid_unknown_fields=True):
    """The verdict on one session; written once, never edited."""

    id: str
    task: str
    run: str | None = None
    session: str | None = None  # None: no session ran (skipped, or settled by a person)
    attempt: int = 0  # 0: no session ran
    coder: str | None = None  # who did the work
    model: str | None = None
    host: str | None = None
    result: Result
    source: Source | None = None  # who failed; None when nobody did
    reason: str  # one sentence a person can act on
    scorer: str | None = None  # None: nothing checked it; shown as unverified
    evidence: tuple[str, ...] = ()
    artifacts: tuple[ArtifactRef, ...] = ()
    usage: Usage = NO_USAGE
    duration_ms: int = 0
    at: int
    supersedes: str | None = None  # the partial receipt that this one settles
    skipped_for: str | None = None  # the needed task that will not be completed
    score: float | None = None  # from 0 to 1; None: nothing measured it
    scores: tuple[Score, ...] = ()
    awaits: Awaits | None = None  # of a partial receipt
    exit_code: int | None = None
    commit_before: str | None = None  # of the workspace, where it is a git repository
    commit_after: str | None = None
    verify_usage: Usage = NO_USAGE  # what the verifiers used, beside the work
    verify_ms: int = 0

    @property
    def verified(self) -> bool:
        """Whether something beside the worker's own word stands behind it."""
        return self.scorer is not None

    @property
    def may_be_judged(self) -> bool:
        """Whether the session behind it ended well, so that a verifier or a person has something to judge."""
        reached = self.result is Result.PARTIAL or self.supersedes is not None
        return reached or self.source is Source.VERIFIER
