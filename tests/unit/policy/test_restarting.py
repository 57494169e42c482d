"""When a person may run a task again, what kind of trouble it is in, and with what command it is run again."""

from __future__ import annotations

from typing import Any

import pytest

from fleet.model.states import Result, Source, TaskState
from fleet.model.task import Block, Task
from fleet.policy.ending import Allowance
from fleet.policy.limits import Exceeded
from fleet.policy.restarting import BUDGET_KEYS, refusal, without_budget
from fleet.policy.triage import classify, restart_command

S = TaskState


def a_standing_task(state: TaskState, **fields: Any) -> Task:
    """A task as it stands."""
    known: dict[str, Any] = {"uid": "fleet-abc", "task_id": "fleet-abc", "title": "x", "created_at": 1}
    return Task(**known, created_by="ana", updated_at=1, state=state, **fields)


@pytest.mark.parametrize(
    ("state", "charged", "epoch", "safe", "word"),
    [
        (S.COMPLETED, 0, 1, True, "has passed"),
        (S.FAILED, 3, 3, True, "no attempt left (3 of 3 are spent)"),
        (S.FAILED, 2, 3, True, None),
        (S.BLOCKED, 3, 3, True, None),
        (S.CANCELLED, 0, 0, True, None),
        (S.FAILED, 1, 1, False, "not safe to run twice"),
        (S.RUNNING, 0, 1, False, "not safe to run twice"),
        (S.RUNNING, 0, 1, True, None),
        (S.CANCELLED, 0, 0, False, None),
        (S.PARTIAL, 0, 1, True, None),
    ],
)
def test_what_is_refused(state: TaskState, charged: int, epoch: int, safe: bool, word: str | None) -> None:
    """A pass, spent attempts and what must not run twice are; the hint and the command say how to mean it."""
    task = a_standing_task(state, charged=charged, epoch=epoch)
    allowance = Allowance(max_attempts=3, retry_safe=safe)
    refused = refusal(task, allowance)
    assert (refused is None) == (word is None)
    assert refused is None or (str(word) in refused.reason and refused.hint.endswith("--force"))
    assert restart_command(task, allowance) == "fleet restart fleet-abc" + ("" if word is None else " --force")


@pytest.mark.parametrize("bound", sorted(BUDGET_KEYS))
def test_what_has_nothing_to_run_on_is_told_what_to_raise(bound: str) -> None:
    """The hint names the key that raises that bound."""
    refused = without_budget(a_standing_task(S.FAILED), Exceeded("budget", "it is used up", bound))
    assert refused.hint == f"raise it: fleet task fleet-abc set {BUDGET_KEYS[bound]}=N"


ASKS = Block(kind="permission", text="?", at=1, by="claude")


@pytest.mark.parametrize(
    ("task", "outcome", "kind"),
    [
        (a_standing_task(S.QUEUED), None, None),
        (a_standing_task(S.QUEUED), "transient", "transient"),
        (a_standing_task(S.QUEUED), "crashed", "task"),
        (a_standing_task(S.QUEUED), "abandoned", None),
        (a_standing_task(S.RUNNING), "crashed", None),
        (a_standing_task(S.BLOCKED, block=ASKS), "ok", "needs-human"),
        (a_standing_task(S.FAILED, source=Source.TRANSPORT), "transient", "transient"),
        (a_standing_task(S.FAILED, source=Source.TRANSPORT, escalated=True), "transient", "needs-human"),
        (a_standing_task(S.FAILED, source=Source.TASK), "refusal", "task"),
        (a_standing_task(S.FAILED, source=Source.TASK), "budget", "task"),
        (a_standing_task(S.FAILED, source=Source.VERIFIER), "ok", "verifier"),
        (a_standing_task(S.PARTIAL, result=Result.PARTIAL), "ok", "verifier"),
        (a_standing_task(S.COMPLETED, result=Result.PASS), "ok", None),
    ],
)
def test_what_kind_of_trouble_it_is(task: Task, outcome: str | None, kind: str | None) -> None:
    """By the state first, then by who failed, then by how the last session ended."""
    assert classify(task, outcome, orphaned=False) == kind
    assert classify(task, outcome, orphaned=True) == "transient"
