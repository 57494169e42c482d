"""Budgets and retries by a task's own terms: what is enforced while it runs, what follows, and who is told."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from fleet.errors import Conflict
from fleet.model import event as ev
from fleet.model.states import Result, SessionState, TaskState
from fleet.model.task import Task, TaskEdit
from fleet.model.terms import Budget, RetryPolicy, Terms
from tests.support.inhouse import InHouse

HANG: dict[str, Any] = {"hang": True}
USES = {"usage": [40, 60, 5000, 250_000]}  # in, out, cached, microdollars


@pytest.fixture
def inside(tmp_path: Path) -> Iterator[InHouse]:
    """A home whose supervisors run in this process; nothing of its sessions is left afterwards."""
    made = InHouse(tmp_path)
    yield made
    made.close()


def alerts(inside: InHouse, uid: str) -> list[str]:
    """The alerts of a task, in order."""
    chain = [entry.event for entry in inside.store.chain(uid)]
    return [event.alert.value for event in chain if isinstance(event, ev.AlertRaised)]


def verdict(inside: InHouse, uid: str) -> tuple[TaskState, Result | None, str]:
    """Where a task stands, and why."""
    task = inside.task(uid)
    return task.state, task.result, task.reason


@pytest.mark.parametrize(
    ("steps", "budget", "result", "reason"),
    [
        ((USES, HANG), Budget(max_tokens=99), Result.FAIL, "it used 100 tokens, more than its budget of 99 tokens"),
        (
            ({"tool": "Read"}, {"tool": "Grep"}, HANG),
            Budget(max_tool_calls=1),
            Result.FAIL,
            "it used 2 tool calls, more than its budget of 1 tool call",
        ),
        ((USES, HANG), Budget(max_microusd=200_000), Result.FAIL, "it used $0.25, more than its budget of $0.2"),
        (({"say": "hm"}, HANG), Budget(max_seconds=1), Result.TIMEOUT, "it used N s, more than its budget of 1 s"),
        (
            ({"say": "hm"}, HANG),
            Budget(idle_seconds=1),
            Result.TIMEOUT,
            "it said nothing for N s, and its budget allows 1 s of silence",
        ),
    ],
)
def test_a_budget_ends_a_session(
    inside: InHouse, steps: tuple[dict[str, Any], ...], budget: Budget, result: Result, reason: str
) -> None:
    """A session that would never end is ended by each bound; its task has failed at once, and it is told."""
    uid = inside.add(*steps, terms=Terms(budget=budget))
    inside.drain()
    state, found, said = verdict(inside, uid)
    assert (state, found) == (TaskState.FAILED, result)
    assert re.fullmatch(re.escape(reason).replace("N", "[1-9][0-9]*"), said), said  # N: as late as it was looked at
    (session,) = inside.store.sessions(task=uid)
    assert (session.outcome, inside.task(uid).charged) == ("budget", 1)
    assert alerts(inside, uid) == ["budget_exceeded"]


def test_a_session_may_run_so_long(inside: InHouse) -> None:
    """A task's own timeout holds for its session, whatever the settings say."""
    inside.set(timeout_seconds=600)
    uid = inside.add(HANG, terms=Terms(timeout_seconds=1))
    inside.drain()
    assert verdict(inside, uid) == (TaskState.FAILED, Result.TIMEOUT, "it ran longer than 1 s")


def test_the_settings_are_the_budget_of_a_task_that_has_none(inside: InHouse) -> None:
    """A bound of fleet.toml holds for every task, and a task's own goes before it."""
    inside.set(budget_tokens=99)
    poor = inside.add(USES, HANG)
    rich = inside.add(USES, terms=Terms(budget=Budget(max_tokens=1000)))
    inside.drain()
    assert [inside.task(uid).state for uid in (poor, rich)] == [TaskState.FAILED, TaskState.COMPLETED]


def test_a_session_that_ended_well_over_its_budget_does_not_pass(inside: InHouse) -> None:
    """A verdict does not depend on who was faster, the agent's end or ours."""
    uid = inside.add(USES, terms=Terms(budget=Budget(max_tokens=99)))
    inside.drain()
    reason = "it used 100 tokens, more than its budget of 99 tokens"
    state, result, said = verdict(inside, uid)
    assert (state, result) == (TaskState.FAILED, Result.FAIL)
    assert said in (reason, f"it ended well, but {reason}")


def test_a_budget_counts_every_attempt(inside: InHouse) -> None:
    """What failed attempts used is kept and counts: no attempt begins on a budget that is used up."""
    uid = inside.add(USES, {"end": "crashed"}, terms=Terms(budget=Budget(max_tokens=200)))
    inside.drain()
    sessions = inside.store.sessions(task=uid)
    assert [session.outcome for session in sessions] == ["crashed", "crashed", "budget"]
    assert [session.usage.tokens for session in sessions] == [100, 100, 0]
    assert [session.state for session in sessions] == [SessionState.EXITED] * 3
    assert sessions[-1].started_at is None
    assert verdict(inside, uid) == (TaskState.FAILED, Result.FAIL, "its budget of 200 tokens is used up")
    assert inside.task(uid).charged == 2
    assert alerts(inside, uid) == ["budget_exceeded"]


@pytest.mark.parametrize("by_setting", [True, False])
def test_a_budget_may_wait_for_a_person(inside: InHouse, by_setting: bool) -> None:
    """A task that exceeds its budget is blocked where that is asked for, and goes on when it has been raised."""
    inside.set(budget_pause=by_setting)
    uid = inside.add(USES, {"say": "x"}, terms=Terms(budget=Budget(max_tokens=99, pause=not by_setting)))
    inside.drain()
    task = inside.task(uid)
    assert task.block is not None
    assert (task.state, task.block.kind, task.charged) == (TaskState.BLOCKED, "budget", 0)
    assert alerts(inside, uid) == ["budget_exceeded", "needs_human"]
    with inside.control() as control:
        with pytest.raises(Conflict, match="budget of 99 tokens is used up") as caught:
            control.answer(uid, "go on")  # with nothing to go on
        assert caught.value.hint == f"raise it: fleet task {uid} set budget_tokens=N"
        with pytest.raises(Conflict, match="is used up"):
            control.steer.restart(uid, "again", force=True)
        control.requeue(uid, "by another way")
    inside.drain()
    assert (inside.task(uid).state, inside.store.sessions(task=uid)[-1].started_at) == (TaskState.BLOCKED, None)
    with inside.control() as control:
        raised = replace(inside.task(uid).terms, budget=Budget(max_tokens=1000))
        control.edit(uid, TaskEdit(terms=raised))
        control.answer(uid, "go on")
    inside.drain()
    assert inside.task(uid).state is TaskState.COMPLETED


def test_the_last_attempt_spent_needs_a_person(inside: InHouse) -> None:
    """A task's own number of attempts goes before that of the settings; the last one is charged, and told."""
    inside.set(max_attempts=9)
    policy = RetryPolicy(max_attempts=2, initial_backoff_seconds=0, max_backoff_seconds=0)
    uid = inside.add({"end": "transient"}, terms=Terms(retry=policy))
    inside.drain()
    task: Task = inside.task(uid)
    assert (task.state, task.charged, task.epoch, task.escalated) == (TaskState.FAILED, 2, 2, True)
    assert alerts(inside, uid) == ["restart_exhausted", "needs_human"]
    assert inside.store.counts()["escalated"] == 1


def test_what_is_not_safe_to_run_twice_runs_once(inside: InHouse) -> None:
    """A failure that another try could cure is final for such a task, and a person is told."""
    uid = inside.add({"end": "transient"}, terms=Terms(retry_safe=False))
    inside.drain()
    assert (inside.task(uid).state, inside.task(uid).epoch) == (TaskState.FAILED, 1)
    assert "not safe to run twice" in inside.task(uid).reason
    assert alerts(inside, uid) == ["needs_human"]


def test_silence_is_told(inside: InHouse) -> None:
    """A session that stalls raises `stale` each time; then the attempts are spent."""
    inside.set(idle_seconds=1, max_attempts=2)
    uid = inside.add(HANG)
    inside.drain()
    assert inside.task(uid).result is Result.TIMEOUT
    assert alerts(inside, uid) == ["stale", "stale", "restart_exhausted", "needs_human"]


@pytest.mark.parametrize(
    ("kind", "told"), [("question", []), ("permission", ["needs_human"]), ("secret", ["needs_human"])]
)
def test_what_an_agent_may_not_decide_is_raised(inside: InHouse, kind: str, told: list[str]) -> None:
    """A request for permission or a secret is raised to a person; a question is only asked."""
    uid = inside.add(command=f'fleet ask --kind {kind} "May I?"')
    inside.drain()
    assert inside.task(uid).state is TaskState.BLOCKED
    assert alerts(inside, uid) == told


def test_a_missing_login_is_raised(inside: InHouse) -> None:
    """A coder that cannot sign in needs a person."""
    uid = inside.add({"end": "auth"})
    inside.drain()
    assert alerts(inside, uid) == ["needs_human"]
