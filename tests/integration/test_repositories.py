"""Repositories that tasks name: cloned where they are absent, brought forward where they are there, never lost."""

from __future__ import annotations

import asyncio
import subprocess
from pathlib import Path

import pytest
from msgspec.structs import replace

from fleet.errors import NotStarted, UsageError
from fleet.hosts.local import LocalTransport
from fleet.hosts.workspace import Repository, Workspaces
from fleet.model.states import TaskState
from fleet.model.terms import Terms
from tests.integration.test_workspaces import Under
from tests.support.inhouse import InHouse
from tests.support.session_host import SHELLS, shell_named


@pytest.fixture(autouse=True)
def as_ana(monkeypatch: pytest.MonkeyPatch) -> None:
    """Somebody whom git knows."""
    for name in ("AUTHOR", "COMMITTER"):
        monkeypatch.setenv(f"GIT_{name}_NAME", "Ana")
        monkeypatch.setenv(f"GIT_{name}_EMAIL", "ana@example.com")
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", "/dev/null")


@pytest.fixture(name="upstream")
def an_upstream(tmp_path: Path) -> Path:
    """A repository with one commit on each of two branches."""
    upstream = tmp_path / "up stream.git"
    upstream.mkdir()
    git(upstream, "init", "-q", "-b", "main")
    commit(upstream, "a.txt", "one\n")
    git(upstream, "branch", "next")
    return upstream


@pytest.fixture(name="clone")
def a_clone(upstream: Path, tmp_path: Path) -> Repository:
    """The clone that a task asks for."""
    path, temporary = str(tmp_path / "w" / "shop"), str(tmp_path / "state" / "clones" / "fleet-abc")
    return Repository(url=str(upstream), branch="main", path=path, temporary=temporary)


def git(directory: Path | str, *words: str) -> str:
    """What git says."""
    done = subprocess.run(["git", "-C", str(directory), *words], check=True, capture_output=True, text=True)
    return done.stdout.strip()


def commit(directory: Path | str, name: str, text: str) -> str:
    """A commit with one file; its id."""
    Path(directory, name).write_text(text)
    git(directory, "add", "-A")
    git(directory, "commit", "-qm", name)
    return git(directory, "rev-parse", "HEAD")


def obtain(clone: Repository, how: str = "update", shell: str = "dash") -> str:
    """What is answered."""
    return asyncio.run(Workspaces(Under(shell_named(shell))).obtain(clone, how))  # type: ignore[arg-type]


@pytest.mark.parametrize("shell", sorted(SHELLS))
def test_it_is_cloned_then_brought_forward(upstream: Path, clone: Repository, shell: str) -> None:
    """An absent directory becomes a clone; later the checkout follows its branch, and untracked files stay."""
    assert obtain(clone, shell=shell) == git(upstream, "rev-parse", "main")
    Path(clone.path, "mine.txt").write_text("not committed\n")
    newest = commit(upstream, "b.txt", "two\n")
    assert obtain(clone, shell=shell) == newest == git(clone.path, "rev-parse", "HEAD")
    assert Path(clone.path, "mine.txt").read_text() == "not committed\n"
    assert not Path(clone.temporary).exists()


def test_where_only_worktrees_are_made_the_checkout_stays(upstream: Path, clone: Repository) -> None:
    """The newest commit is fetched and told; what is checked out is not touched, as another may work there."""
    first = obtain(clone, "fetch")
    newest = commit(upstream, "b.txt", "two\n")
    assert obtain(clone, "keep") == first
    assert obtain(clone, "fetch") == newest
    assert git(clone.path, "rev-parse", "HEAD") == first


@pytest.mark.parametrize("how", ["fetch", "update"])
@pytest.mark.parametrize("there", [True, False])
def test_tasks_that_begin_at_once_share_a_clone(upstream: Path, clone: Repository, how: str, *, there: bool) -> None:
    """Each gets the newest commit, though git lets only one of them write it down at a time."""
    if there:
        obtain(clone)
    newest = commit(upstream, "b.txt", "two\n")
    clones = [replace(clone, temporary=f"{clone.temporary}{number}") for number in range(6)]

    async def all_at_once() -> list[str]:
        spaces = Workspaces(Under(shell_named("dash")))
        return await asyncio.gather(*(spaces.obtain(each, how) for each in clones))  # type: ignore[arg-type]

    assert asyncio.run(all_at_once()) == [newest] * 6
    assert git(clone.path, "status", "--porcelain") == ""
    assert not any(Path(each.temporary).exists() for each in clones)


def test_another_branch_is_checked_out_only_where_nothing_is_lost(clone: Repository) -> None:
    """A clean checkout is switched; one with uncommitted work is refused, and stays as it is."""
    obtain(clone)
    following = Repository(url=clone.url, branch="next", path=clone.path, temporary=clone.temporary)
    obtain(following)
    assert git(clone.path, "branch", "--show-current") == "next"
    Path(clone.path, "a.txt").write_text("at work\n")
    with pytest.raises(UsageError, match="uncommitted work"):
        obtain(clone)
    assert Path(clone.path, "a.txt").read_text() == "at work\n"


def test_commits_that_upstream_has_not_are_kept(upstream: Path, clone: Repository) -> None:
    """A clone that is ahead is fine; one that has gone another way is refused, and a person is told to merge."""
    obtain(clone)
    ahead = commit(clone.path, "mine.txt", "mine\n")
    obtain(clone)
    commit(upstream, "theirs.txt", "theirs\n")
    with pytest.raises(UsageError, match=r"commits on main that .* has not"):
        obtain(clone)
    assert git(clone.path, "rev-parse", "HEAD") == ahead


def test_uncommitted_work_in_the_way_is_kept(upstream: Path, clone: Repository) -> None:
    """A file that was changed here and upstream is not overwritten."""
    obtain(clone)
    Path(clone.path, "a.txt").write_text("at work\n")
    commit(upstream, "a.txt", "theirs\n")
    with pytest.raises(UsageError, match=r"cannot be brought forward: (.|\n)*a\.txt"):
        obtain(clone)
    assert Path(clone.path, "a.txt").read_text() == "at work\n"


def test_what_is_something_else_is_refused(upstream: Path, clone: Repository, tmp_path: Path) -> None:
    """A directory with files, a clone of another repository, a branch that is not there: each is named."""
    other = Repository(url=str(upstream), branch="absent", path=clone.path, temporary=clone.temporary)
    with pytest.raises(UsageError, match="there is no branch absent"):
        obtain(other)
    Path(clone.path).mkdir(parents=True)
    Path(clone.path, "file").touch()
    with pytest.raises(UsageError, match="is there, and is no clone of"):
        obtain(clone)
    (tmp_path / "other").mkdir()
    git(tmp_path / "other", "init", "-q")
    git(tmp_path / "other", "remote", "add", "origin", "/elsewhere")
    elsewhere = Repository(url=clone.url, branch="", path=str(tmp_path / "other"), temporary=clone.temporary)
    with pytest.raises(UsageError, match="is a clone of /elsewhere, not of"):
        obtain(elsewhere)


def test_one_that_cannot_be_reached_is_told_and_leaves_nothing(clone: Repository, tmp_path: Path) -> None:
    """It may be there later: nothing was started, nothing was made."""
    gone = Repository(url=str(tmp_path / "gone"), branch="", path=clone.path, temporary=clone.temporary)
    with pytest.raises(NotStarted, match=r"cannot get .*gone.*does not exist"):
        obtain(gone)
    assert not Path(clone.path).exists()


def test_two_that_clone_at_once(clone: Repository, tmp_path: Path) -> None:
    """Both find a whole clone, and nothing is left inside of it."""
    second = Repository(url=clone.url, branch="main", path=clone.path, temporary=str(tmp_path / "state" / "b"))

    async def both() -> tuple[str, str]:
        spaces = Workspaces(LocalTransport())
        return await asyncio.gather(spaces.obtain(clone, "fetch"), spaces.obtain(second, "fetch"))

    assert len(set(asyncio.run(both()))) == 1
    assert git(clone.path, "status", "--porcelain") == ""


def test_a_task_whose_repository_is_out_of_reach_waits_and_uses_no_attempt(tmp_path: Path) -> None:
    """It is tried again by itself, and says what git says; once the repository is there the task goes on."""
    inside = InHouse(tmp_path, max_attempts=1)
    upstream, made = tmp_path / "later", tmp_path / "made"
    made.mkdir()
    git(made, "init", "-q", "-b", "main")
    commit(made, "a.txt", "here now\n")
    terms = Terms(repository=str(upstream))
    uid = inside.add(command="cat a.txt", cwd=str(tmp_path / "clone"), terms=terms)

    async def meanwhile() -> None:
        async with inside.supervising():
            await inside.until(lambda: "cannot get" in inside.task(uid).reason, "the reason")
            made.rename(upstream)
            await inside.until_state(uid, TaskState.COMPLETED)

    asyncio.run(meanwhile())
    assert [said["text"] for said in inside.said(uid)] == ["here now"]
    inside.close()
