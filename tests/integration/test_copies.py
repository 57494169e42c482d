"""The copies of tasks' files on their hosts: cleared once nobody needs them, and only where all of it is kept here."""

from __future__ import annotations

import asyncio
import hashlib
import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from fleet.config.clock import utc_ms
from fleet.errors import Conflict
from fleet.hosts.copies import Copies
from fleet.hosts.local import LocalTransport
from fleet.model.states import TaskState
from fleet.model.terms import Terms
from fleet.supervisor.pruner import Pruned, Pruner
from tests.support.away import Away
from tests.support.session_host import processes_with
from tests.support.sshd import Sshd, sshd

DAY_SECONDS = 86_400
PLANS = 'echo planned >"$FLEET_ARTIFACT_DIR/PLAN.md"; '


@pytest.fixture(scope="module")
def server() -> Iterator[Sshd]:
    """A machine over there."""
    with sshd() as server:
        yield server


@pytest.fixture
def away(tmp_path: Path, server: Sshd, monkeypatch: pytest.MonkeyPatch) -> Iterator[Away]:
    """A home with a worker over there that keeps old sessions for a day."""
    away = Away(tmp_path, server, monkeypatch, keep_sessions_days=1, max_attempts=1)
    away.declare(capabilities=["gpu"], max_concurrent_tasks=4)
    yield away
    away.close()


def copies_on(away: Away) -> set[str]:
    """The tasks that have a copy over there."""
    return {path.name for path in (away.far / ".fleet/tasks").iterdir()}


def age(away: Away, *uids: str) -> None:
    """Nothing was made ready in these copies for two days, by the clock over there."""
    known = away.store.tasks_by_uid(uids)
    for uid in uids:
        directory = away.far / ".fleet/tasks" / (away.there(uid) if uid in known else uid)
        then = directory.stat().st_mtime - 2 * DAY_SECONDS
        os.utime(directory, (then, then))


async def pruned(away: Away, *uids: str, aged: tuple[str, ...] = (), host: str = "builder") -> Pruned:
    """One round, three days after these tasks came to rest."""
    resting = {TaskState.COMPLETED, TaskState.FAILED, TaskState.BLOCKED}
    async with away.supervising() as supervisor:
        await away.until(lambda: all(away.task(uid).state in resting for uid in uids), "their end")
        await away.until(lambda: supervisor.house.hosts.may_answer(host), "the probe")
        runners = [f"{away.far}/.fleet/sessions/{uid}.".encode() for uid in uids]
        await away.until(lambda: not any(processes_with(word) for word in runners), "the end of their runners")
        age(away, *aged)
        return await Pruner(supervisor.house, tuple, clock=lambda: utc_ms() + 3 * DAY_SECONDS * 1000).run_once()


def test_the_copies_of_ended_tasks_go_and_what_is_kept_here_stays(away: Away) -> None:
    """After its time all of an ended task's files go from its host; a verifier that is run again finds them there."""
    looks = Terms(scorer={"kind": "command", "command": 'grep planned "$FLEET_ARTIFACT_DIR/PLAN.md"'})
    verified = away.add(command=PLANS + 'ln -s /etc "$FLEET_ARTIFACT_DIR/link"', capabilities=("gpu",), terms=looks)
    plain = away.add(command="echo well", capabilities=("gpu",))

    half = away.far / ".fleet/clones/fleet-old"
    half.mkdir(parents=True)
    os.utime(half, (0, 0))
    done = asyncio.run(pruned(away, verified, plain, aged=(verified, plain)))
    assert not half.exists()
    assert (done.sessions, done.copies) == (3, 2)
    assert copies_on(away) == set()
    assert (away.home.task_dir(verified) / "artifacts/PLAN.md").read_text() == "planned\n"
    assert {record["task"] for record in away.logged("copies_removed")} == {verified, plain}
    with away.control() as control:
        control.verify(verified)
    away.drain()
    assert away.task(verified).state is TaskState.COMPLETED
    assert copies_on(away) == {away.there(verified)}


def test_what_somebody_needs_is_not_cleared(away: Away) -> None:
    """A task that waits, a worktree, a copy that was just made ready, one of another home: all stay, and silently."""
    git = ["git", "-c", "user.name=a", "-c", "user.email=a@b", "-C", str(away.far)]
    for words in (["init", "-q"], ["commit", "-q", "--allow-empty", "-m", "first"]):
        subprocess.run([*git, *words], check=True)
    waits = away.add(command=PLANS + 'fleet ask "Which one?"', capabilities=("gpu",))
    grown = away.add(command=PLANS, capabilities=("gpu",), terms=Terms(isolation="worktree"))
    young = away.add(command=PLANS, capabilities=("gpu",))
    stranger = away.far / ".fleet/tasks/of-another-home/artifacts"
    stranger.mkdir(parents=True)

    done = asyncio.run(pruned(away, waits, grown, young, aged=(waits, grown, stranger.parent.name)))
    assert done.copies == 0
    assert copies_on(away) == {*map(away.there, (waits, grown, young)), stranger.parent.name}
    assert away.logged("copies_kept") == []


def test_what_is_nowhere_else_stays_and_is_told(away: Away) -> None:
    """A file whose content is not here keeps its copy, all of it, and the log names it, once."""
    uid = away.add(command=PLANS, capabilities=("gpu",))
    away.drain()
    copy = away.far / ".fleet/tasks" / away.there(uid)
    (copy / "notes.txt").write_text("nobody brought this back\n")

    assert asyncio.run(pruned(away, uid, aged=(uid,))).copies == 0
    assert (copy / "artifacts/PLAN.md").exists()
    (told,) = away.logged("copies_kept")
    assert (told["task"], told["host"], told["reason"]) == (uid, "builder", "notes.txt is nowhere else")
    (away.home.task_dir(uid) / "notes.txt").write_text("nobody brought this back\n")
    assert asyncio.run(pruned(away, uid)).copies == 1
    assert copies_on(away) == set()


def test_a_machine_is_cleared_by_whatever_name_it_is_reached(away: Away) -> None:
    """What was left under a name that is used no more is cleared under another that leads to the same place."""
    uid = away.add(command=PLANS, capabilities=("gpu",))
    away.drain()
    away.tables[-1] = away.tables[-1].replace("/bin/sh", "no-such-program")  # as a worker it is out of use
    away.declare("again", capabilities=["gpu"])
    done = asyncio.run(pruned(away, uid, aged=(uid,), host="again"))
    assert (done.sessions, done.copies, copies_on(away)) == (1, 1, set())


def old_copy(state: Path, task: str) -> Path:
    """The copy of a task in a host's own directory, made ready two days ago."""
    directory = state / "tasks" / task
    (directory / "artifacts").mkdir(parents=True)
    (directory / "artifacts/PLAN.md").write_text("planned\n")
    then = directory.stat().st_mtime - 2 * DAY_SECONDS
    os.utime(directory, (then, then))
    return directory


def test_a_copy_that_is_made_ready_again_is_not_taken(tmp_path: Path) -> None:
    """Who relies on a copy touches it: from then on it is neither listed nor taken, whatever was decided before."""
    directory = old_copy(tmp_path, "fleet-abc")
    copies = Copies(LocalTransport(), str(tmp_path))

    async def look() -> None:
        assert await copies.names() == ("fleet-abc",)
        sums = await copies.sums("fleet-abc")
        assert sums == {"artifacts/PLAN.md": hashlib.sha256(b"planned\n").hexdigest()}
        os.utime(directory)
        with pytest.raises(Conflict, match="in use"):
            await copies.take("fleet-abc", sums)
        assert await copies.names() == ()

    asyncio.run(look())
    assert (directory / "artifacts/PLAN.md").exists()


def test_only_what_was_named_is_taken(tmp_path: Path) -> None:
    """A file that came after the look stays with its directory; a name that cannot be told keeps everything."""
    directory = old_copy(tmp_path, "fleet-abc")
    copies = Copies(LocalTransport(), str(tmp_path))
    (directory / "artifacts/late").write_text("x")
    with pytest.raises(Conflict, match="nowhere else"):
        asyncio.run(copies.take("fleet-abc", ["artifacts/PLAN.md"]))
    assert [path.name for path in (directory / "artifacts").iterdir()] == ["late"]
    odd = old_copy(tmp_path, "fleet-odd")
    (odd / "artifacts/two\nlines").write_text("x")
    with pytest.raises(Conflict, match="cannot be told"):
        asyncio.run(copies.sums("fleet-odd"))


def test_a_home_has_no_copies(tmp_path: Path) -> None:
    """Where a host's own directory is a home of Fleet, its tasks are what is kept: nothing of them is ever listed."""
    old_copy(tmp_path, "fleet-abc")
    (tmp_path / "fleet.toml").touch()
    assert asyncio.run(Copies(LocalTransport(), str(tmp_path)).names()) == ()


def test_a_file_too_large_to_be_kept_elsewhere_is_not_read(tmp_path: Path) -> None:
    """What is larger than anything that is brought back keeps its copy, without a look at its content."""
    directory = old_copy(tmp_path, "fleet-abc")
    with (directory / "artifacts/model").open("wb") as file:
        file.truncate((64 << 20) + 1024)
    with pytest.raises(Conflict, match="artifacts/model is too large"):
        asyncio.run(Copies(LocalTransport(), str(tmp_path)).sums("fleet-abc"))
