"""The audit: the ledger verifies, and every count, wait and receipt beside it is right."""

from __future__ import annotations

from collections import Counter

from fleet.model.states import ENDED, IN_PROGRESS, LIVE, Result, TaskState
from fleet.model.task import Task
from fleet.projections.verify import verify
from fleet.store.reads import Reads
from fleet.store.rows import facets


def audit(store: Reads) -> None:
    """Raise AssertionError or LedgerBroken where what stands is not what the ledger says."""
    verify(store)
    tasks = {task.uid: task for task in store.tasks()}
    _check_counts(store, tasks)
    _check_readiness(store, tasks)
    _check_receipts(store, tasks)
    _check_sessions(store, tasks)


def _check_counts(store: Reads, tasks: dict[str, Task]) -> None:
    expected: Counter[str] = Counter()
    for task in tasks.values():
        expected.update(facets(task))
    assert store.counts() == dict(expected)


def _check_readiness(store: Reads, tasks: dict[str, Task]) -> None:
    """Ready is what is queued with every need completed and no later time; a queued task with an open need waits."""
    queued = {task.uid: task for task in tasks.values() if task.state is TaskState.QUEUED}
    met = {uid for uid, task in queued.items() if all(tasks[n].state is TaskState.COMPLETED for n in task.needs)}
    delayed = {uid for uid, task in queued.items() if task.not_before is not None}
    ready = {task.uid for task in store.ready()}
    assert met - delayed <= ready <= met
    assert {task.uid for task in store.waiting()} == queued.keys() - met


def _check_receipts(store: Reads, tasks: dict[str, Task]) -> None:
    """An ended task has exactly one receipt in force, and it says what the task's state says."""
    receipts = {receipt.id: receipt for receipt in store.receipts()}
    for task in tasks.values():
        if task.state in ENDED:
            assert task.receipt is not None
            assert (receipts[task.receipt].result is Result.PASS) == (task.state is TaskState.COMPLETED)
        elif task.state not in (TaskState.PARTIAL, TaskState.VERIFYING):
            assert task.receipt is None
        else:  # its verdict is open: the next receipt will supersede this one
            assert task.receipt is not None
    superseded = [receipt.supersedes for receipt in receipts.values() if receipt.supersedes]
    assert len(superseded) == len(set(superseded)), "a receipt is superseded once"
    assert not set(superseded) & {task.receipt for task in tasks.values()}, "a receipt in force is superseded by none"


def _check_sessions(store: Reads, tasks: dict[str, Task]) -> None:
    """A task has a live session exactly while it is in progress, and never two."""
    live = Counter(session.task for session in store.sessions() if session.state in LIVE)
    assert all(n == 1 for n in live.values())
    for task in tasks.values():
        assert (task.session is not None) == (live[task.uid] == 1) == (task.state in IN_PROGRESS)
