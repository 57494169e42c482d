"""The verdict: what the scores of a combination come to, and what must still be known."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import msgspec

from fleet.config.settings import MODELLESS
from fleet.model.receipt import Awaits, Score
from fleet.model.scorer import LATER, All, Any, AnyScorer, Command, VerifierPrompt, kind_of, leaves
from fleet.model.states import Result, Source

EPSILON = 1e-9  # shares of weights are sums of fractions


class Work(msgspec.Struct, frozen=True):
    """Who did the work that is to be judged, and where."""

    coder: str | None
    model: str | None
    host: str | None


class Judged(msgspec.Struct, frozen=True, kw_only=True):
    """What the scores that are known come to."""

    passed: bool | None  # None: it depends on those that are not known
    value: float | None  # weighed over all; None while one is not known
    source: Source | None = None  # who failed
    reason: str = ""  # of a failure: the first words of what failed
    evidence: tuple[str, ...] = ()


def judge(declared: AnyScorer, scores: Iterable[Score]) -> Judged:
    """The verdict on a whole combination, as far as it follows from the scores of its parts."""
    known = {score.at: score for score in scores}
    passed, value = _weigh(declared, "", known)
    in_order = [known[at] for at, _ in leaves(declared) if at in known]
    failures = [score for score in in_order if not score.passed]
    evidence = tuple(f"{score.kind}: {line}" for score in in_order for line in score.evidence)
    if passed is not False or not failures:
        return Judged(passed=passed, value=value, evidence=evidence)
    broken = [score for score in failures if score.source is not Source.TASK]
    blamed = (broken or failures)[0]
    words = blamed.evidence[0] if blamed.evidence else "it did not pass"
    reason = f"{blamed.kind}: {words}"
    return Judged(passed=False, value=value, source=blamed.source, reason=reason, evidence=evidence)


def pending(declared: AnyScorer, scores: Iterable[Score]) -> list[tuple[str, AnyScorer]]:
    """The parts whose score is not known, sessions before people."""
    known = {score.at for score in scores}
    missing = [(at, leaf) for at, leaf in leaves(declared) if at not in known]
    return sorted(missing, key=lambda found: kind_of(found[1]) == "manual")


def awaited(at: str, leaf: AnyScorer, work: Work) -> Awaits:
    """What a partial receipt waits for: where the files are, and by whom it is to be judged.

    A coder that only does as it is told cannot judge: then whoever is configured does.
    """
    if isinstance(leaf, Command):
        return Awaits(kind="command", at=at, coder="command", host=work.host)
    if isinstance(leaf, VerifierPrompt):
        coder = leaf.coder or (None if work.coder in MODELLESS else work.coder)
        model = leaf.model or (work.model if coder == work.coder else None)
        return Awaits(kind="verifier_prompt", at=at, coder=coder, model=model, host=work.host)
    return Awaits(kind="manual", at=at, host=work.host)


def still_known(scores: Iterable[Score], result: Result) -> list[Score]:
    """The scores of a receipt that count for the next. Where an end is taken back, verifiers and people judge anew."""
    return [score for score in scores if result is Result.PARTIAL or score.kind not in LATER]


def settled_now(declared: AnyScorer) -> list[tuple[str, AnyScorer]]:
    """The parts that can be judged as soon as the session has ended."""
    return [(at, leaf) for at, leaf in leaves(declared) if kind_of(leaf) not in LATER]


def _weigh(declared: AnyScorer, at: str, known: Mapping[str, Score]) -> tuple[bool | None, float | None]:
    if not isinstance(declared, All | Any):
        score = known.get(at)
        return (score.passed, score.value) if score else (None, None)
    parts = [_weigh(part, f"{at}.{n}" if at else str(n), known) for n, part in enumerate(declared.of)]
    weights = [part.weight for part in declared.of]
    total = sum(weights)
    values = [value for _, value in parts if value is not None]
    value = None
    if len(values) == len(parts):
        value = sum(weight * each for weight, each in zip(weights, values, strict=True)) / total
    states = [passed for passed, _ in parts]
    if isinstance(declared, All):
        return (False if False in states else None if None in states else True), value
    share = sum(weight for weight, passed in zip(weights, states, strict=True) if passed) / total
    possible = share + sum(weight for weight, passed in zip(weights, states, strict=True) if passed is None) / total
    needed = declared.threshold if declared.threshold is not None else min(weights) / total
    if share >= needed - EPSILON:
        return True, value
    return (None if possible >= needed - EPSILON else False), value
