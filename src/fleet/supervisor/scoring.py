"""Scoring: what a session that ended well is worth, by its artifacts and its scorer. A failed one is never a pass."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

import msgspec
from msgspec.structs import replace

from fleet import plugins
from fleet.hosts.collect import Shelf
from fleet.hosts.git import commit
from fleet.model.outcome import Outcome, OutcomeKind
from fleet.model.receipt import ArtifactRef, Score, Verdict
from fleet.model.scorer import AnyScorer, Command, ExitCode, Manual, VerifierPrompt, kind_of, leaves
from fleet.model.states import Result, Source
from fleet.policy.redaction import redact
from fleet.policy.verdict import Work, awaited, judge, pending, settled_now
from fleet.scorers.judging import scored, wanted
from fleet.scorers.scorer import Evidence, Scorer, Wants
from fleet.supervisor.attempt import Attempt
from fleet.supervisor.gathering import MISSING, Gathered, gather


def as_expected(attempt: Attempt, outcome: Outcome, code: int | None) -> Outcome:
    """A command that ends with the code that its scorer expects has ended well, whatever the code."""
    declared = leaves(attempt.scorer) if attempt.scorer else ()
    expected = [leaf.expected for _, leaf in declared if isinstance(leaf, ExitCode)]
    if attempt.session.coder == "command" and outcome.kind is OutcomeKind.CRASHED and code and code in expected:
        return Outcome(kind=OutcomeKind.OK, reason=f"exit code {code}, as expected")
    return outcome


async def checked(attempt: Attempt, verdict: Verdict, code: int | None) -> Verdict:
    """The verdict on a session's work, with its evidence: a pass may become less, and nothing becomes a pass."""
    declared = attempt.scorer
    passing = verdict.result is Result.PASS
    parts = settled_now(declared) if declared is not None and passing else []
    gathered = await _gathered(attempt, code, wanted(parts, load_scorer))
    after = await commit_of(attempt)
    left_out = (f"log: {attempt.left_out:,} bytes of its output are left out of it",) if attempt.left_out else ()
    verdict = replace(
        verdict,
        artifacts=gathered.artifacts,
        evidence=(*verdict.evidence, *gathered.notes, *left_out),
        exit_code=code,
        commit_before=attempt.progress.commit_before,
        commit_after=after,
    )
    if passing and gathered.missing:
        reason = f"{MISSING}: {', '.join(gathered.missing)}"
        verdict = replace(verdict, result=Result.FAIL, source=Source.TASK, reason=reason, score=0.0)
    elif passing and declared is not None:
        scores = await asyncio.to_thread(scores_of, attempt, parts, gathered.evidence)
        session = attempt.session
        worker = Work(session.coder, session.model, session.host)
        verdict = _in_words(verdict_on(declared, scores, verdict, worker), session.coder)
    return await with_receipt(attempt, verdict)


def scores_of(attempt: Attempt, parts: Sequence[tuple[str, AnyScorer]], evidence: Evidence) -> list[Score]:
    """What the scorers of these parts say, with nothing secret in it."""
    read = Shelf(attempt.house.home.artifacts).read
    found = scored(parts, evidence, read, load_scorer)
    return [replace(score, evidence=tuple(redact(line) for line in score.evidence)) for score in found]


def load_scorer(name: str) -> Scorer:
    """A scorer by its name."""
    found: Scorer = plugins.load("scorers", name)
    return found


def verdict_on(declared: AnyScorer, scores: Sequence[Score], work: Verdict, worker: Work) -> Verdict:
    """What the scores come to, as a verdict on the work; partial while it depends on what is not known yet."""
    judged = judge(declared, scores)
    verdict = replace(
        work,
        scorer=kind_of(declared),
        score=judged.value,
        scores=tuple(scores),
        evidence=(*work.evidence, *judged.evidence),
        awaits=None,
    )
    if judged.passed is None:
        at, leaf = pending(declared, scores)[0]
        awaits = awaited(at, leaf, worker)
        return replace(verdict, result=Result.PARTIAL, source=None, reason=_waits(leaf), awaits=awaits)
    if judged.passed:
        return replace(verdict, result=Result.PASS, source=None)
    return replace(verdict, result=Result.FAIL, source=judged.source, reason=judged.reason)


def _in_words(verdict: Verdict, coder: str) -> Verdict:
    """An agent says what it did; of a command that passed, what its first scorer found tells more than its code."""
    found = [f"{score.kind}: {score.evidence[0]}" for score in verdict.scores if score.passed and score.evidence]
    if verdict.result is not Result.PASS or coder != "command" or not found or verdict.scores[0].kind == "exit_code":
        return verdict
    return replace(verdict, reason=found[0])


async def with_receipt(attempt: Attempt, verdict: Verdict) -> Verdict:
    """The verdict with the artifact `receipt`, where that is expected: what it says, as a file."""
    if "receipt" not in attempt.task.terms.expected_artifacts:
        return verdict
    others = tuple(ref for ref in verdict.artifacts if (ref.place, ref.kind) != ("fleet", "receipt"))
    told = replace(verdict, artifacts=others)
    named = {"task": attempt.task.uid, "task_id": attempt.task.task_id, "session": attempt.session.id}
    data = msgspec.json.format(msgspec.json.encode(named | msgspec.to_builtins(told)), indent=2)
    sha256 = await asyncio.to_thread(Shelf(attempt.house.home.artifacts).put, data)
    ref = ArtifactRef(
        kind="receipt",
        path="receipt.json",
        sha256=sha256,
        size=len(data),
        mime_type="application/json",
        place="fleet",
    )
    return replace(verdict, artifacts=(*others, ref))


async def commit_of(attempt: Attempt) -> str | None:
    """The commit that the workspace stands at; None where nobody names a directory."""
    if not attempt.is_somewhere:
        return None
    found: str | None = await attempt.safely(commit(attempt.site.transport, attempt.cwd))
    return found


async def _gathered(attempt: Attempt, code: int | None, wants: Sequence[Wants]) -> Gathered:
    """What the session left; asked for until its host answers: silence is not evidence."""
    return await attempt.insist(lambda: gather(attempt, code, wants))


def _waits(leaf: AnyScorer) -> str:
    match leaf:
        case Command(command=command):
            return f"waits for its verifier: {' '.join(command.split())[:100]}"
        case VerifierPrompt():
            return "waits for its verifier"
        case Manual(note=note):
            return f"waits for a person to verify it{f': {note}' if note else ''}"
        case _:
            return "waits to be verified"
