"""One machine, used by several homes in the same directory: what is of one is nothing to the other."""

from __future__ import annotations

import asyncio
import contextlib
import os
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from fleet import wiring
from fleet.config.clock import utc_ms
from fleet.config.load import load
from fleet.model.launch import Launch
from fleet.model.session import Defaults
from fleet.model.states import TaskState
from fleet.model.terms import Terms
from fleet.supervisor.pruner import Pruner
from fleet.testing.builders import a_slot, a_task
from tests.support.away import Away
from tests.support.sshd import Sshd, sshd

UID = "proj-1"  # as an outside queue gives it, to both
# Says who it is, leaves that behind, and goes on until it is let go.
AGENT = """
echo {name}; ls "$FLEET_ARTIFACT_DIR"; echo {name} >"$FLEET_ARTIFACT_DIR/{name}"
until [ -e {far}/{name}.go ]; do sleep 0.02; done
echo end
"""


@pytest.fixture(scope="module")
def server() -> Iterator[Sshd]:
    """A machine over there."""
    with sshd() as server:
        yield server


@pytest.fixture
def homes(tmp_path: Path, server: Sshd, monkeypatch: pytest.MonkeyPatch) -> Iterator[tuple[Away, Away]]:
    """Two homes with the same working directory over there."""
    found = []
    for name in ("one", "other"):
        (tmp_path / name).mkdir()
        away = Away(tmp_path / name, server, monkeypatch)
        away.far = tmp_path / "far"
        away.declare(capabilities=["gpu"], max_concurrent_tasks=2)
        found.append(away)
    yield found[0], found[1]
    for away in found:
        away.close()


def give(away: Away, command: str, **terms: Any) -> str:
    """A task with the id that the other home has given too."""
    new = a_task("x", description=command, coder="command", capabilities=("gpu",), uid=UID, terms=Terms(**terms))
    return away.store.submit([new], by="ana").result()[0].uid


def words(away: Away) -> list[str]:
    return [said["text"] for said in away.said(UID)]


def test_tasks_of_the_same_id_do_not_meet(homes: tuple[Away, Away]) -> None:
    """Each reads its own agent, which finds its own artifacts; to end or to prune what is of one leaves the other."""
    one, other = homes
    for away, name in zip(homes, ("one", "other"), strict=True):
        give(away, AGENT.format(name=name, far=away.far))

    async def both() -> None:
        async with one.supervising() as ours, other.supervising():
            await one.until(lambda: words(one) == ["one"] and words(other) == ["other"], "their words")
            names = {away.session(UID) for away in homes}
            assert len(names) == 2
            with one.control() as control:
                control.steer.stop(UID, "not needed")
            await one.until_state(UID, TaskState.CANCELLED)
            (left,) = names - {one.session(UID)}
            os.kill(other.store.session(left).pid or 0, 0)  # it lives
            pruner = Pruner(ours.house, tuple, clock=lambda: utc_ms() + 30 * 86_400_000)
            assert (await pruner.run_once()).sessions == 1
            assert [path.name for path in (one.far / ".fleet/sessions").glob("[!.]*")] == [left]
            (one.far / "other.go").touch()
            await other.until_state(UID, TaskState.COMPLETED)

    asyncio.run(both())
    assert (words(one), words(other)) == (["one"], ["other", "end"])
    kept = {name: os.listdir(away.home.task_dir(UID) / "artifacts") for name, away in zip("ab", homes, strict=True)}
    assert kept["b"] == ["other"]
    assert "other" not in kept["a"]


def test_a_session_of_an_earlier_fleet_is_taken_over(homes: tuple[Away, Away]) -> None:
    """One whose directory has no seal is found, and the next attempt finds what it left, under the names of then."""
    one, other = homes
    give(one, 'echo again; cat "$FLEET_ARTIFACT_DIR/left"')
    house = one.house()
    one.store.join("sup-old", machine=house.place, pid=os.getpid(), seconds=30).result()
    slot = a_slot("builder#1", host="builder")  # as if it were a slot here: such a session has no seal
    (claimed,) = one.store.claim("sup-old", [slot], Defaults(coder="command", model="")).result()
    assert claimed.session.id == f"{UID}.1"

    async def start() -> None:
        site = house.site("builder")
        hosted = site.hosted(claimed.session)
        script = (
            f"mkdir -p {site.artifacts(claimed.session)}; echo begun; echo left >{site.artifacts(claimed.session)}/left"
        )
        await hosted.prepare(Launch(argv=("sh", "-c", f"{script}; exit 1"), cwd=str(one.far)))
        started = await hosted.start()
        await one.store.started(claimed.session.fence, started.pid, by="sup-old")

    asyncio.run(start())
    house.store.close()
    one.store.leave("sup-old", reason="it was updated").result()
    give(other, "echo mine")
    other.drain()
    one.drain()
    assert words(one) == ["begun", "again", "left"]
    assert [session.id for session in one.store.sessions(task=UID)] == [f"{UID}.1", f"{UID}.3"]  # taken over in between
    assert words(other) == ["mine"]


def test_their_worktrees_are_apart_too(homes: tuple[Away, Away]) -> None:
    """Each has its own, on a branch that people can type; another home's is listed as nobody's, and left alone."""
    git = ["git", "-c", "user.name=a", "-c", "user.email=a@b", "-C", str(homes[0].far)]
    for each in (["init", "-q"], ["commit", "-q", "--allow-empty", "-m", "first"]):
        subprocess.run([*git, *each], check=True)
    for away, name in zip(homes, ("one", "other"), strict=True):
        give(away, f"ls; echo {name} >{name}", isolation="worktree")
        away.drain()
        assert words(away) == []
    branches = set()
    for away in homes:
        with contextlib.closing(wiring.open_landing(away.home, load(away.home))) as landing:
            trees = {tree.task: tree for tree in landing.standing("builder")}
            ours = trees.pop(UID)
            (stranger,) = trees.values()
            assert (ours.problem, ours.path) == ("", f"{away.far}/.fleet/worktrees/{away.there(UID)}")
            assert stranger.problem == "no task of this ledger has it"
            branches.add(ours.branch)
    for away in homes:
        with contextlib.closing(wiring.open_landing(away.home, load(away.home))) as landing:
            landing.land(UID, "merge")
    assert branches == {f"fleet/{UID}", f"fleet/{UID}.2"}
    assert sorted(path.name for path in homes[0].far.iterdir() if path.name[0] != ".") == ["one", "other"]
    assert list((homes[0].far / ".fleet/worktrees").iterdir()) == []


def test_what_dropped_worktrees_left_is_removed_by_their_home(homes: tuple[Away, Away]) -> None:
    """After its time, over there too; what another home put aside stays, as does what is not known."""
    one, other = homes
    for away in homes:
        give(away, "echo well")
        away.drain()
    dropped = one.far / ".fleet/dropped"
    for name in (one.there(UID), other.there(UID), UID):
        (dropped / name / "f00d/files").mkdir(parents=True)
        (dropped / name / "f00d/names").touch()
        os.utime(dropped / name / "f00d/names", (0, 0))

    async def prune() -> int:
        async with one.supervising() as supervisor:
            await one.until(lambda: supervisor.house.hosts.may_answer("builder"), "the probe")
            return (await Pruner(supervisor.house, tuple).run_once()).dropped

    assert asyncio.run(prune()) == 1
    assert {path.name for path in dropped.iterdir()} == {other.there(UID), UID}
