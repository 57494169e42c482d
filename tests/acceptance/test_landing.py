"""What a task did in its own worktree, as a person looks at it, lands it, drops it and brings it back."""

from __future__ import annotations

import subprocess
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from tests.support.cli import Cli


@pytest.fixture(name="at_work")
def in_a_repository(cli: Cli) -> Cli:
    """Somebody in a git repository with one commit."""
    cli.env |= {f"GIT_{who}_{what}": "ana@x" for who in ("AUTHOR", "COMMITTER") for what in ("NAME", "EMAIL")}
    (cli.cwd / "a.txt").write_text("one\n")
    git(cli, "init", "-q", "-b", "main")
    git(cli, "add", "-A")
    git(cli, "commit", "-qm", "first")
    return cli


def git(cli: Cli, *words: str) -> str:
    """What git says there."""
    done = subprocess.run(["git", "-C", str(cli.cwd), *words], env=cli.env, capture_output=True, check=True, text=True)
    return done.stdout


def worked(cli: Cli, command: str) -> str:
    """A task that ran to its end in a worktree."""
    uid = cli.ok("add", "Change a", "-d", command, "--coder", "command", "--isolation", "worktree", "-q").out.strip()
    cli.run("run", "--drain")
    return uid


def test_work_is_looked_at_and_landed(at_work: Cli) -> None:
    """The diff shows it, the checkout gets it by a merge, the worktree goes, and the ledger says who landed it."""
    uid = worked(at_work, "echo two >>a.txt; echo new >b.txt")
    assert (at_work.cwd / "a.txt").read_text() == "one\n"
    diff = at_work.ok("task", uid, "diff").out
    assert "+two" in diff
    assert "b/b.txt" in diff
    (tree,) = at_work.json("worktrees")
    assert (tree["task"], tree["state"], tree["dirty"]) == (uid, "completed", ["a.txt", "b.txt"])

    done = at_work.ok("land", uid)
    assert done.out.startswith(f"Landed {uid}: merged into {at_work.cwd}  [")
    assert (at_work.cwd / "b.txt").read_text() == "new\n"
    assert f"{uid}: Change a" in git(at_work, "log", "--format=%s")
    assert at_work.json("worktrees") == []
    assert "landed in" in at_work.ok("task", uid, "events").out


def test_tasks_that_are_landed_at_once_are_all_there(at_work: Cli) -> None:
    """One after the other: no merge meets another half done."""
    uids = [worked(at_work, f"echo {name} >{name}.txt") for name in ("b", "c", "d", "e")]
    with ThreadPoolExecutor() as together:
        done = list(together.map(lambda uid: at_work.run("land", uid), uids))
    assert [each.code for each in done] == [0] * 4, done
    assert git(at_work, "ls-files").split() == ["a.txt", "b.txt", "c.txt", "d.txt", "e.txt"]
    assert git(at_work, "status", "--porcelain") == ""


def test_a_conflict_is_an_error_that_names_the_file_and_changes_nothing(at_work: Cli) -> None:
    """The worktree stays, so that the conflict can be solved there."""
    uid = worked(at_work, "echo theirs >a.txt")
    (at_work.cwd / "a.txt").write_text("ours\n")
    git(at_work, "commit", "-qam", "ours")
    done = at_work.run("land", uid)
    assert (done.code, done.out) == (1, "")
    assert "conflicts in: a.txt" in done.err
    assert git(at_work, "status", "--porcelain") == ""
    assert len(at_work.json("worktrees")) == 1


def test_what_git_ignores_is_told_and_not_lost(at_work: Cli) -> None:
    """A little is put aside; with much of it the worktree stays until it is said what becomes of it."""
    (at_work.cwd / ".gitignore").write_text("*.log\n__pycache__/\n")
    git(at_work, "add", "-A")
    git(at_work, "commit", "-qm", "ignore")
    odd = r"touch $(printf 'caf\351.txt')"
    small = worked(at_work, f"{odd}; echo noted >run.log; mkdir __pycache__; echo x >__pycache__/x; echo two >>a.txt")
    large = worked(at_work, "head -c 20000000 /dev/zero >big.log")
    assert "1 ignored" in at_work.ok("worktrees").out

    assert r"caf\xe9.txt" in {name for tree in at_work.json("worktrees") for name in tree["dirty"]}
    done = at_work.ok("land", small)
    assert "what git ignores was put aside in " in done.err
    assert "run.log (" in done.err
    assert "what git ignores is gone with it: __pycache__ (" in done.err
    at_work.ok("worktrees", "restore", small)
    assert (at_work.home.worktrees / small / "run.log").read_text() == "noted\n"

    stays = at_work.ok("land", large)
    assert stays.out == f"Nothing to land: {large} changed nothing\n"
    assert "its worktree stays: git ignores big.log (19 MiB), and has it nowhere" in stays.err
    refused = at_work.run("worktrees", "drop", large)
    assert (refused.code, "--ignored discard" in refused.err) == (1, True)
    gone = at_work.json("worktrees", "drop", large, "--ignored", "discard")
    assert [each["name"] for each in gone["left"]["gone"]] == ["big.log"]


def test_a_merge_that_is_on_no_branch_is_told(at_work: Cli) -> None:
    """Who checks out a branch there afterwards would not have it."""
    uid = worked(at_work, "echo two >>a.txt")
    git(at_work, "checkout", "-q", "--detach")
    done = at_work.ok("land", uid)
    assert "no branch is checked out there" in done.err


def test_only_what_passed_can_be_landed(at_work: Cli) -> None:
    """A failed task's work is refused, by its state."""
    at_work.ok("config", "set", "supervisor.max_attempts=1")
    uid = worked(at_work, "echo two >>a.txt; exit 3")
    done = at_work.run("land", uid)
    assert done.code == 1
    assert f"task {uid} is failed; only what has passed can be landed" in done.err


def test_a_worktree_with_uncommitted_work_is_not_dropped_and_a_dropped_one_comes_back(at_work: Cli) -> None:
    """Nothing is destroyed."""
    uid = worked(at_work, "echo two >>a.txt")
    (tree,) = at_work.json("worktrees")
    refused = at_work.run("worktrees", "drop", uid)
    assert refused.code == 1
    assert "uncommitted work: a.txt" in refused.err
    subprocess.run(["git", "-C", tree["path"], "commit", "-qam", "work"], env=at_work.env, check=True)
    at_work.ok("worktrees", "drop", uid)
    assert not Path(tree["path"]).exists()
    again = at_work.run("task", uid, "diff")
    assert again.code == 1
    assert f"fleet worktrees restore {uid}" in again.err
    at_work.ok("worktrees", "restore", uid)
    assert Path(tree["path"], "a.txt").read_text() == "one\ntwo\n"


def test_a_task_without_a_worktree_is_told_so(at_work: Cli) -> None:
    """It worked in place; there is nothing to land."""
    uid = at_work.add("in place")
    done = at_work.run("land", uid)
    assert (done.code, done.out) == (1, "")
    assert f"task {uid} has no worktree" in done.err
