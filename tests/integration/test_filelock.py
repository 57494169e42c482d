"""The lock of the writers: who waits for it is served in turn."""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import time
from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise
from pathlib import Path

import pytest

from fleet.errors import StoreBusy
from fleet.store.filelock import FileLock, holder
from tests.support.children import child

PROCESSES, TURNS = 4, 40
WORK_SECONDS = 0.001  # long enough for the others to queue
STEP_SECONDS = 0.25  # for the next one to step up, on a machine with other things to do


def test_who_has_had_the_lock_queues_behind_all_others(tmp_path: Path) -> None:
    """Four processes that ask again as soon as they let go take turns; none gets it again over the others' heads."""
    waiting, go = os.pipe()
    turns = tmp_path / "turns"

    def take_turns(name: str) -> None:
        lock = FileLock(tmp_path / "lock", 30)
        log = os.open(turns, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
        place = os.open(tmp_path / "lock.next", os.O_RDONLY)
        os.close(go)
        os.read(waiting, 1)
        for _ in range(TURNS):
            with lock:
                time.sleep(WORK_SECONDS)
                lock.next_please()
                os.write(log, name.encode())
                deadline = time.monotonic() + STEP_SECONDS
                while holder(place) is None and time.monotonic() < deadline:
                    time.sleep(WORK_SECONDS / 10)

    with contextlib.ExitStack() as stack:
        children = [
            stack.enter_context(child(lambda _, name=name: take_turns(name)))  # type: ignore[misc]
            for name in "abcdefgh"[:PROCESSES]
        ]
        os.close(go)
        assert [each.wait() for each in children] == [0] * PROCESSES
    os.close(waiting)
    told = turns.read_text()
    assert sorted(told) == sorted("abcd" * TURNS)
    while_all_asked = told[: min(told.rindex(name) for name in set(told))]
    again = sum(one == other for one, other in pairwise(while_all_asked))
    assert again <= len(while_all_asked) // 4, told  # a lock alone: two of three


def test_who_is_interrupted_while_it_waits_leaves_the_place(tmp_path: Path) -> None:
    """A writer that a signal takes out of the queue, and that lives on, is in nobody's way."""

    class Interrupted(Exception):
        pass

    def interrupt(number: int, frame: object) -> None:
        raise Interrupted

    def wait_in_vain(saying: int) -> None:
        signal.signal(signal.SIGUSR1, interrupt)
        signal.signal(signal.SIGALRM, signal.SIG_DFL)  # as in a program of its own
        lock = FileLock(tmp_path / "lock", 30)
        os.write(saying, b"asks\n")
        with contextlib.suppress(Interrupted), lock:
            os.write(saying, b"has it\n")
        os.write(saying, b"gave up\n")
        signal.pause()

    holder = FileLock(tmp_path / "lock", 30)
    with contextlib.ExitStack() as stack:
        with holder:
            process = stack.enter_context(child(wait_in_vain))
            assert process.line() == "asks"
            holder.next_please()
            _until_held(tmp_path / "lock.next", process.pid)
            process.send(signal.SIGUSR1)
            assert process.line() == "gave up"
        with FileLock(tmp_path / "lock", 5):  # at once, with the other one still there
            pass
    holder.close()


def test_a_directory_that_goes_away_while_a_thread_waits(tmp_path: Path) -> None:
    """The error tells that it is gone, and the lock works again once it is back."""
    folder = tmp_path / "home"
    folder.mkdir()
    held, waiting = FileLock(folder / "lock", 30), FileLock(folder / "lock", 0.1)
    with ThreadPoolExecutor(1) as thread:
        with held:
            shutil.rmtree(folder)
            with pytest.raises(FileNotFoundError, match=r"home/lock\.next"):
                thread.submit(waiting.__enter__).result()
        folder.mkdir()
        thread.submit(waiting.__enter__).result()
        late = FileLock(folder / "lock", 0.1)
        with pytest.raises(StoreBusy, match=f"process {os.getpid()} has held"), late:
            pass
        thread.submit(waiting.__exit__, None, None, None).result()
    for lock in (held, waiting, late):
        lock.close()


def _until_held(file: Path, pid: int) -> None:
    """Until a process stands there."""
    inode = str(file.stat().st_ino)
    deadline = time.monotonic() + 20
    while not any(
        words[4] == str(pid) and words[5].endswith(f":{inode}")
        for words in map(str.split, Path("/proc/locks").read_text().splitlines())
        if words[1] == "FLOCK"
    ):
        assert time.monotonic() < deadline
        time.sleep(0.01)
