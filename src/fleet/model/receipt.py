"""The receipt: the verdict on one attempt, with its evidence."""

from __future__ import annotations

import msgspec

from fleet.model.states import Result, Source


class ArtifactRef(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, forbid_unknown_fields=True):
    """A file kept as evidence, by reference."""

    kind: str
    path: str
    sha256: str
    size: int
    mime_type: str = "application/octet-stream"


class Usage(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, forbid_unknown_fields=True):
    """What an attempt consumed. Money is counted in millionths of a dollar, so that sums are exact."""

    input_tokens: int = 0
    output_tokens: int = 0
    cached_tokens: int = 0
    tool_calls: int = 0
    events: int = 0
    cost_microusd: int = 0


class Verdict(msgspec.Struct, frozen=True, kw_only=True):
    """What is to become a receipt; the store gives it its id, its task and its time."""

    result: Result
    reason: str  # one sentence a person can act on
    source: Source | None = None  # who failed; None when nobody did
    scorer: str | None = None  # None: nothing checked it; shown as unverified
    evidence: tuple[str, ...] = ()
    artifacts: tuple[ArtifactRef, ...] = ()
    usage: Usage = Usage()
    duration_ms: int = 0
    skipped_for: str | None = None  # the needed task that will not be completed


class Receipt(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, forbid_unknown_fields=True):
    """The verdict on one session; written once, never edited."""

    id: str
    task: str
    run: str | None = None
    session: str | None = None  # None: no session ran (skipped, or settled by a person)
    result: Result
    source: Source | None = None  # who failed; None when nobody did
    reason: str  # one sentence a person can act on
    scorer: str | None = None  # None: nothing checked it; shown as unverified
    evidence: tuple[str, ...] = ()
    artifacts: tuple[ArtifactRef, ...] = ()
    usage: Usage = Usage()
    duration_ms: int = 0
    at: int
    supersedes: str | None = None  # the partial receipt that this one settles
    skipped_for: str | None = None  # the needed task that will not be completed
