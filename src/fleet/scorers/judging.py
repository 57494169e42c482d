"""Judging: the scores of several parts of a scorer, by the scorers that they name."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from msgspec.structs import replace

from fleet.errors import FleetError
from fleet.model.receipt import Score
from fleet.model.scorer import AnyScorer, Plugin, kind_of
from fleet.scorers.scorer import Evidence, Read, Scorer, Wants, broken

Load = Callable[[str], Scorer]  # from a name to its scorer; raises NotFound, UsageError


def named(leaf: AnyScorer, load: Load) -> Scorer:
    """The scorer that a declaration names."""
    return load(leaf.name if isinstance(leaf, Plugin) else kind_of(leaf))


def wanted(parts: Iterable[tuple[str, AnyScorer]], load: Load) -> list[Wants]:
    """What must be collected for these parts."""
    found = []
    for _, leaf in parts:
        try:
            found.append(named(leaf, load).wants(leaf))
        except Exception:  # a stranger's scorer may raise anything: its score will say so
            found.append(Wants())
    return found


def scored(parts: Iterable[tuple[str, AnyScorer]], evidence: Evidence, read: Read, load: Load) -> list[Score]:
    """What the scorers of these parts say; each once, in order. It may take a while."""
    found = []
    for at, leaf in parts:
        try:
            found.append(replace(named(leaf, load).score(leaf, evidence, read), at=at))
        except Exception as exc:  # a stranger's scorer may raise anything
            said = str(exc) if isinstance(exc, FleetError | OSError) else f"{type(exc).__name__}: {exc}"
            found.append(replace(broken(kind_of(leaf), f"it could not be judged: {said}"), at=at))
    return found
