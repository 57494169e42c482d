"""One worker of a pool on this machine: what a setup that was cut off leaves behind, and what its agent does."""

from __future__ import annotations

import asyncio
import os
import subprocess
from pathlib import Path

import pytest

from fleet.config.pools import Pool
from fleet.errors import TransportError
from fleet.hosts.local import LocalTransport
from fleet.hosts.pool_worker import Facts, PoolWorker, plot_of
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


def test_one_that_was_killed_while_it_began_is_no_setup(worker: PoolWorker, tmp_path: Path) -> None:
    """What is held for an instant only is not held for ever by one that was killed in it."""
    (tmp_path / "go").touch()

    async def scene() -> str:
        await worker.install()
        Path(worker.plot.directory, "setup.taking").mkdir()
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


def test_of_setups_in_the_same_instant_one_begins(worker: PoolWorker, tmp_path: Path) -> None:
    """However many begin together after one that was killed: all but one are told of that one."""

    async def scene() -> list[str]:
        await worker.install()
        await worker.put("setup.pid", f"{os.getpid()}\n".encode())  # who looks whether it lives takes a while
        starts = {asyncio.create_task(worker.setup()) for _ in range(4)}
        refused: list[str] = []
        async with asyncio.timeout(60):
            while len(starts) > 1:
                done, starts = await asyncio.wait(starts, return_when=asyncio.FIRST_COMPLETED)
                refused += [str(each.exception()) for each in done]
            await asyncio.to_thread(until, (tmp_path / "begun").exists, "the setup")
            (tmp_path / "go").touch()
            assert (await starts.pop()).setup == "ready"
        return refused

    refused = asyncio.run(scene())
    assert len(refused) == 3
    assert all("it is being set up" in each for each in refused)


# what the agent does


def overtaken(worker: PoolWorker, tmp_path: Path, command: str) -> dict[str, str]:
    """Where the next look at the windows, which are gone, takes so long that a command is run meanwhile."""
    programs = tmp_path / "bin"
    programs.mkdir()
    script = f"""#!/bin/sh
case "$*" in *list-panes*)
    if rm "{tmp_path}/armed" 2>/dev/null; then {command}; fi
esac
exit 1
"""
    (programs / "tmux").write_text(script.replace("WORKER", f"sh '{worker.plot.directory}/worker.sh'"))
    (programs / "tmux").chmod(0o755)
    return {"PATH": f"{programs}:{os.environ['PATH']}"}


BEGINS = "FLEET_SESSION=fleet-a.2 WORKER hook UserPromptSubmit </dev/null"
ENDS = "FLEET_SESSION=fleet-a.1 WORKER hook Stop </dev/null"


@pytest.mark.parametrize(
    ("command", "state"),
    [(BEGINS, ("running", "fleet-a.2")), (ENDS, ("completed", "fleet-a.1")), (":", ("error", "fleet-a.1"))],
)
def test_a_look_that_is_overtaken(
    worker: PoolWorker, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, command: str, state: tuple[str, str]
) -> None:
    """An agent whose windows were gone for a moment, and that was ended or replaced meanwhile, is not in error."""

    async def scene() -> tuple[str, str]:
        await worker.install()
        await worker.mark("running", "it was given a prompt", "fleet-a.1")
        (tmp_path / "armed").touch()
        facts = await worker.look()
        return facts.state, facts.session

    for name, value in overtaken(worker, tmp_path, command).items():
        monkeypatch.setenv(name, value)
    assert asyncio.run(scene()) == state


def test_what_was_seen_and_is_over_is_not_marked(worker: PoolWorker) -> None:
    """What its agent told meanwhile counts; else it would be waited for, although it has ended its turn."""

    async def scene() -> list[str]:
        await worker.install()
        await worker.mark("completed", "it ended its turn", "fleet-a.1")
        ran, ended = (Facts(state=state, session="fleet-a.1") for state in ("running", "completed"))
        marked = [await worker.mark("waiting", "its input is open", "fleet-a.1", seen=seen) for seen in (ran, None)]
        await worker.mark("completed", "it ended its turn", "fleet-a.1")
        return [*(each.why for each in marked), (await worker.mark("none", "released", "", seen=ended)).state]

    overtaken, told, released = asyncio.run(scene())
    assert overtaken == "it ended its turn"
    assert told != overtaken
    assert released == "none"


def test_who_was_killed_while_it_told_holds_up_nobody(worker: PoolWorker) -> None:
    """What is held for an instant only is not held for ever."""

    async def scene() -> str:
        await worker.install()
        Path(worker.plot.directory, "agent.taking").mkdir()
        return (await worker.mark("completed", "it ended its turn", "fleet-a.1")).state

    assert asyncio.run(scene()) == "completed"
