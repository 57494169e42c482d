"""Who supervises a home: the lock of one, and those who look whether it is held."""

from __future__ import annotations

import fcntl
from concurrent.futures import ThreadPoolExecutor
from concurrent.futures import TimeoutError as NotYet
from pathlib import Path

import pytest

from fleet.errors import Supervised
from fleet.supervisor.guard import Guard, holder


def test_a_look_does_not_keep_a_supervisor_from_starting(tmp_path: Path) -> None:
    """Who looks whether the lock is held has it for a moment, with others who look: a start waits for that."""
    lock = tmp_path / "supervisor.lock"
    with lock.open("w") as looking, ThreadPoolExecutor(1) as pool:
        fcntl.flock(looking, fcntl.LOCK_SH)
        starting = pool.submit(Guard(lock, "sup-a").__enter__)
        with pytest.raises(NotYet):
            starting.exception(timeout=0.2)  # it is not refused
        fcntl.flock(looking, fcntl.LOCK_UN)
        starting.result(timeout=20)
    found = holder(lock)
    assert found is not None
    assert found.name == "sup-a"


def test_a_second_supervisor_is_refused_with_the_name_of_the_first(tmp_path: Path) -> None:
    """At once, however many look."""
    lock = tmp_path / "supervisor.lock"
    with Guard(lock, "sup-a"), pytest.raises(Supervised, match=r"supervisor \d+ \(sup-a\) already runs this home"):
        Guard(lock, "sup-b").__enter__()
    assert holder(lock) is None
