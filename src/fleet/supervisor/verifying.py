"""Verifying: a session that judges the work of another. It runs as any session does; its end settles a receipt."""

from __future__ import annotations

import asyncio

from msgspec.structs import replace

from fleet.hosts.collect import Shelf
from fleet.hosts.files import whole
from fleet.model.outcome import Outcome, OutcomeKind
from fleet.model.receipt import ArtifactRef, Awaits, Receipt, Score, Verdict
from fleet.model.scorer import Command
from fleet.model.states import Result, Source
from fleet.policy import ending
from fleet.policy.limits import OUTPUT
from fleet.policy.redaction import redact
from fleet.policy.verdict import Work, still_known
from fleet.scorers.scorer import Evidence, TextSeen, broken
from fleet.supervisor.attempt import Attempt
from fleet.supervisor.briefing import answer_file, judged_by
from fleet.supervisor.gathering import tail
from fleet.supervisor.scoring import scores_of, verdict_on, with_receipt
from fleet.supervisor.wish import recalled
from fleet.supervisor.words import last_words

K = OutcomeKind
MOST_ANSWER = 65_536
MOST_TRIES = 3  # of a verifier that is cut off, one after the other
CUT_OFF = frozenset({K.TRANSIENT, K.INTERRUPTED})


async def decide(attempt: Attempt, verb: str, outcome: Outcome, code: int | None) -> ending.Decision:
    """What follows from the end of a verifier: of what people asked, else of its verdict, else it is run again."""
    wish = attempt.wish or recalled(attempt.progress)
    reason = wish.reason if wish else ""
    if verb == "stop":
        return ending.Finish(Verdict(result=Result.SKIP, reason=reason))
    if verb == "restart":
        return ending.Retry(reason=reason, charged=False, restart=True)
    if verb == "shutdown":
        return _later(attempt, reason)
    if verb == "interrupt":
        return ending.Postpone(reason=reason, awaits=replace(_awaits(attempt), kind="manual"))
    if outcome.kind is K.PLAN_LIMIT:
        return _later(attempt, outcome.reason, pause_coder_until=outcome.resets_at or 0)
    cut_off = outcome.kind in CUT_OFF or (outcome.kind is K.CRASHED and not isinstance(attempt.leaf, Command))
    tries = 1 + attempt.history.fruitless()
    if cut_off and tries < MOST_TRIES:
        wait = ending.backoff(tries - 1, attempt.allowance, attempt.house.jitter())
        return _later(attempt, f"the verifier was cut off: {outcome.reason}", after_seconds=wait)
    return await _judge(attempt, outcome, code)


def unlaunched(attempt: Attempt, decision: ending.Decision) -> ending.Decision:
    """What follows where a verifier did not begin: it is run later, or it is the verifier that failed."""
    match decision:
        case ending.Retry(reason=reason, after_seconds=seconds):
            return _later(attempt, reason, after_seconds=seconds)
        case ending.Ask(text=text):
            return _broken(attempt, text)
        case ending.Finish(verdict=verdict):
            return _broken(attempt, verdict.reason)
        case _:
            return decision


async def _judge(attempt: Attempt, outcome: Outcome, code: int | None) -> ending.Decision:
    """The score of this verifier, what it makes of the whole, and what follows from that."""
    judged, declared = judged_by(attempt), attempt.scorer
    assert declared is not None
    evidence, refs = await _heard(attempt, outcome, code)
    attempt.house.at("judging")
    score = await asyncio.to_thread(_score, attempt, outcome, evidence)
    work = _work(attempt, judged, refs)
    verdict = verdict_on(declared, [*_known(judged), score], work, _done_by(judged))
    if verdict.result is Result.PASS:
        words = score.evidence[0] if score.evidence else "it passed"
        verdict = replace(verdict, reason=f"{score.kind}: {words}")
    if outcome.bound == "timeout" and verdict.source is Source.VERIFIER:
        verdict = replace(verdict, result=Result.TIMEOUT)
    verdict = await with_receipt(attempt, verdict)
    if verdict.result in (Result.PASS, Result.PARTIAL):
        return ending.Finish(verdict)
    return _failed(attempt, verdict)


def _score(attempt: Attempt, outcome: Outcome, evidence: Evidence) -> Score:
    at = _awaits(attempt).at
    kind = _awaits(attempt).kind
    if attempt.progress.asked_kind:
        return replace(broken(kind, f"the verifier asked a person: {redact(attempt.progress.asked_text)}"), at=at)
    by_words = kind != "command" or outcome.bound == OUTPUT  # else by its exit code
    if by_words and outcome.kind is not K.OK and not evidence.timed_out:
        return replace(broken(kind, f"the verifier failed: {redact(outcome.reason)}"), at=at)
    return scores_of(attempt, [(at, attempt.leaf)], evidence)[0]


def _failed(attempt: Attempt, verdict: Verdict) -> ending.Decision:
    spent = ending.Spent(charged=attempt.task.charged, sessions=1)
    return ending.after_check(verdict, spent, attempt.allowance, attempt.house.jitter(), verified=True)


def _broken(attempt: Attempt, reason: str) -> ending.Decision:
    """The verifier itself could not be run."""
    judged, awaits = judged_by(attempt), _awaits(attempt)
    score = replace(broken(awaits.kind, f"the verifier could not be run: {reason}"), at=awaits.at)
    assert attempt.scorer is not None
    verdict = verdict_on(attempt.scorer, [*_known(judged), score], _work(attempt, judged, ()), _done_by(judged))
    return ending.Finish(verdict) if verdict.result is Result.PARTIAL else _failed(attempt, verdict)


def _later(
    attempt: Attempt, reason: str, *, after_seconds: float = 0, pause_coder_until: int | None = None
) -> ending.Postpone:
    return ending.Postpone(
        reason=reason, awaits=_awaits(attempt), after_seconds=after_seconds, pause_coder_until=pause_coder_until
    )


def _work(attempt: Attempt, judged: Receipt, refs: tuple[ArtifactRef, ...]) -> Verdict:
    """The work that is judged, as a verdict that waits for its result."""
    kinds = {ref.kind for ref in refs}
    return Verdict(
        result=Result.PARTIAL,
        reason=judged.reason,
        artifacts=(*(ref for ref in judged.artifacts if ref.place != "fleet" or ref.kind not in kinds), *refs),
        usage=judged.usage,
        duration_ms=judged.duration_ms,
        verify_usage=judged.verify_usage.plus(attempt.progress.usage),
        verify_ms=judged.verify_ms + attempt.elapsed_ms,
    )


async def _heard(attempt: Attempt, outcome: Outcome, code: int | None) -> tuple[Evidence, tuple[ArtifactRef, ...]]:
    """What the verifier said, kept; asked for until its host answers."""
    said = await attempt.insist(lambda: _said(attempt))
    shelf = Shelf(attempt.house.home.artifacts)
    texts, refs = {}, []
    for name, data in said.items():
        sha256 = await asyncio.to_thread(shelf.put, data)
        texts[name] = TextSeen(sha256=sha256, size=len(data))
        kind = f"verifier_{name}"
        refs.append(
            ArtifactRef(kind=kind, path=name, sha256=sha256, size=len(data), mime_type="text/plain", place="fleet")
        )
    timed_out = outcome.bound == "timeout"
    return Evidence(exit_code=None if timed_out else code, timed_out=timed_out, texts=texts), tuple(refs)


async def _said(attempt: Attempt) -> dict[str, bytes]:
    """The words of a verifier that say something."""
    if isinstance(attempt.leaf, Command):
        found = {name: (await tail(attempt, name))[0] for name in ("stdout", "stderr")}
    else:
        directory = attempt.house.home.task_dir(attempt.task.uid)
        answer = await whole(attempt.site.transport, answer_file(attempt), MOST_ANSWER)
        final = last_words(directory, attempt.session.id).final
        found = {"answer": answer, "final_message": final.encode("utf-8", "replace")}
    return {name: data for name, data in found.items() if data}


def _known(judged: Receipt) -> list[Score]:
    return still_known(judged.scores, judged.result)


def _done_by(judged: Receipt) -> Work:
    return Work(judged.coder, judged.model, judged.host)


def _awaits(attempt: Attempt) -> Awaits:
    assert attempt.task.awaits is not None
    return attempt.task.awaits
