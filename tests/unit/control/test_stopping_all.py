"""Stopping everything: what is passed over, and what is not."""

from __future__ import annotations

import pytest

from fleet.config.settings import Supervisor
from fleet.control.steering import Steering
from fleet.errors import HomeError
from fleet.model.states import TaskState
from fleet.model.task import Task
from fleet.testing.builders import a_task
from tests.support.stores import SqliteStores


def test_only_what_has_ended_meanwhile_is_passed_over(sqlite_stores: SqliteStores) -> None:
    """That a task was stopped, and what belongs to it could not be written, is told."""
    store = sqlite_stores.open()
    (task,) = store.submit([a_task()], by="ana").result()

    def full(_: Task) -> Task:
        raise HomeError("the disk is full")

    steering = Steering(store, Supervisor(), by="ana", written=full, after=lambda: None)
    with pytest.raises(HomeError, match="the disk is full"):
        list(steering.stop_all("enough"))
    assert store.task(task.uid).state is TaskState.CANCELLED
