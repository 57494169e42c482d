"""Judging: the scores of several parts of a scorer, by the scorers that they name."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TypeVar

import msgspec
from msgspec.structs import replace

from fleet.errors import FleetError
from fleet.model.receipt import Score
from fleet.model.scorer import AnyScorer, Plugin, kind_of
from fleet.scorers.scorer import Evidence, Read, Scorer, Wants, broken

T = TypeVar("T")
Load = Callable[[str], Scorer]  # from a name to its scorer; raises NotFound, UsageError


def named(leaf: AnyScorer, load: Load) -> Scorer:
    """The scorer that a declaration names."""
    return load(leaf.name if isinstance(leaf, Plugin) else kind_of(leaf))


def wanted(parts: Iterable[tuple[str, AnyScorer]], load: Load) -> list[Wants]:
    """What must be collected for these parts."""
    found = []
    for _, leaf in parts:
        try:
            found.append(_sound(named(leaf, load).wants(leaf), Wants))
        except (Exception, SystemExit):  # a stranger's scorer may raise anything: its score will say so
            found.append(Wants())
    return found


def scored(parts: Iterable[tuple[str, AnyScorer]], evidence: Evidence, read: Read, load: Load) -> list[Score]:
    """What the scorers of these parts say; each once, in order. It may take a while."""
    found = []
    for at, leaf in parts:
        try:
            found.append(replace(_sound(named(leaf, load).score(leaf, evidence, read), Score), at=at))
        except (Exception, SystemExit) as exc:  # a stranger's scorer may raise anything
            said = str(exc) if isinstance(exc, FleetError | OSError) else f"{type(exc).__name__}: {exc}"
            if isinstance(leaf, Plugin) and not isinstance(exc, FleetError):
                said = f"the scorer `{leaf.name}` failed in its own code: {said}"
            found.append(replace(broken(kind_of(leaf), f"it could not be judged: {said}"), at=at))
    return found


def _sound(answer: T, kind: type[T]) -> T:
    """The answer, if it is of a kind through and through: what is wrong in it would be found where it is kept."""
    if not isinstance(answer, kind):
        raise TypeError(f"it gave a {type(answer).__name__}, not a {kind.__name__}")
    return msgspec.convert(msgspec.to_builtins(answer), kind)
