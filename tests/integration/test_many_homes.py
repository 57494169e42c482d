"""Several homes with worktrees in one repository: each has its own, and they take turns in the checkout."""

from __future__ import annotations

import asyncio
import fcntl
from pathlib import Path

import pytest

from fleet.errors import UsageError
from fleet.hosts.workspace import Workspaces, Worktree
from tests.integration.test_workspaces import a_repository, git, under_each_shell, wait  # noqa: F401  # fixtures


def test_tasks_of_the_same_id_do_not_meet(spaces: Workspaces, repo: Path, tmp_path: Path) -> None:
    """Each has its own branch, beginning and commits; what one does to its worktree is nothing to the other."""
    one, other = (Worktree.of("fleet-abc", str(repo), str(tmp_path / name)) for name in ("one", "other"))
    for tree in (one, other):
        wait(spaces.make(tree))
        Path(tree.path, f"{Path(tree.path).parents[1].name}.txt").write_text("done\n")
        git(repo, "commit", "-q", "--allow-empty", "-m", "goes on")
    assert [wait(spaces.standing(tree)).branch for tree in (one, other)] == ["fleet/fleet-abc", "fleet/fleet-abc.2"]
    works = [wait(spaces.commit(tree, "work")) for tree in (one, other)]
    wait(spaces.drop(one))
    wait(spaces.unmake(one))
    assert wait(spaces.standing(other)).commits == 1
    wait(spaces.merge(works[1], "land"))
    wait(spaces.drop(other))
    assert wait(spaces.restore(one)) == "fleet/fleet-abc"
    assert Path(one.path, "one.txt").exists()
    assert not Path(other.path).exists()
    assert git(repo, "ls-files", "--", "*.txt").split() == ["a.txt", "other.txt", "sub/b.txt"]


def test_a_worktree_without_a_name_keeps_its_branch(spaces: Workspaces, repo: Path, tmp_path: Path) -> None:
    """As an earlier Fleet made it: one of another home does not take it."""
    one, other = (Worktree.of("fleet-abc", str(repo), str(tmp_path / name)) for name in ("one", "other"))
    wait(spaces.make(one))
    (repo / ".git/fleet/names/fleet-abc").unlink()
    wait(spaces.make(other))
    assert [wait(spaces.standing(tree)).branch for tree in (other, one)] == ["fleet/fleet-abc.2", "fleet/fleet-abc"]


def test_who_makes_all_worktrees_at_once_gets_a_name_each(spaces: Workspaces, repo: Path, tmp_path: Path) -> None:
    """No two of them share one."""
    trees = [Worktree.of("fleet-abc", str(repo), str(tmp_path / f"home {number}")) for number in range(4)]

    async def all_at_once() -> list[str]:
        await asyncio.gather(*(spaces.make(tree) for tree in trees))
        return [(await spaces.standing(tree)).branch for tree in trees]

    assert len(set(wait(all_at_once()))) == 4


def test_a_worktree_of_another_repository_is_not_worked_in(spaces: Workspaces, repo: Path, tmp_path: Path) -> None:
    """As when a task was given another directory after its first attempt."""
    wait(spaces.make(Worktree.of("fleet-abc", str(repo), str(tmp_path / "state"))))
    git(tmp_path, "clone", "-q", str(repo), str(tmp_path / "other"))
    with pytest.raises(UsageError, match="is no worktree of"):
        wait(spaces.make(Worktree.of("fleet-abc", str(tmp_path / "other"), str(tmp_path / "state"))))


@pytest.mark.parametrize("how", ["merge", "apply"])
def test_a_landing_waits_for_that_of_another_home(spaces: Workspaces, repo: Path, tmp_path: Path, how: str) -> None:
    """The lock is the checkout's."""
    tree = Worktree.of("fleet-abc", str(repo), str(tmp_path / "state"))
    wait(spaces.make(tree))
    Path(tree.path, "new.txt").write_text("fresh\n")
    work = wait(spaces.commit(tree, "work"))

    async def in_turn() -> str:
        with (repo / ".git/fleet-landing.lock").open("a") as held:
            fcntl.flock(held, fcntl.LOCK_EX)
            landing = asyncio.ensure_future(spaces.merge(work, "land") if how == "merge" else spaces.apply(work))
            done, _ = await asyncio.wait([landing], timeout=0.5)
            assert not done
            assert not (repo / "new.txt").exists()
        return (await landing).commit

    assert wait(in_turn()) == git(repo, "rev-parse", "HEAD")
    assert (repo / "new.txt").exists()


def test_landings_of_many_homes_at_once_are_all_there(spaces: Workspaces, repo: Path, tmp_path: Path) -> None:
    """No merge meets another half done."""
    trees = [Worktree.of("fleet-abc", str(repo), str(tmp_path / f"home{number}")) for number in range(4)]
    works = []
    for number, tree in enumerate(trees):
        wait(spaces.make(tree))
        Path(tree.path, f"{number}.txt").write_text("done\n")
        works.append(wait(spaces.commit(tree, f"work {number}")))

    async def all_at_once() -> None:
        await asyncio.gather(*(spaces.merge(work, "land") for work in works))

    wait(all_at_once())
    assert git(repo, "ls-files", "--", "?.txt").split() == ["0.txt", "1.txt", "2.txt", "3.txt", "a.txt"]
    assert git(repo, "status", "--porcelain") == ""
