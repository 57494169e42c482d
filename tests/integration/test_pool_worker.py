"""One worker of a pool on this machine: what a setup that was cut off leaves behind."""

from __future__ import annotations

import asyncio
import os
import subprocess
from pathlib import Path

import pytest

from fleet.config.pools import Pool
from fleet.errors import TransportError
from fleet.hosts.local import LocalTransport
from fleet.hosts.pool_worker import PoolWorker, plot_of
from tests.support.session_host import until


@pytest.fixture
def worker(tmp_path: Path) -> PoolWorker:
    """A worker of a repository whose setup waits until it is told to go on."""
    repo = tmp_path / "repo"
    script = repo / "setup.sh"
    script.parent.mkdir()
    script.write_text(f"echo begun >{tmp_path}/begun; until [ -e {tmp_path}/go ]; do sleep 0.05; done\n")
    git = ["git", "-c", "user.name=a", "-c", "user.email=a@b", "-C", str(repo)]
    for words in (["init", "-q"], ["add", "."], ["commit", "-qm", "first"]):
        subprocess.run([*git, *words], check=True)
    pool = Pool(repo=str(repo), setup="setup.sh")
    return PoolWorker(LocalTransport(), plot_of("kite", pool, "kite-1", state=str(tmp_path / "state")))


def test_a_number_that_another_program_has_by_now_is_no_setup(worker: PoolWorker, tmp_path: Path) -> None:
    """After a crash the process of a setup may be anybody's: the worker is set up all the same."""
    (tmp_path / "go").touch()

    async def scene() -> str:
        await worker.install()
        await worker.put("setup.pid", f"{os.getpid()}\n".encode())
        return (await worker.setup()).setup

    assert asyncio.run(scene()) == "ready"


def test_of_two_setups_at_once_the_second_is_refused(worker: PoolWorker, tmp_path: Path) -> None:
    """While one lives that really sets it up, another is told so."""

    async def scene() -> str:
        await worker.install()
        first = asyncio.create_task(worker.setup())
        await asyncio.to_thread(until, (tmp_path / "begun").exists, "the setup")
        with pytest.raises(TransportError, match="it is being set up"):
            await worker.setup()
        (tmp_path / "go").touch()
        return (await first).setup

    assert asyncio.run(scene()) == "ready"
