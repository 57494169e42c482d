"""What tests leave running is found, and nothing else is taken for it."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from tests.support.leftovers import Leftovers


@pytest.fixture
def sleepers(tmp_path: Path) -> Iterator[list[subprocess.Popen[bytes]]]:
    """Two processes, whose places differ in the end of their names."""
    with ExitStack() as ended:
        made = []
        for name in ("it1", "it10"):
            argv = ["sh", "-c", "exec sleep 60", str(tmp_path / name / "session")]
            made.append(ended.enter_context(subprocess.Popen(argv, env={"PLACE": str(tmp_path / name)})))
            ended.callback(made[-1].kill)
        yield made


def test_what_stays_too_long_is_ended_and_told(sleepers: list[subprocess.Popen[bytes]], tmp_path: Path) -> None:
    """The test that left it fails by the name of the place, and the neighbour of nearly the same name lives on."""
    left = Leftovers()
    with pytest.raises(AssertionError, match="left behind"):
        left.end_within(0, tmp_path / "it1")
    assert sleepers[0].wait(20) == -9
    assert sleepers[1].poll() is None
    left.wait()  # nothing is expected any more


def test_what_ends_in_time_is_waited_for(sleepers: list[subprocess.Popen[bytes]], tmp_path: Path) -> None:
    """Nobody waits while it may still live; at the end of the file everybody does."""
    left = Leftovers()
    left.end_within(60, tmp_path / "it1", tmp_path / "it10")
    for each in sleepers:
        assert each.poll() is None
        each.kill()
    left.wait()
    assert [each.wait(20) for each in sleepers] == [-9, -9]
