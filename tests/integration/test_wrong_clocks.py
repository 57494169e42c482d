"""Hosts whose clock is wrong: nothing of what happens there is measured against ours."""

from __future__ import annotations

import asyncio
import shutil
from pathlib import Path

import pytest

from fleet.model.states import TaskState
from fleet.model.terms import Budget, Terms
from tests.support.away import Away
from tests.support.sshd import Sshd, shadow, sshd

HOUR_SECONDS = 3600


def set_clock(server: Sshd, seconds: int) -> None:
    """From now on the clock over there is off by so much; those of its files are not, as on a disk of the network."""
    shadow(server, "date", f'exec {shutil.which("date")} -d "{seconds} seconds" "$@"')


@pytest.mark.parametrize("hours", [-1, 1])
def test_a_host_whose_clock_is_an_hour_off(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, hours: int) -> None:
    """An agent there is neither idle nor over its time because of that, also when another supervisor goes on with it;
    and how long it ran is right."""
    go = tmp_path / "go"
    with sshd() as server:
        set_clock(server, hours * HOUR_SECONDS)
        away = Away(tmp_path, server, monkeypatch)
        away.declare(capabilities=["gpu"])
        terms = Terms(timeout_seconds=600, budget=Budget(idle_seconds=300))
        waits = f"echo one; while [ ! -e {go} ]; do sleep 0.05; done; echo two"
        uid = away.add(command=waits, capabilities=("gpu",), terms=terms)

        async def work() -> None:
            async with away.supervising():
                await away.until(lambda: away.said(uid), "its first word")
            async with away.supervising():
                await away.until(lambda: away.logged("session_adopted"), "another supervisor")
                go.touch()
                await away.until_state(uid, TaskState.COMPLETED)

        asyncio.run(work())
        (session,) = away.store.sessions(task=uid)
        (receipt,) = away.store.receipts(task=uid)
        assert [said["text"] for said in away.said(uid)] == ["one", "two"]
        assert session.ran_ms is not None
        assert 0 < session.ran_ms == receipt.duration_ms < 300_000
        away.close()
