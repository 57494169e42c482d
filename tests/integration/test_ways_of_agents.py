"""What agents do to a worktree besides work in it: nothing of it is lost, and what is told of it is so."""

from __future__ import annotations

from pathlib import Path

import pytest

from fleet.errors import Conflict
from fleet.hosts.workspace import Workspaces, Worktree
from tests.integration.test_workspaces import a_repository, git, tree_of, under_each_shell, wait  # noqa: F401  # fixtures

FROM_FILES = ("-c", "protocol.file.allow=always", "submodule", "--quiet")


def with_submodule(spaces: Workspaces, repo: Path, tmp_path: Path) -> tuple[Worktree, Path]:
    """A worktree whose submodule an agent has fetched, and the place of that."""
    git(tmp_path, "clone", "-q", str(repo), str(tmp_path / "other"))
    git(repo, *FROM_FILES, "add", str(tmp_path / "other"), "part")
    git(repo, "commit", "-qm", "part")
    tree = tree_of(repo, tmp_path)
    wait(spaces.make(tree))
    git(Path(tree.path), *FROM_FILES, "update", "--init")
    return tree, Path(tree.path, "part")


def test_commits_in_a_submodule_are_brought_to_that_of_the_checkout(
    spaces: Workspaces, repo: Path, tmp_path: Path
) -> None:
    """They are nowhere else, and would be gone with the worktree. While work in it is not committed, nothing is."""
    tree, part = with_submodule(spaces, repo, tmp_path)
    (part / "a.txt").write_text("deep\n")
    with pytest.raises(Conflict, match="uncommitted work in submodule part"):
        wait(spaces.commit(tree, "work"))
    git(part, "commit", "-qam", "deep")
    work = wait(spaces.commit(tree, "work"))
    assert work.remarks == ("the commits of submodule part are in that of the checkout: git submodule update",)
    with pytest.raises(Conflict, match="it changes submodules, which only a merge brings: part"):
        wait(spaces.apply(work))
    wait(spaces.merge(work, "land"))
    wait(spaces.drop(tree))
    git(repo, "submodule", "--quiet", "update")
    assert (repo / "part" / "a.txt").read_text() == "deep\n"


def test_commits_in_a_submodule_that_the_checkout_has_not_keep_the_worktree(
    spaces: Workspaces, repo: Path, tmp_path: Path
) -> None:
    """There is no place to bring them to."""
    tree, part = with_submodule(spaces, repo, tmp_path)
    (repo / ".git/modules/part").rename(tmp_path / "away")
    git(part, "commit", "-q", "--allow-empty", "-m", "deep")
    git(Path(tree.path), "commit", "-qam", "work")
    for asked in (spaces.commit(tree, "work"), spaces.drop(tree)):
        with pytest.raises(Conflict, match="submodule part has commits that are nowhere else"):
            wait(asked)
    assert part.exists()


def test_what_is_not_known_in_a_submodule_is_put_aside(spaces: Workspaces, repo: Path, tmp_path: Path) -> None:
    """Where the project says that it is no work, as what is built in it."""
    tree, part = with_submodule(spaces, repo, tmp_path)
    git(Path(tree.path), "config", "--file", ".gitmodules", "submodule.part.ignore", "untracked")
    (part / "ignored").mkdir()
    (part / "ignored" / "x").write_text("1\n")
    (part / "built.o").write_text("2\n")
    wait(spaces.commit(tree, "work"))
    found = wait(spaces.ignored(tree))
    assert {one.name for one in found} == {"part/ignored", "part/built.o"}
    place = wait(spaces.drop(tree, found))
    assert Path(place, "files/part/built.o").read_text() == "2\n"


def test_changes_that_git_was_told_not_to_see_are_work(spaces: Workspaces, repo: Path, tmp_path: Path) -> None:
    """They keep a worktree from being dropped, and are landed."""
    tree = tree_of(repo, tmp_path)
    wait(spaces.make(tree))
    for flag, name in (("--assume-unchanged", "a.txt"), ("--skip-worktree", "sub/b.txt")):
        Path(tree.path, name).write_text("hidden\n")
        git(Path(tree.path), "update-index", flag, name)
    with pytest.raises(Conflict, match=r"uncommitted work: a\.txt sub/b\.txt"):
        wait(spaces.drop(tree))
    wait(spaces.merge(wait(spaces.commit(tree, "work")), "land"))
    assert (repo / "a.txt").read_text() == (repo / "sub" / "b.txt").read_text() == "hidden\n"


def test_files_that_a_sparse_checkout_leaves_out_are_not_deleted(
    spaces: Workspaces, repo: Path, tmp_path: Path
) -> None:
    """That a file is not there is no change of it."""
    tree = tree_of(repo, tmp_path)
    wait(spaces.make(tree))
    git(Path(tree.path), "sparse-checkout", "set", "--no-cone", "/a.txt")
    assert not Path(tree.path, "sub").exists()
    Path(tree.path, "a.txt").write_text("changed\n")
    wait(spaces.merge(wait(spaces.commit(tree, "work")), "land"))
    assert (repo / "sub" / "b.txt").exists()


def test_marks_of_a_conflict_and_a_stash_are_told(spaces: Workspaces, repo: Path, tmp_path: Path) -> None:
    """Marks that were taken away are not."""
    (repo / "solved.txt").write_text("<<<<<<< HEAD\n")
    git(repo, "add", "-A")
    git(repo, "commit", "-qm", "marks")
    tree = tree_of(repo, tmp_path)
    wait(spaces.make(tree))
    Path(tree.path, "a.txt").write_text("not now\n")
    git(Path(tree.path), "stash", "-q")
    Path(tree.path, "sub", "b.txt").write_text("<<<<<<< HEAD\none\n=======\ntwo\n>>>>>>> side\n")
    Path(tree.path, "solved.txt").write_text("fine\n")
    marks, stash = wait(spaces.commit(tree, "work")).remarks
    assert marks == "the marks of a conflict are in sub/b.txt"
    assert stash.startswith("it left work in git stash, which was not landed: WIP on fleet/fleet-abc: ")


def test_a_worktree_that_stands_nowhere_is_not_taken_for_none(spaces: Workspaces, repo: Path, tmp_path: Path) -> None:
    """It is told what is amiss and how to mend it; nothing is dropped, and mended it is as it was."""
    tree = tree_of(repo, tmp_path)
    wait(spaces.make(tree))
    at = Path(tree.path)
    (at / "new.txt").write_text("fresh\n")
    head = git(at, "rev-parse", "HEAD")
    git(at, "update-ref", "-d", "refs/heads/fleet/fleet-abc")
    for asked in (spaces.standing(tree), spaces.drop(tree)):
        with pytest.raises(Conflict, match="nothing is checked out"):
            wait(asked)
    git(at, "update-ref", "refs/heads/fleet/fleet-abc", head)
    (at / ".git").unlink()
    for asked in (spaces.standing(tree), spaces.drop(tree), spaces.restore(tree)):
        with pytest.raises(Conflict):
            wait(asked)
    with pytest.raises(Conflict, match=r"has lost its \.git"):
        wait(spaces.diff(tree))
    git(repo, "worktree", "repair")
    assert wait(spaces.standing(tree)).dirty == ("new.txt",)


def test_a_repository_that_was_moved_is_told(spaces: Workspaces, repo: Path, tmp_path: Path) -> None:
    """With what mends it; a worktree is not taken for none."""
    tree = tree_of(repo, tmp_path)
    wait(spaces.make(tree))
    moved = repo.rename(tmp_path / "moved")
    for asked in (spaces.standing(tree), spaces.drop(tree)):
        with pytest.raises(Conflict, match="if it was moved, `git worktree repair"):
            wait(asked)
    git(moved, "worktree", "repair", tree.path)
    assert wait(spaces.standing(tree)).commits == 0


def test_a_file_that_a_filter_refuses_is_told(spaces: Workspaces, repo: Path, tmp_path: Path) -> None:
    """As where large files are kept elsewhere, and the program for that is missing."""
    (repo / ".gitattributes").write_text("*.bin filter=large\n")
    for words in (("add", "-A"), ("commit", "-qm", "large"), ("config", "filter.large.required", "true")):
        git(repo, *words)
    git(repo, "config", "filter.large.clean", "no-such-program")
    tree = tree_of(repo, tmp_path)
    wait(spaces.make(tree))
    Path(tree.path, "new.bin").write_text("large\n")
    for asked in (spaces.diff(tree), spaces.commit(tree, "work")):
        with pytest.raises(Conflict, match="clean filter 'large' failed"):
            wait(asked)
    assert Path(tree.path, "new.bin").exists()


def test_how_a_person_likes_their_differences_does_not_matter(spaces: Workspaces, repo: Path, tmp_path: Path) -> None:
    """Colours, prefixes, programs of their own, what is done to blanks: the files are what the agent made."""
    for name, value in (
        ("diff.noprefix", "true"),
        ("color.ui", "always"),
        ("diff.external", "/bin/false"),
        ("apply.whitespace", "fix"),
    ):
        git(repo, "config", name, value)
    tree = tree_of(repo, tmp_path)
    wait(spaces.make(tree))
    Path(tree.path, "a.txt").write_text("one\nblanks   \n")
    assert "\n+blanks   \n" in wait(spaces.diff(tree))
    wait(spaces.apply(wait(spaces.commit(tree, "work"))))
    assert (repo / "a.txt").read_text() == "one\nblanks   \n"
