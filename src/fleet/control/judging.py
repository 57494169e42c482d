"""Judging: a person settles a result, or has its verifier run again. What the work itself was is not changed by it."""

from __future__ import annotations

from fleet.errors import Conflict
from fleet.model.receipt import Awaits, Receipt, Score, Verdict
from fleet.model.scorer import BY_SESSION, AnyScorer, kind_of, leaves, scorer_of
from fleet.model.states import ENDED, IN_PROGRESS, Result, Source, TaskState
from fleet.model.task import Task
from fleet.policy.verdict import Work, awaited, judge, pending, still_known
from fleet.store.store import Store


def verify_again(store: Store, task: Task, *, by: str) -> Task:
    """The verifier of a task is to run; nothing changes where it is about to, or does."""
    declared = _declared(task)
    if task.state is TaskState.VERIFYING or (task.awaits and not task.awaits.by_person):
        return task
    judged = _receipt(store, task)
    known = still_known(judged.scores, judged.result)
    parts = [(at, leaf) for at, leaf in pending(declared, known) if kind_of(leaf) in BY_SESSION]
    if not parts:
        raise Conflict(
            f"the scorer of {task.uid} has no verifier that could be run",
            hint=f"settle it yourself: fleet verify {task.uid} --pass, or --fail",
        )
    awaits = awaited(*parts[0], Work(judged.coder, judged.model, judged.host))
    return store.unsettle(task.uid, awaits, f"to be verified again, by {by}", by=by).result()


def settle_by_hand(store: Store, task: Task, *, passed: bool, note: str, by: str) -> Task:
    """A person's word on a result that has no verdict, or in the place of the one that it has."""
    if task.state in IN_PROGRESS:
        raise Conflict(f"task {task.uid} is {task.state.value}", hint=f"fleet interrupt {task.uid} ends its session")
    judged = _receipt(store, task)
    if task.state in ENDED:
        awaits = Awaits(kind="manual", host=judged.host)
        task = store.unsettle(task.uid, awaits, f"judged again, by {by}", by=by).result()
    return store.settle(task.uid, _verdict(task, judged, passed=passed, note=note, by=by), by=by).result()


def _verdict(task: Task, judged: Receipt, *, passed: bool, note: str, by: str) -> Verdict:
    """What a person's word comes to: the last part of a combination, or a word over all of it."""
    said = note or ("it is as it should be" if passed else "it is not as it should be")
    at = task.awaits.at if task.awaits and task.awaits.by_person else ""
    score = Score(
        at=at,
        kind="manual",
        value=float(passed),
        passed=passed,
        source=None if passed else Source.TASK,
        evidence=(f"{said} ({by})",),
    )
    result, source, value = (Result.PASS if passed else Result.FAIL), score.source, score.value
    scores = [*still_known(judged.scores, judged.result), score]
    declared = scorer_of(task.terms.scorer) if task.terms.scorer else None
    if declared is not None and at in dict(leaves(declared)):
        whole = judge(declared, scores)
        if whole.passed is not None:
            result, source = (Result.PASS if whole.passed else Result.FAIL), whole.source
            value = value if whole.value is None else whole.value
    return Verdict(
        result=result,
        reason=said,
        source=source,
        scorer=kind_of(declared) if declared else "manual",
        score=value,
        scores=tuple(scores),
        evidence=(*judged.evidence, f"manual: {said} ({by})"),
        artifacts=judged.artifacts,
        verify_usage=judged.verify_usage,
        verify_ms=judged.verify_ms,
    )


def _declared(task: Task) -> AnyScorer:
    if task.terms.scorer is None:
        raise Conflict(f"task {task.uid} has no scorer", hint="a spec gives it one; see the guide on verification")
    return scorer_of(task.terms.scorer)


def _receipt(store: Store, task: Task) -> Receipt:
    """The receipt in force."""
    found = next((one for one in store.receipts(task=task.uid) if one.id == task.receipt), None)
    if found is None or not found.may_be_judged:
        raise Conflict(f"task {task.uid} has no result that could be verified: it is {task.state.value}")
    return found
