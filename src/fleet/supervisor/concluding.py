"""Concluding: from the last line of a session to its receipt, another attempt, or a question to a person.

Every step but the last may be done again by whoever comes next; the last is one transaction.
"""

from __future__ import annotations

import asyncio
import contextlib
import re
import time
from functools import partial

from msgspec.structs import replace

from fleet.coders.coder import Exit as CoderExit
from fleet.config.clock import utc_ms
from fleet.config.settings import MODELLESS
from fleet.errors import PluginError
from fleet.hosts.facts import Cause, Exit
from fleet.model.notice import short
from fleet.model.outcome import Outcome, OutcomeKind
from fleet.model.receipt import Verdict
from fleet.model.session import Ending
from fleet.model.states import Result, SessionState, Source
from fleet.model.task import Task
from fleet.policy import ending, limits
from fleet.policy.redaction import redact
from fleet.store import qafile
from fleet.supervisor import carrying, scoring, verifying, workplace
from fleet.supervisor.attempt import Attempt
from fleet.supervisor.sweeper import end_what_is_left
from fleet.supervisor.wish import OF_PEOPLE, recalled

UNSEEN = frozenset({OutcomeKind.CRASHED, OutcomeKind.INTERRUPTED})
NOT_FOUND, NO_PROGRAM = 127, re.compile(r"(\S+): not found")  # as runner.sh says it
MOST_STDERR = 65_536
SETTLE_SECONDS = 5.0  # for a store that is slow while we are told to go
MOST_EVIDENCE = 100  # files that are listed


async def conclude(attempt: Attempt) -> None:
    """The steps, in order: what became of it, what follows, and the transaction."""
    attempt.house.at("concluding")
    seen = await attempt.insist(attempt.hosted.exit)  # None: there is no record of its end, which is not silence
    stderr = (await attempt.insist(partial(_stderr, attempt))).decode("utf-8", "replace")
    attempt.record.keep_stderr(stderr)
    await carrying.fetch(attempt)
    verb, outcome, state = _outcome(attempt, seen, stderr)
    code = seen.code if seen else None
    if attempt.verifies:
        decision = await verifying.decide(attempt, verb, outcome, code)
    else:
        outcome = scoring.as_expected(attempt, outcome, code)
        decision = decide(attempt, verb, outcome)
        if verb != "stop" and (paths := await workplace.trespasses(attempt)):
            decision = _trespassed(attempt, paths)
        decision = await _scored(attempt, decision, code)
    ran_ms = attempt.elapsed_ms if attempt.ended_at is not None else None
    end = Ending(outcome=outcome.kind.value, state=state, usage=attempt.progress.usage, ran_ms=ran_ms)
    await settle(attempt, decision, end, carried_out=bool(verb))
    unattended = seen is not None and seen.cause is Cause.UNATTENDED
    if not verb and not unattended and state is SessionState.EXITED:  # else it says nothing of its coder
        await attempt.house.faults.of_coder(attempt.session.coder, attempt.task.uid, outcome)


async def give_up(attempt: Attempt, why: str) -> None:
    """Its host is silent and has ended it by now: it is lost, and what may be left is swept when the host answers."""
    outcome = Outcome(kind=OutcomeKind.TRANSIENT, reason=why)
    end = Ending(outcome=outcome.kind.value, state=SessionState.LOST, usage=attempt.progress.usage)
    if attempt.verifies:
        decision = await verifying.decide(attempt, "", outcome, None)
    else:
        decision = decide(attempt, "", outcome)
    sweep = {"session": attempt.session.id}  # asked for first: a crash between the two must not forget it
    await attempt.house.store.intend("sweep", attempt.task.uid, args=sweep, by=attempt.house.name)
    await settle(attempt, decision, end)


async def break_off(attempt: Attempt, exc: PluginError) -> None:
    """What is plugged in for its coder failed: its agent is ended, as nobody can tell what it says, and it has failed.

    The others of that coder go their own way: it may be one line that it does not understand.
    """
    reason = short(redact(str(exc)))
    attempt.house.log("plugin_failed", session=attempt.session.id, coder=attempt.session.coder, error=reason)
    await attempt.insist(partial(end_what_is_left, attempt.house, attempt.session))
    if attempt.session.started_at is not None:
        stderr = await attempt.insist(partial(_stderr, attempt))
        attempt.record.keep_stderr(stderr.decode("utf-8", "replace"))
        await carrying.fetch(attempt)
    decision: ending.Decision = ending.after_fault(reason, _spent(attempt))
    if attempt.verifies:
        decision = verifying.unlaunched(attempt, decision)
    await settle(attempt, decision, Ending(outcome=OutcomeKind.PLUGIN.value, usage=attempt.progress.usage))


async def cut_short(attempt: Attempt) -> None:
    """It was told to end before it began: what was half made goes, and no attempt is used."""
    wish = attempt.wish
    assert wish is not None
    await workplace.undo(attempt)
    outcome = Outcome(kind=OutcomeKind.INTERRUPTED, reason=wish.reason)
    decision = decide(attempt, wish.verb, outcome)
    if wish.verb == "shutdown":
        decision = ending.Retry(reason=wish.reason, charged=False)  # nothing ran that must not run twice
    await settle(attempt, decision, Ending(outcome=outcome.kind.value), carried_out=True)


async def _scored(attempt: Attempt, decision: ending.Decision, code: int | None) -> ending.Decision:
    """The decision with the evidence in its verdict; what does not pass its scorer is tried again, or has failed."""
    if not isinstance(decision, ending.Finish | ending.Retry) or decision.verdict is None:
        return decision
    before = decision.verdict.result
    if before is Result.SKIP:
        return decision
    verdict = await scoring.checked(attempt, decision.verdict, code)
    attempt.house.at("scored")
    if before is Result.PASS and verdict.result not in (Result.PASS, Result.PARTIAL):
        jitter = attempt.house.jitter()
        return ending.after_check(verdict, _spent(attempt), attempt.allowance, jitter, verified=False)
    return replace(decision, verdict=verdict)


async def refuse_over_budget(attempt: Attempt) -> bool:
    """Before the launch: a task whose budget its earlier sessions used up is not begun again."""
    gone = limits.used_up(attempt.limits.budget, attempt.before)
    if gone is None:
        return False
    outcome = Outcome(kind=OutcomeKind.BUDGET, reason=gone.reason, bound=gone.bound)
    decision = ending.over_budget(outcome, _spent(attempt), attempt.allowance)
    if isinstance(decision, ending.Finish):
        decision = replace(decision, charged=False)  # nothing ran
    await settle(attempt, decision, Ending(outcome=outcome.kind.value))
    return True


def _outcome(attempt: Attempt, seen: Exit | None, stderr: str) -> tuple[str, Outcome, SessionState]:
    """What we did to it, if anything, what became of it, and whether its end was seen."""
    wish, stopped = attempt.wish, recalled(attempt.progress)
    verb, stopped_for = (stopped.verb, stopped.outcome) if stopped else ("", None)
    at = attempt.ended_at or utc_ms()
    exit_facts = CoderExit(
        code=seen.code if seen else None,
        stopped_for=stopped_for,
        at=at,
        utc_offset_seconds=time.localtime(at / 1000).tm_gmtoff,
    )
    outcome = _not_there(attempt, exit_facts.code, stderr) or attempt.coder.outcome(attempt.state, exit_facts, stderr)
    lost = seen is None and outcome.kind in UNSEEN  # else its own words tell how it ended
    if lost and not stopped_for:
        outcome = Outcome(kind=OutcomeKind.TRANSIENT, reason="its process is gone and left no record of its end")
    if seen is not None and seen.cause is Cause.UNATTENDED and outcome.kind is not OutcomeKind.OK:
        outcome = Outcome(kind=OutcomeKind.TRANSIENT, reason="its host ended it, as nobody could attend it")
    if seen is not None and seen.cause is Cause.CAP:
        over = limits.too_much_printed(attempt.limits)
        outcome = Outcome(kind=OutcomeKind.BUDGET, reason=over.reason, bound=over.bound)
    if stopped is not None and verb == "limit":
        outcome = replace(outcome, reason=stopped.reason, bound=stopped.bound)
    if outcome.kind is OutcomeKind.OK:
        outcome = _within_budget(attempt, outcome)
    if wish is not None and not verb and outcome.kind is not OutcomeKind.OK:
        verb = wish.verb  # it ended by itself before it could be told to
    return verb, outcome, SessionState.LOST if lost else SessionState.EXITED


def _not_there(attempt: Attempt, code: int | None, stderr: str) -> Outcome | None:
    """Whether the runner found no program to run. What a command does not find is the command's own affair."""
    said = NO_PROGRAM.fullmatch(stderr.strip())
    if code != NOT_FOUND or said is None or attempt.session.coder in MODELLESS:
        return None
    reason = f"`{said[1]}`, the program of coder {attempt.session.coder}, is not on {attempt.session.host}"
    return Outcome(kind=OutcomeKind.MISSING, reason=reason)


def _within_budget(attempt: Attempt, outcome: Outcome) -> Outcome:
    """A session may be over before its last words are counted: the budget holds all the same."""
    over = limits.overdrawn(attempt.limits.budget, attempt.before.usage.plus(attempt.progress.usage))
    over = over or limits.overflown(attempt.limits, attempt.progress.cursor)
    if over is None:
        return outcome
    return Outcome(kind=OutcomeKind.BUDGET, reason=f"it ended well, but {over.reason}", bound=over.bound)


def _trespassed(attempt: Attempt, paths: tuple[str, ...]) -> ending.Decision:
    """It wrote where it must not: it has failed, whatever else is to be said of it."""
    verdict = Verdict(
        result=Result.FAIL,
        source=Source.TASK,
        reason=workplace.told(paths),
        evidence=tuple(f"written: {path}" for path in paths[:MOST_EVIDENCE]),
        usage=attempt.progress.usage,
        duration_ms=attempt.elapsed_ms,
    )
    return ending.Finish(verdict, charged=True)


def decide(attempt: Attempt, verb: str, outcome: Outcome) -> ending.Decision:
    """What follows: of what people asked, else of what the agent asked, else of the outcome."""
    spent, allowance = _spent(attempt), attempt.allowance
    wish = attempt.wish or recalled(attempt.progress)
    reason = wish.reason if wish else ""
    if verb == "stop":
        return ending.Finish(Verdict(result=Result.SKIP, reason=reason, usage=spent.usage))
    if verb == "shutdown" and not allowance.retry_safe:
        return ending.Ask("interrupted", f"{reason}; it is not safe to run twice, so a person says whether it goes on")
    if verb in ("restart", "shutdown"):
        return ending.Retry(reason=reason, charged=False, restart=verb == "restart")
    if verb == "interrupt":
        return ending.Ask("interrupted", reason)
    if attempt.progress.asked_kind:
        return ending.Ask(attempt.progress.asked_kind, attempt.progress.asked_text)
    jitter = attempt.house.jitter()
    return ending.decide(outcome, spent, allowance, closed=attempt.progress.closed, jitter=jitter)


def _spent(attempt: Attempt) -> ending.Spent:
    return ending.Spent(
        charged=attempt.task.charged,
        sessions=1 + attempt.history.full_contexts(),
        usage=attempt.progress.usage,
        duration_ms=attempt.elapsed_ms,
    )


async def settle(attempt: Attempt, decision: ending.Decision, end: Ending, *, carried_out: bool = False) -> None:
    """The end of the session and what becomes of the task, in one transaction, shielded from cancellation.

    So is the end of the wish that brought it about: left open, it would be carried out again on the task's next life.
    """
    attempt.house.at("settling")
    attempt.hosted.clear()  # before the transaction: nobody comes back to it after
    settling = asyncio.ensure_future(_settled(attempt, decision, end, carried_out=carried_out))
    try:
        task = await asyncio.shield(settling)
    except asyncio.CancelledError:
        await asyncio.wait([settling], timeout=SETTLE_SECONDS)
        raise
    attempt.house.log("session_ended", session=attempt.session.id, outcome=end.outcome, task=task.state.value)


async def _settled(attempt: Attempt, decision: ending.Decision, end: Ending, *, carried_out: bool) -> Task:
    house, wish = attempt.house, attempt.wish
    task = await _transition(attempt, decision, end, carried_out=carried_out)
    house.at("settled")
    if wish and wish.intent:
        did = "done" if carried_out else "refused"
        await house.store.fulfil(wish.intent, did, by=house.name, detail=f"the task is {task.state.value}")
    return task


async def _transition(attempt: Attempt, decision: ending.Decision, end: Ending, *, carried_out: bool) -> Task:
    store, fence, wish = attempt.house.store, attempt.session.fence, attempt.wish
    by = wish.by if carried_out and wish and wish.verb in OF_PEOPLE and wish.by else attempt.house.name
    match decision:
        case ending.Finish(verdict=verdict, charged=charged, alerts=alerts):
            return await store.finish(fence, end, verdict, charged=charged, alerts=alerts, by=by)
        case ending.Ask(kind=kind, text=text, alerts=alerts):
            if kind != "interrupted":  # a person did that, and asks nothing
                with contextlib.suppress(OSError):  # the ledger has it; the answer brings it into the file
                    await asyncio.to_thread(qafile.ask, attempt.house.home, attempt.task.uid, text)
            asker = _asker(attempt, kind)
            return await store.pause(fence, end, kind, text, by=by, asked_by=asker, alerts=alerts)
        case ending.Retry():
            return await store.retry(
                fence,
                end,
                reason=decision.reason,
                charged=decision.charged,
                verdict=decision.verdict,
                not_before=_not_before(attempt, decision),
                restart=decision.restart,
                alerts=decision.alerts,
                by=by,
            )
        case ending.Postpone(reason=reason, awaits=awaits):
            not_before = _not_before(attempt, decision)
            return await store.postpone(fence, end, awaits, reason=reason, not_before=not_before, by=by)


def _asker(attempt: Attempt, kind: str) -> str:
    """Who makes the task wait: its agent, or whoever interrupted it; empty: the supervisor."""
    if kind == attempt.progress.asked_kind:
        return f"{attempt.session.coder} in {attempt.session.id}"
    return attempt.wish.by if attempt.wish and kind == "interrupted" else ""


def _not_before(attempt: Attempt, decision: ending.Retry | ending.Postpone) -> int | None:
    """When it may be tried again. A limit of the coder's plan holds for all its tasks."""
    until, now = decision.pause_coder_until, attempt.house.store.now()
    if until is None:
        return now + int(decision.after_seconds * 1000) if decision.after_seconds else None
    until = until if until > now else now + ending.LIMIT_SECONDS * 1000
    attempt.house.pause(attempt.session.coder, until)
    return until


async def _stderr(attempt: Attempt) -> bytes:
    """The last of it; most are short, and then no process is needed to know how long."""
    head = await attempt.site.transport.get(f"{attempt.hosted.directory}/stderr", limit=MOST_STDERR)
    return head if len(head) < MOST_STDERR else await attempt.hosted.stderr_tail(MOST_STDERR)
