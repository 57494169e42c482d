"""Workspaces: what changed in one, and the worktrees of tasks, under each shell, with the real git."""

from __future__ import annotations

import asyncio
import shutil
import subprocess
from collections.abc import Coroutine, Sequence
from pathlib import Path
from typing import Any, TypeVar

import pytest

from fleet.errors import Conflict, NotFound, UsageError
from fleet.hosts.local import LocalTransport
from fleet.hosts.transport import Completed
from fleet.hosts.workspace import SETUP_FAILED, Workspaces, Worktree, outside, with_setup
from tests.support.session_host import SHELLS, shell_named

T = TypeVar("T")


class Under(LocalTransport):
    """This machine, where `sh` is a certain shell."""

    def __init__(self, shell: tuple[str, ...]) -> None:
        super().__init__()
        self._shell = shell

    async def run(self, argv: Sequence[str], *, stdin: bytes = b"") -> Completed:
        assert argv[0] == "sh"
        return await super().run([*self._shell, *argv[1:]], stdin=stdin)


@pytest.fixture(name="spaces", params=sorted(SHELLS))
def under_each_shell(request: pytest.FixtureRequest) -> Workspaces:
    """The workspaces of this machine, under each shell in turn."""
    return Workspaces(Under(shell_named(request.param)))


@pytest.fixture(name="repo")
def a_repository(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A repository with one commit."""
    for name in ("AUTHOR", "COMMITTER"):
        monkeypatch.setenv(f"GIT_{name}_NAME", "Ana")
        monkeypatch.setenv(f"GIT_{name}_EMAIL", "ana@example.com")
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", "/dev/null")
    repo = tmp_path / "a repo"
    (repo / "sub").mkdir(parents=True)
    git(repo, "init", "-q", "-b", "main")
    (repo / "a.txt").write_text("one\n")
    (repo / "sub" / "b.txt").write_text("two\n")
    (repo / ".gitignore").write_text("ignored/\n")
    git(repo, "add", "-A")
    git(repo, "commit", "-qm", "first")
    return repo


def git(directory: Path, *words: str) -> str:
    """What git says."""
    done = subprocess.run(["git", "-C", str(directory), *words], check=True, capture_output=True, text=True)
    return done.stdout.strip()


def wait(asked: Coroutine[Any, Any, T]) -> T:
    """The answer."""
    return asyncio.run(asked)


def tree_of(repo: Path, tmp_path: Path) -> Worktree:
    """The worktree of a task."""
    return Worktree.of("fleet-abc", str(repo), str(tmp_path / "state"))


def test_a_comparison_names_every_file_that_was_made_changed_or_removed(
    spaces: Workspaces, repo: Path, tmp_path: Path
) -> None:
    """Ignored files, links, odd names and files with their old time count; git's own and Fleet's files do not."""
    (repo / "ignored").mkdir()
    (repo / "ignored" / "cache").write_text("x")
    home = repo / ".fleet"
    home.mkdir()
    mark = str(tmp_path / "mark")
    wait(spaces.mark(str(repo), str(home), mark))
    assert wait(spaces.changes(str(repo), str(home), mark)) == ()

    (repo / "a.txt").write_text("ONE\n")
    (repo / "sub" / "b.txt").unlink()
    (repo / "ignored" / "cache").write_text("y")
    (repo / "ä _ .. -n.txt").write_text("odd")
    (repo / "link").symlink_to("a.txt")
    (home / "fleet.db").write_text("ours")
    git(repo, "tag", "theirs")
    changed = wait(spaces.changes(str(repo), str(home), mark))
    odd = "ä _ .. -n.txt"
    assert set(changed) == {"a.txt", "sub/b.txt", "ignored/cache", odd, "link"}


def test_a_workspace_that_is_not_there_cannot_be_compared(spaces: Workspaces, tmp_path: Path) -> None:
    """It is refused, before anything runs in it."""
    with pytest.raises(UsageError, match="no directory"):
        wait(spaces.mark(str(tmp_path / "gone"), "/nowhere", str(tmp_path / "mark")))


def test_a_worktree_is_made_once_with_the_files_that_were_asked_for(
    spaces: Workspaces, repo: Path, tmp_path: Path
) -> None:
    """Asked again, the work in it is still there; the place in it is that of the source; the checkout is untouched."""
    (repo / "local.env").write_text("A=1\n")
    tree = tree_of(repo / "sub", tmp_path)
    made = wait(spaces.make(tree, ["local.env"]))
    assert made.cwd == f"{tree.path}/sub"
    Path(made.cwd, "b.txt").write_text("changed\n")
    assert wait(spaces.make(tree, ["local.env"])) == made
    assert Path(made.cwd, "b.txt").read_text() == "changed\n"
    assert Path(tree.path, "local.env").read_text() == "A=1\n"
    assert (repo / "sub" / "b.txt").read_text() == "two\n"
    standing = wait(spaces.standing(tree))
    assert (standing.commits, standing.dirty) == (0, ("sub/b.txt",)), "a copied file is not work"


def test_a_worktree_that_somebody_is_just_making_is_left_to_them(
    spaces: Workspaces, repo: Path, tmp_path: Path
) -> None:
    """Git's record of it has no content for a moment: that is no reason to take it away."""
    begun = repo / ".git" / "worktrees" / "fleet-xyz"
    begun.mkdir(parents=True)
    wait(spaces.make(tree_of(repo, tmp_path)))
    assert begun.is_dir()


def test_a_worktree_is_made_though_git_prunes_its_record_meanwhile(
    spaces: Workspaces, repo: Path, tmp_path: Path
) -> None:
    """As it does of its own accord when it collects garbage."""
    pruning = subprocess.Popen(["sh", "-c", "while git worktree prune; do sleep 0.003; done"], cwd=repo)
    try:
        for number in range(12):
            tree = Worktree.of(f"fleet-{number}", str(repo), str(tmp_path / "state"))
            made = wait(spaces.make(tree))
            assert (Path(made.cwd) / "a.txt").read_text() == "one\n"
    finally:
        pruning.kill()
        pruning.wait(10)


def test_worktrees_of_one_repository_are_made_and_dropped_at_once(
    spaces: Workspaces, repo: Path, tmp_path: Path
) -> None:
    """Git reads the records of all of them, also of those that are half made."""
    trees = [Worktree.of(f"fleet-{number}", str(repo), str(tmp_path / "state")) for number in range(8)]

    async def all_at_once() -> list[str]:
        made = await asyncio.gather(*(spaces.make(tree) for tree in trees))
        await asyncio.gather(*(spaces.drop(tree) for tree in trees))
        return [each.cwd for each in made]

    assert wait(all_at_once()) == [tree.path for tree in trees]
    assert git(repo, "worktree", "list", "--porcelain").count("worktree ") == 1
    assert git(repo, "branch", "--list", "fleet/*") == ""


@pytest.mark.parametrize("gone", ["fleet-abc", "."])
def test_a_worktree_that_was_removed_by_hand_is_made_anew(
    spaces: Workspaces, repo: Path, tmp_path: Path, gone: str
) -> None:
    """What its branch had stays."""
    tree = tree_of(repo, tmp_path)
    wait(spaces.make(tree))
    git(Path(tree.path), "commit", "-q", "--allow-empty", "-m", "work")
    head = git(Path(tree.path), "rev-parse", "HEAD")
    shutil.rmtree(tmp_path / "state" / "worktrees" / gone)
    wait(spaces.make(tree))
    assert git(Path(tree.path), "rev-parse", "HEAD") == head
    assert sorted(each.name for each in (repo / ".git" / "worktrees").iterdir()) == ["fleet-abc"]


def test_a_directory_is_copied_whole_though_an_earlier_copy_was_cut_off(
    spaces: Workspaces, repo: Path, tmp_path: Path
) -> None:
    """What is left of a copy that was cut off is no copy; a directory may be named with a slash; no trace is left."""
    (repo / "cache").mkdir()
    (repo / "cache/a").write_text("1\n")
    tree = tree_of(repo, tmp_path)
    wait(spaces.make(tree))
    Path(tree.path, "cache.fleet-part").mkdir()
    wait(spaces.make(tree, ["cache/"]))
    assert Path(tree.path, "cache/a").read_text() == "1\n"
    assert wait(spaces.standing(tree)).dirty == ()
    assert not list((repo / ".git").glob("fleet-*"))


def test_a_worktree_needs_a_repository_with_a_commit(spaces: Workspaces, tmp_path: Path) -> None:
    """Neither a plain directory nor an empty repository will do, nor a file to copy that is not there."""
    plain = tmp_path / "plain"
    plain.mkdir()
    with pytest.raises(UsageError, match="in no git repository"):
        wait(spaces.make(tree_of(plain, tmp_path)))
    git(plain, "init", "-q")
    with pytest.raises(UsageError, match="no commit yet"):
        wait(spaces.make(tree_of(plain, tmp_path)))


def test_the_difference_has_what_is_committed_and_what_is_not(spaces: Workspaces, repo: Path, tmp_path: Path) -> None:
    """New files are in it too, and looking at it changes nothing."""
    tree = tree_of(repo, tmp_path)
    wait(spaces.make(tree))
    Path(tree.path, "a.txt").write_text("committed\n")
    git(Path(tree.path), "commit", "-qam", "work")
    Path(tree.path, "new.txt").write_text("fresh\n")
    diff = wait(spaces.diff(tree))
    assert "+committed" in diff
    assert "+fresh" in diff
    assert wait(spaces.standing(tree)).dirty == ("new.txt",)


def test_work_is_merged_into_the_checkout(spaces: Workspaces, repo: Path, tmp_path: Path) -> None:
    """What was not committed is committed first; said twice, it is done once."""
    tree = tree_of(repo, tmp_path)
    wait(spaces.make(tree))
    Path(tree.path, "new.txt").write_text("fresh\n")
    work = wait(spaces.commit(tree, "fleet-abc: new"))
    landed = wait(spaces.merge(work, "land fleet-abc"))
    assert landed == (git(repo, "rev-parse", "HEAD"), "main")
    assert (repo / "new.txt").read_text() == "fresh\n"
    assert wait(spaces.merge(work, "land fleet-abc")) == landed


def test_work_is_merged_once_another_git_lets_go_of_the_checkout(
    spaces: Workspaces, repo: Path, tmp_path: Path
) -> None:
    """As an editor holds it for a moment to look at it."""
    tree = tree_of(repo, tmp_path)
    wait(spaces.make(tree))
    Path(tree.path, "new.txt").write_text("fresh\n")
    work = wait(spaces.commit(tree, "fleet-abc: new"))
    held = repo / ".git" / "index.lock"
    held.touch()

    async def let_go_later() -> str:
        asyncio.get_running_loop().call_later(0.5, held.unlink)
        return (await spaces.merge(work, "land fleet-abc")).commit

    assert wait(let_go_later()) == git(repo, "rev-parse", "HEAD")


@pytest.mark.parametrize("how", ["merge", "apply"])
def test_a_conflict_is_told_and_changes_nothing(spaces: Workspaces, repo: Path, tmp_path: Path, how: str) -> None:
    """The file is named, and the checkout is as it was."""
    tree = tree_of(repo, tmp_path)
    wait(spaces.make(tree))
    Path(tree.path, "a.txt").write_text("theirs\n")
    work = wait(spaces.commit(tree, "fleet-abc"))
    (repo / "a.txt").write_text("ours\n")
    git(repo, "commit", "-qam", "ours")
    before = git(repo, "rev-parse", "HEAD")
    with pytest.raises(Conflict, match=r"a\.txt"):
        wait(spaces.merge(work, "land") if how == "merge" else spaces.apply(work))
    assert git(repo, "rev-parse", "HEAD") == before
    assert (repo / "a.txt").read_text() == "ours\n"
    assert git(repo, "status", "--porcelain") == ""


@pytest.mark.parametrize(
    "wander", [("checkout", "-qb", "mine"), ("checkout", "-q", "--detach"), ("branch", "-m", "mine")]
)
def test_work_that_an_agent_did_on_another_branch_is_merged(
    spaces: Workspaces, repo: Path, tmp_path: Path, wander: tuple[str, ...]
) -> None:
    """What it left checked out is its work, whatever that is called."""
    tree = tree_of(repo, tmp_path)
    wait(spaces.make(tree))
    at = Path(tree.path)
    for name, words in (("b.txt", ()), ("c.txt", wander), ("d.txt", ())):
        if words:
            git(at, *words)
        (at / name).write_text(f"{name}\n")
        if name != "d.txt":  # the last is not committed
            git(at, "add", "-A")
            git(at, "commit", "-qm", name)
    work = wait(spaces.commit(tree, "fleet-abc"))
    wait(spaces.merge(work, "land"))
    wait(spaces.drop(tree))
    assert git(repo, "ls-files", "--", "*.txt").split() == ["a.txt", "b.txt", "c.txt", "d.txt", "sub/b.txt"]


def test_work_on_two_branches_is_neither_landed_nor_dropped(spaces: Workspaces, repo: Path, tmp_path: Path) -> None:
    """Only a person can say which of them counts."""
    tree = tree_of(repo, tmp_path)
    wait(spaces.make(tree))
    git(Path(tree.path), "commit", "-q", "--allow-empty", "-m", "here")
    git(Path(tree.path), "checkout", "-qb", "mine", "main")
    git(Path(tree.path), "commit", "-q", "--allow-empty", "-m", "there")
    for asked in (spaces.commit(tree, "fleet-abc"), spaces.drop(tree)):
        with pytest.raises(Conflict, match="fleet/fleet-abc has commits that what is checked out"):
            wait(asked)
    assert Path(tree.path, "a.txt").exists()


@pytest.mark.parametrize("known", ["not at all", "as a commit", "in the branch"])
def test_a_repository_that_an_agent_made_within_is_not_lost(
    spaces: Workspaces, repo: Path, tmp_path: Path, known: str
) -> None:
    """Git knows no file in it: it is neither landed, as if that were all, nor removed with the worktree."""
    tree = tree_of(repo, tmp_path)
    wait(spaces.make(tree))
    inner = Path(tree.path, "an app")
    inner.mkdir()
    git(inner, "init", "-q")
    (inner / "main.py").write_text("code\n")
    if known != "not at all":
        git(inner, "add", "-A")
        git(inner, "commit", "-qm", "app")
    if known == "in the branch":
        git(Path(tree.path), "add", "-A")
        git(Path(tree.path), "commit", "-qm", "work")
    with pytest.raises(Conflict, match="an app/"):
        wait(spaces.commit(tree, "fleet-abc"))
    with pytest.raises(Conflict):
        wait(spaces.drop(tree))
    assert (inner / "main.py").read_text() == "code\n"


def test_a_submodule_is_no_repository_of_its_own(spaces: Workspaces, repo: Path, tmp_path: Path) -> None:
    """Its commits are where it came from."""
    other = tmp_path / "other"
    git(tmp_path, "clone", "-q", str(repo), str(other))
    tree = tree_of(repo, tmp_path)
    wait(spaces.make(tree))
    git(Path(tree.path), "-c", "protocol.file.allow=always", "submodule", "--quiet", "add", str(other), "part")
    work = wait(spaces.commit(tree, "fleet-abc"))
    wait(spaces.merge(work, "land"))
    wait(spaces.drop(tree))
    assert git(repo, "ls-files", "--stage", "part").startswith("160000 ")


def test_a_worktree_in_the_middle_of_a_merge_is_not_committed(spaces: Workspaces, repo: Path, tmp_path: Path) -> None:
    """The marks of a conflict are no work."""
    tree = tree_of(repo, tmp_path)
    wait(spaces.make(tree))
    at = Path(tree.path)
    git(at, "branch", "side")
    (at / "a.txt").write_text("ours\n")
    git(at, "commit", "-qam", "ours")
    git(at, "checkout", "-q", "side")
    (at / "a.txt").write_text("theirs\n")
    git(at, "commit", "-qam", "theirs")
    with pytest.raises(subprocess.CalledProcessError):
        git(at, "merge", "fleet/fleet-abc")
    with pytest.raises(Conflict, match="in the middle of something else"):
        wait(spaces.commit(tree, "fleet-abc"))


@pytest.mark.parametrize("how", ["merge", "apply"])
def test_what_a_person_is_merging_is_left_to_them(spaces: Workspaces, repo: Path, tmp_path: Path, how: str) -> None:
    """Half resolved, and not thrown away because somebody lands a task."""
    tree = tree_of(repo, tmp_path)
    wait(spaces.make(tree))
    Path(tree.path, "new.txt").write_text("fresh\n")
    work = wait(spaces.commit(tree, "fleet-abc: new"))
    for branch, text in (("side", "theirs\n"), ("main", "ours\n")):
        git(repo, "checkout", "-q", "-B", branch, "main")
        (repo / "a.txt").write_text(text)
        git(repo, "commit", "-qam", branch)
    with pytest.raises(subprocess.CalledProcessError):
        git(repo, "merge", "side")
    (repo / "a.txt").write_text("resolved\n")
    with pytest.raises(Conflict, match="in the middle of something else"):
        wait(spaces.merge(work, "land") if how == "merge" else spaces.apply(work))
    assert (repo / "a.txt").read_text() == "resolved\n"
    assert git(repo, "rev-parse", "MERGE_HEAD") == git(repo, "rev-parse", "side")


def test_uncommitted_work_beside_a_conflict_is_not_touched(spaces: Workspaces, repo: Path, tmp_path: Path) -> None:
    """The conflict is found before any file is."""
    tree = tree_of(repo, tmp_path)
    wait(spaces.make(tree))
    Path(tree.path, "a.txt").write_text("theirs\n")
    work = wait(spaces.commit(tree, "fleet-abc: new"))
    (repo / "a.txt").write_text("ours\n")
    git(repo, "commit", "-qam", "ours")
    (repo / "sub" / "b.txt").write_text("at work\n")
    before = (repo / "a.txt").stat().st_ino
    with pytest.raises(Conflict, match=r"conflicts in: a\.txt"):
        wait(spaces.merge(work, "land"))
    assert (repo / "sub" / "b.txt").read_text() == "at work\n"
    assert (repo / "a.txt").stat().st_ino == before


def test_a_difference_can_be_applied_without_a_commit(spaces: Workspaces, repo: Path, tmp_path: Path) -> None:
    """The files change, the history does not."""
    tree = tree_of(repo, tmp_path)
    wait(spaces.make(tree))
    Path(tree.path, "a.txt").write_text("changed\n")
    work = wait(spaces.commit(tree, "fleet-abc"))
    before = git(repo, "rev-parse", "HEAD")
    wait(spaces.apply(work))
    assert (repo / "a.txt").read_text() == "changed\n"
    assert git(repo, "rev-parse", "HEAD") == before


def test_dropping_refuses_uncommitted_work_and_can_be_undone(spaces: Workspaces, repo: Path, tmp_path: Path) -> None:
    """Committed work comes back whole; a worktree that is gone is told of."""
    tree = tree_of(repo, tmp_path)
    wait(spaces.make(tree))
    Path(tree.path, "new.txt").write_text("fresh\n")
    with pytest.raises(Conflict, match=r"uncommitted work: new\.txt"):
        wait(spaces.drop(tree))
    wait(spaces.commit(tree, "fleet-abc"))
    wait(spaces.drop(tree))
    assert not Path(tree.path).exists()
    assert git(repo, "branch", "--list", "fleet/*") == ""
    with pytest.raises(NotFound, match="no worktree"):
        wait(spaces.standing(tree))
    wait(spaces.restore(tree))
    assert Path(tree.path, "new.txt").read_text() == "fresh\n"
    assert wait(spaces.standing(tree)).commits == 1


def test_a_dropped_worktree_is_not_brought_back_over_another_branch(
    spaces: Workspaces, repo: Path, tmp_path: Path
) -> None:
    """A branch of its name that has other commits stays, and so does what was dropped."""
    tree = tree_of(repo, tmp_path)
    wait(spaces.make(tree))
    git(Path(tree.path), "commit", "-q", "--allow-empty", "-m", "work")
    wait(spaces.drop(tree))
    dropped = git(repo, "rev-parse", "refs/fleet/dropped/fleet-abc")
    git(repo, "branch", "fleet/fleet-abc")
    with pytest.raises(Conflict, match="there is a branch fleet/fleet-abc already"):
        wait(spaces.restore(tree))
    assert git(repo, "rev-parse", "refs/fleet/dropped/fleet-abc") == dropped


def test_a_setup_runs_once_before_the_worker_and_its_failure_ends_the_session(tmp_path: Path) -> None:
    """What it says is not taken for the worker's words."""
    ready = tmp_path / "ready"
    argv = with_setup(["echo", "the worker"], "echo setting up; echo x >>ran", str(ready))
    for _ in range(2):
        done = subprocess.run(argv, cwd=tmp_path, capture_output=True, text=True, check=True)
        assert done.stdout == "the worker\n"
    assert (tmp_path / "ran").read_text() == "x\n"
    broken = with_setup(["echo", "the worker"], "exit 3", str(tmp_path / "never"))
    failed = subprocess.run(broken, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert (failed.returncode, failed.stdout) == (SETUP_FAILED, "")
    assert "the setup failed: exit 3" in failed.stderr


def test_only_what_is_in_no_writable_path_is_outside() -> None:
    """A path allows itself and what is below it, not what only begins with the same letters."""
    changed = ("out/a", "outer", "src/x.py", "notes.md")
    assert outside(changed, ["out/", "./notes.md"]) == ("outer", "src/x.py")
    assert outside(changed, []) == changed
    assert outside(changed, ["."]) == ()
