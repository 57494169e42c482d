"""Told to end before they began: a clone or a worktree under way is ended at once, and nothing of it is left."""

from __future__ import annotations

import asyncio
import contextlib
import subprocess
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest

from fleet.hosts.local import LocalTransport
from fleet.hosts.machine import local_host
from fleet.hosts.workspace import Repository, Workspaces, Worktree
from fleet.model.session import Session, name_there
from fleet.model.states import SessionState, TaskState
from fleet.model.terms import Terms
from tests.support.away import Away
from tests.support.inhouse import InHouse
from tests.support.session_host import processes_with
from tests.support.sshd import sshd

PROMPT_SECONDS = 10.0  # a clone that nobody ends takes an hour


@pytest.fixture(autouse=True)
def as_ana(monkeypatch: pytest.MonkeyPatch) -> None:
    """Somebody whom git knows."""
    for name in ("AUTHOR", "COMMITTER"):
        monkeypatch.setenv(f"GIT_{name}_NAME", "Ana")
        monkeypatch.setenv(f"GIT_{name}_EMAIL", "ana@example.com")
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", "/dev/null")


@pytest.fixture
def inside(tmp_path: Path) -> Iterator[InHouse]:
    """A home whose supervisors run in this process; nothing of its sessions is left afterwards."""
    made = InHouse(tmp_path)
    yield made
    made.close()


@contextlib.asynccontextmanager
async def silent_server() -> AsyncIterator[tuple[str, asyncio.Event]]:
    """A repository's address where somebody listens and never answers; and that somebody has come."""
    came = asyncio.Event()

    async def hold(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        came.set()
        with contextlib.suppress(ConnectionError):
            while await reader.read(1024):
                pass
        writer.close()

    async with await asyncio.start_server(hold, "127.0.0.1", 0) as server:
        yield f"git://127.0.0.1:{server.sockets[0].getsockname()[1]}/shop.git", came


def clones_of(url: str) -> list[int]:
    """The processes that clone from there."""
    return processes_with(url.encode(), files=("cmdline",))


async def stopped_while_cloning(home: InHouse, add: dict[str, object], verb: str = "stop") -> Session:
    """The session of a task that was told to end while its repository was being cloned."""
    async with silent_server() as (url, came), home.supervising():
        uid = home.add(command="echo never >ran", terms=Terms(repository=url), **add)
        async with asyncio.timeout(20):
            await came.wait()
        assert clones_of(url)
        with home.control() as control:
            getattr(control.steer, verb)(uid, "not needed")
        wanted = TaskState.CANCELLED if verb == "stop" else TaskState.BLOCKED
        async with asyncio.timeout(PROMPT_SECONDS):
            await home.until_state(uid, wanted)
        await home.until(lambda: not clones_of(url), "the end of the clone")
        await home.until(lambda: home.store.intents(target=uid)[0].outcome, "that it is told as done")
    (session,) = home.store.sessions(task=uid)
    (intent,) = home.store.intents(target=uid)
    assert (intent.outcome, session.state, session.outcome) == ("done", SessionState.EXITED, "interrupted")
    assert home.task(uid).charged == 0
    return session


@pytest.mark.parametrize("verb", ["stop", "interrupt"])
def test_a_clone_here_is_ended_at_once(inside: InHouse, tmp_path: Path, verb: str) -> None:
    """To stop or interrupt a task ends its clone and removes what there is of it; the task says who asked."""
    session = asyncio.run(stopped_while_cloning(inside, {"cwd": str(tmp_path / "w/shop"), "host": local_host()}, verb))
    assert not (inside.home.path / "clones" / session.task).exists()
    assert not (tmp_path / "w/shop").exists()
    assert not inside.home.sessions.exists() or session.id not in {path.name for path in inside.home.sessions.iterdir()}


def test_a_clone_over_there_is_ended_at_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The same on another machine: git is gone from there, and so is its directory."""
    with sshd() as server:
        away = Away(tmp_path, server, monkeypatch)
        far = Path(away.declare(capabilities=["gpu"]))
        session = asyncio.run(stopped_while_cloning(away, {"cwd": "shop", "capabilities": ("gpu",)}))
        assert session.host == "builder"
        assert not (far / ".fleet/clones" / name_there(session.id)).exists()
        assert not (far / "shop").exists()
        away.close()


def test_a_supervisor_that_stops_does_not_wait_for_a_clone(inside: InHouse, tmp_path: Path) -> None:
    """The clone is ended, and the task is queued again with all its attempts; agents of others would run on."""

    async def work() -> str:
        async with silent_server() as (url, came):
            async with inside.supervising() as supervisor:
                terms = Terms(repository=url, retry_safe=False)
                uid = inside.add(command="true", terms=terms, cwd=str(tmp_path / "w/shop"), host=local_host())
                async with asyncio.timeout(20):
                    await came.wait()
                supervisor.stop()
                await inside.until_state(uid, TaskState.QUEUED)
            assert not clones_of(url)
        return uid

    uid = asyncio.run(work())
    assert not (inside.home.path / "clones" / uid).exists()
    assert (inside.task(uid).charged, inside.store.sessions(live=True)) == (0, [])


@pytest.fixture
def slow(tmp_path: Path) -> Path:
    """A repository whose checkout hangs at one of its files, and says so in `began`."""
    repo = tmp_path / "slow"
    repo.mkdir()
    script = tmp_path / "smudge"
    script.write_text(f"#!/bin/sh\n[ -e {tmp_path}/free ] && exec cat\n: >{tmp_path}/began\nexec sleep 1000\n")
    script.chmod(0o755)
    (repo / ".gitattributes").write_text("*.slow filter=slow\n")
    (repo / "a.txt").write_text("one\n")
    (repo / "z.slow").write_text("two\n")
    for words in (
        ["init", "-q"],
        ["add", "-A"],
        ["commit", "-qm", "first"],
        ["config", "filter.slow.smudge", str(script)],
    ):
        subprocess.run(["git", "-C", str(repo), *words], check=True)
    return repo


def refs(repo: Path) -> list[str]:
    """The branches of a repository, and where its worktrees began."""
    words = ["git", "-C", str(repo), "for-each-ref", "--format=%(refname)"]
    return subprocess.run(words, check=True, capture_output=True, text=True).stdout.split()


def test_a_worktree_that_is_being_made_is_given_up(inside: InHouse, slow: Path, tmp_path: Path) -> None:
    """Nothing of it stays, in its place or in the repository; restarted, the task gets a whole one."""
    uid = inside.add(command="cat a.txt z.slow", cwd=str(slow), host=local_host(), terms=Terms(isolation="worktree"))
    tree = inside.home.path / "worktrees" / uid

    async def work() -> None:
        async with inside.supervising():
            await inside.until((tmp_path / "began").exists, "the checkout")
            assert tree.exists()
            with inside.control() as control:
                control.steer.stop(uid, "not needed")
            await inside.until_state(uid, TaskState.CANCELLED)
            assert not processes_with(str(tmp_path / "smudge").encode(), files=("cmdline",))

    before = refs(slow)
    asyncio.run(work())
    assert not tree.exists()
    assert refs(slow) == before
    (tmp_path / "free").touch()
    with inside.control() as control:
        control.steer.restart(uid, "once more")
    inside.drain()
    assert [said["text"] for said in inside.said(uid)] == ["one", "two"]


def test_a_worktree_that_a_crash_left_half_made_is_made_anew(slow: Path, tmp_path: Path) -> None:
    """What git had locked while it was being made is no worktree to work in: the next attempt makes a whole one."""
    tree = Worktree.of("fleet-abc", str(slow), str(tmp_path / "state"))
    spaces = Workspaces(LocalTransport())

    async def cut_off() -> None:
        making = asyncio.ensure_future(spaces.make(tree))
        while not (tmp_path / "began").exists():
            await asyncio.sleep(0.01)
        making.cancel()
        await asyncio.wait([making])

    asyncio.run(cut_off())
    assert Path(tree.path, ".git").exists()
    assert not Path(tree.path, "z.slow").exists()
    (tmp_path / "free").touch()
    asyncio.run(spaces.make(tree))
    assert Path(tree.path, "z.slow").read_text() == "two\n"


def test_a_worktree_that_is_still_being_made_is_waited_for(slow: Path, tmp_path: Path) -> None:
    """Where git outlived the supervisor that had asked for it, the next attempt gets what it makes, and all of it."""
    tree = Worktree.of("fleet-abc", str(slow), str(tmp_path / "state"))
    (tmp_path / "smudge").write_text(
        f"#!/bin/sh\n: >{tmp_path}/began\nuntil [ -e {tmp_path}/free ]; do sleep 0.02; done\nexec cat\n"
    )
    spaces = Workspaces(LocalTransport())

    async def both() -> None:
        first = asyncio.ensure_future(spaces.make(tree))
        async with asyncio.timeout(20):
            while not (tmp_path / "began").exists():
                await asyncio.sleep(0.01)
            (tmp_path / "began").unlink()
            second = asyncio.ensure_future(spaces.make(tree))
            done, _ = await asyncio.wait([second], timeout=0.5)
            assert not done
            (tmp_path / "free").touch()
            assert await first == await second

    asyncio.run(both())
    assert not (tmp_path / "began").exists(), "it was made twice"
    assert Path(tree.path, "z.slow").read_text() == "two\n"


def test_a_checkout_that_is_brought_forward_is_not_cut_off(tmp_path: Path) -> None:
    """Who gives up while files of a checkout are being changed waits for the end of that: it is never half changed."""
    upstream, shop, began, free = (tmp_path / name for name in ("up", "shop", "began", "free"))
    upstream.mkdir()
    git = ["git", "-C", str(upstream)]
    (upstream / ".gitattributes").write_text("*.slow filter=slow\n")
    for words in (["init", "-q", "-b", "main"], ["add", "-A"], ["commit", "-qm", "first"]):
        subprocess.run([*git, *words], check=True)
    clone = Repository(url=str(upstream), branch="main", path=str(shop), temporary=str(tmp_path / "temporary"))
    spaces = Workspaces(LocalTransport())
    asyncio.run(spaces.obtain(clone, "update"))
    smudge = f"sh -c ': >{began}; until [ -e {free} ]; do sleep 0.02; done; cat'"
    subprocess.run(["git", "-C", str(shop), "config", "filter.slow.smudge", smudge], check=True)
    (upstream / "z.slow").write_text("two\n")
    for words in (["add", "-A"], ["commit", "-qm", "second"]):
        subprocess.run([*git, *words], check=True)

    async def given_up() -> None:
        obtaining = asyncio.ensure_future(spaces.obtain(clone, "update"))
        async with asyncio.timeout(20):
            while not began.exists():
                await asyncio.sleep(0.01)
        obtaining.cancel()
        free.touch()
        await asyncio.wait([obtaining])
        assert obtaining.cancelled()

    asyncio.run(given_up())
    assert (shop / "z.slow").read_text() == "two\n"
    assert not (shop / ".git/index.lock").exists()


def test_a_landing_is_not_cut_off(slow: Path, tmp_path: Path) -> None:
    """Who gives up while the work is brought in waits for the end of that: the checkout is never half changed."""
    (tmp_path / "smudge").write_text(
        f"#!/bin/sh\n: >{tmp_path}/began\nuntil [ -e {tmp_path}/free ]; do sleep 0.02; done\nexec cat\n"
    )
    (tmp_path / "free").touch()
    spaces = Workspaces(LocalTransport())
    tree = Worktree.of("fleet-abc", str(slow), str(tmp_path / "state"))
    asyncio.run(spaces.make(tree))
    Path(tree.path, "y.slow").write_text("three\n")
    work = asyncio.run(spaces.commit(tree, "work"))
    for name in ("began", "free"):
        (tmp_path / name).unlink()

    async def given_up() -> None:
        landing = asyncio.ensure_future(spaces.merge(work, "land"))
        async with asyncio.timeout(20):
            while not (tmp_path / "began").exists():
                await asyncio.sleep(0.01)
        landing.cancel()
        (tmp_path / "free").touch()
        await asyncio.wait([landing])
        assert landing.cancelled()

    asyncio.run(given_up())
    assert (slow / "y.slow").read_text() == "three\n"
    assert not (slow / ".git/index.lock").exists()
