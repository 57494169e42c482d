"""What is left to do for a supervisor that ends when nothing is."""

from __future__ import annotations

from fleet.model.session import pool_of
from fleet.model.states import TaskState
from fleet.model.task import Task
from fleet.supervisor.house import House, OnlyPools, OnlyVerify

LOOKED_AT = 1000
SOON_MS = 60_000


def anything_left(house: House) -> bool:
    """Whether a session would still begin by itself: of any task, or of those that the supervisor is there for."""
    match house.only:
        case None:
            return _ready_or_later(house)
        case OnlyVerify(task):
            return _verifies_soon(house, task)
        case OnlyPools():
            return any(pool_of(task.capabilities) for task in (*queued(house), *_unverified(house)))
        case only:
            return house.store.moving(only.run)


def queued(house: House) -> list[Task]:
    """What is queued, as far as is looked at."""
    return house.store.tasks(frozenset({TaskState.QUEUED}), limit=LOOKED_AT)


def _ready_or_later(house: House) -> bool:
    """Whether something is ready for us, or will be by itself once its time has come."""
    now, ours = house.store.now(), house.reaches
    later = any(task.not_before is not None and task.not_before > now and ours(task.host) for task in queued(house))
    if later or any(ours(task.host) for task in house.store.ready(limit=LOOKED_AT)):
        return True
    return any(task.awaits is not None and ours(task.awaits.host) for task in _unverified(house))


def _verifies_soon(house: House, uid: str) -> bool:
    """Whether the verifier of a task is still to run, and not only at some later time."""
    task = house.store.task(uid)
    return task.awaits_verifier and (task.not_before or 0) < house.store.now() + SOON_MS


def _unverified(house: House) -> list[Task]:
    partial = house.store.tasks(frozenset({TaskState.PARTIAL}), limit=LOOKED_AT)
    return [task for task in partial if task.awaits_verifier]
