"""What a worktree leaves behind when it goes: the files that git ignores, and its commits, under each shell."""

from __future__ import annotations

import os
import stat
from pathlib import Path

import pytest

from fleet.errors import Conflict
from fleet.hosts.ignored import Leftover, sort_out
from fleet.hosts.workspace import Workspaces, Worktree
from tests.integration.test_workspaces import a_repository, git, tree_of, under_each_shell, wait  # noqa: F401  # fixtures


def kept_in(state: Path) -> list[str]:
    """The files that were put aside."""
    (files,) = (state / "dropped").glob("*/*/files")
    return sorted(str(each.relative_to(files)) for each in files.rglob("*") if not each.is_dir() or each.is_symlink())


def test_what_git_ignores_is_put_aside_and_comes_back(spaces: Workspaces, repo: Path, tmp_path: Path) -> None:
    """With its modes, links and odd names; what a program makes anew goes."""
    (repo / ".gitignore").write_text("ignored/\n*.log\n.env\nnode_modules/\ntarget/\nlink\n")
    git(repo, "commit", "-qam", "ignore")
    tree = tree_of(repo, tmp_path)
    wait(spaces.make(tree))
    at = Path(tree.path)
    mine = ("ignored/deep/notes.md", "sub/two\nlines ä.log", "-n.log", ".env")
    for name in (*mine, "web/node_modules/a/x.js", "target/x"):
        (at / name).parent.mkdir(parents=True, exist_ok=True)
        (at / name).write_text(name)
    (at / "target" / "CACHEDIR.TAG").touch()
    (at / ".env").chmod(0o600)
    (at / "link").symlink_to("/nowhere")
    (at / "web" / "app.js").write_text("code\n")
    wait(spaces.commit(tree, "work"))
    assert set(wait(spaces.standing(tree)).ignored) >= {".env", "ignored/", "target/", "web/node_modules/"}

    fates = sort_out(wait(spaces.ignored(tree)), None)
    assert {one.name for one in fates.gone} == {"target", "web/node_modules"}
    place = wait(spaces.drop(tree, fates.kept))
    assert not at.exists()
    assert kept_in(tmp_path / "state") == sorted([*mine, "link"])
    assert stat.S_IMODE(os.stat(place).st_mode) == 0o700

    wait(spaces.restore(tree))
    assert (at / "sub/two\nlines ä.log").read_text() == "sub/two\nlines ä.log"
    assert (at / "ignored/deep/notes.md").exists()
    assert os.readlink(at / "link") == "/nowhere"
    assert stat.S_IMODE((at / ".env").stat().st_mode) == 0o600
    assert list((tmp_path / "state" / "dropped").iterdir()) == []


def test_a_copied_file_is_kept_only_where_it_was_changed(spaces: Workspaces, repo: Path, tmp_path: Path) -> None:
    """The checkout has the others; also where they are in a directory that is ignored as a whole."""
    for name in ("same.env", "changed.env", "ignored/model", "ignored/same/x"):
        (repo / name).parent.mkdir(parents=True, exist_ok=True)
        (repo / name).write_text("1" * 9000)
    tree = tree_of(repo, tmp_path)
    wait(spaces.make(tree, ["same.env", "changed.env", "ignored/model", "ignored/same"]))
    Path(tree.path, "changed.env").write_text("2\n")
    Path(tree.path, "ignored", "notes").write_text("mine\n")
    found = wait(spaces.ignored(tree))
    assert {one.name for one in found} == {"changed.env", "ignored"}
    assert all(one.bytes < 18_000 for one in found), "a copy counts for nothing"
    wait(spaces.drop(tree, found))
    assert kept_in(tmp_path / "state") == ["changed.env", "ignored/notes"]
    assert (repo / "same.env").exists()


def test_nothing_goes_where_something_cannot_be_put_aside(spaces: Workspaces, repo: Path, tmp_path: Path) -> None:
    """The worktree stays as it was."""
    tree = tree_of(repo, tmp_path)
    wait(spaces.make(tree))
    Path(tree.path, "ignored").mkdir()
    Path(tree.path, "ignored", "b").write_text("2\n")
    (tmp_path / "state" / "dropped").write_text("in the way")
    with pytest.raises(Conflict, match="cannot be written"):
        wait(spaces.drop(tree, [Leftover(name="ignored", bytes=1)]))
    assert Path(tree.path, "ignored", "b").read_text() == "2\n"
    assert wait(spaces.standing(tree)).ignored == ("ignored/",)


def test_a_worktree_that_git_does_not_let_go_is_as_it_was(spaces: Workspaces, repo: Path, tmp_path: Path) -> None:
    """What had been put aside is back; let go later, it goes."""
    tree = tree_of(repo, tmp_path)
    wait(spaces.make(tree))
    Path(tree.path, "ignored").mkdir()
    Path(tree.path, "ignored", "b").write_text("2\n")
    git(repo, "worktree", "lock", tree.path)
    found = wait(spaces.ignored(tree))
    with pytest.raises(Conflict, match="lock"):
        wait(spaces.drop(tree, found))
    assert Path(tree.path, "ignored", "b").read_text() == "2\n"
    git(repo, "worktree", "unlock", tree.path)
    wait(spaces.drop(tree, found))
    assert kept_in(tmp_path / "state") == ["ignored/b"]


def test_a_worktree_that_ignores_nothing_leaves_no_trace(spaces: Workspaces, repo: Path, tmp_path: Path) -> None:
    """No directory of its own is made for nothing."""
    tree = tree_of(repo, tmp_path)
    wait(spaces.make(tree))
    assert wait(spaces.ignored(tree)) == ()
    assert wait(spaces.drop(tree)) == ""
    assert not (tmp_path / "state" / "dropped").exists()


def test_the_commits_of_each_worktree_that_a_task_had_are_kept(spaces: Workspaces, repo: Path, tmp_path: Path) -> None:
    """A task that begins again begins at what the checkout stands at by then, and does not bury what it did before."""
    tree = tree_of(repo, tmp_path)
    heads = []
    for text in ("first", "second"):
        wait(spaces.make(tree))
        assert wait(spaces.standing(tree)).base == git(repo, "rev-parse", "HEAD")
        Path(tree.path, "a.txt").write_text(text)
        wait(spaces.commit(tree, text))
        heads.append(wait(spaces.standing(tree)).head)
        wait(spaces.drop(tree))
        git(repo, "commit", "-q", "--allow-empty", "-m", "goes on")
    kept = git(repo, "for-each-ref", "--format=%(objectname)", "refs/fleet/dropped").split()
    assert sorted(kept) == sorted(heads)
    wait(spaces.restore(tree))
    assert Path(tree.path, "a.txt").read_text() == "second"


def test_what_was_put_aside_is_removed_after_its_time(spaces: Workspaces, repo: Path, tmp_path: Path) -> None:
    """Of one worktree, as much as is that old; what is newer, and what is another's, stays."""
    (repo / ".gitignore").write_text("*.log\n")
    git(repo, "commit", "-qam", "ignore")
    state = tmp_path / "state"
    places = []
    for task in ("old", "old", "new"):
        tree = Worktree.of(task, str(repo), str(state))
        wait(spaces.make(tree))
        (Path(tree.path) / "a.log").write_text(task)
        places.append(wait(spaces.drop(tree, sort_out(wait(spaces.ignored(tree)), None).kept)))
    then = (repo.stat().st_mtime - 8 * 86_400,) * 2
    for place in (places[0], places[2]):
        os.utime(Path(place, "names"), then)

    assert wait(spaces.aside(str(state), 9)) == ()
    assert sorted(wait(spaces.aside(str(state), 8))) == ["new", "old"]
    wait(spaces.clear_aside(str(state), "old", 8))
    assert [Path(place).exists() for place in places] == [False, True, True]
    wait(spaces.restore(Worktree.of("old", str(repo), str(state))))
    assert (state / "worktrees/old/a.log").read_text() == "old"
    wait(spaces.clear_aside(str(state), "new", 8))
    assert list((state / "dropped").iterdir()) == []
