"""Landing: what a task did in its own worktree is looked at, brought home, dropped, or brought back."""

from __future__ import annotations

import asyncio
import os
from typing import Literal

import msgspec

from fleet.config.home import Home
from fleet.errors import Conflict
from fleet.hosts.workspace import Standing, Workspaces, Worktree
from fleet.model.states import IN_PROGRESS, TaskState
from fleet.model.task import Task
from fleet.store.store import Store

How = Literal["merge", "apply"]


class Landed(msgspec.Struct, frozen=True, kw_only=True):
    """Work that was brought home."""

    task: str
    how: How
    into: str  # the checkout
    commit: str  # what that stands at now
    kept: bool  # whether the worktree is still there


class Tree(msgspec.Struct, frozen=True, kw_only=True):
    """A task's worktree as it stands."""

    task: str
    title: str
    state: TaskState
    path: str
    branch: str
    commits: int = 0
    dirty: tuple[str, ...] = ()
    problem: str = ""  # why no more can be said of it


class Landing:
    """The verbs, in one person's name, for worktrees on this machine. What raises has changed nothing."""

    def __init__(self, store: Store, home: Home, spaces: Workspaces, *, by: str, machine: str) -> None:
        self._store = store
        self._home = home
        self._spaces = spaces
        self._by = by
        self._machine = machine

    def close(self) -> None:
        """Let go of the store."""
        self._store.close()

    def diff(self, word: str) -> str:
        """All that a task changed in its worktree, committed or not."""
        return asyncio.run(self._spaces.diff(self._tree(self._store.find(word))))

    def land(self, word: str, how: How, *, keep: bool = False) -> Landed:
        """Bring a passed task's work into the checkout that it began from; then the worktree goes, unless kept."""
        task = self._store.find(word)
        tree = self._tree(task)
        if task.state is not TaskState.COMPLETED:
            raise Conflict(f"task {task.uid} is {task.state.value}; only what has passed can be landed")
        commit = asyncio.run(self._bring(task, tree, how))
        self._store.comment(task.uid, f"landed in {tree.source} by {how}: {commit}", by=self._by).result()
        if not keep:
            asyncio.run(self._spaces.drop(tree))
        return Landed(task=task.uid, how=how, into=tree.source, commit=commit, kept=keep)

    def standing(self) -> list[Tree]:
        """Every worktree that is there."""
        directory = self._home.worktrees
        names = sorted(os.listdir(directory)) if directory.is_dir() else []
        return asyncio.run(self._stand(names))

    def drop(self, word: str) -> Worktree:
        """Remove a worktree whose work is committed. Its branch is kept, so that it can be restored."""
        task = self._store.find(word)
        if task.state in IN_PROGRESS:
            raise Conflict(f"task {task.uid} is {task.state.value}", hint=f"stop it first: fleet stop {task.uid}")
        tree = self._tree(task)
        asyncio.run(self._spaces.drop(tree))
        return tree

    def restore(self, word: str) -> Worktree:
        """Bring a dropped worktree back."""
        task = self._store.find(word)
        tree = self._declared(task)
        asyncio.run(self._spaces.restore(tree))
        return tree

    async def _bring(self, task: Task, tree: Worktree, how: How) -> str:
        await self._spaces.commit(tree, f"{task.uid}: {task.title}")
        if how == "apply":
            return await self._spaces.apply(tree)
        return await self._spaces.merge(tree, f"Merge {task.uid}: {task.title}")

    async def _stand(self, names: list[str]) -> list[Tree]:
        return [await self._one(self._store.find(name)) for name in names]

    async def _one(self, task: Task) -> Tree:
        tree = Worktree.of(task.uid, task.cwd or "", str(self._home.path))
        try:
            seen = await self._spaces.standing(tree)
            problem = ""
        except Conflict as exc:
            seen, problem = Standing(head="", commits=0, dirty=()), str(exc)
        return Tree(
            task=task.uid,
            title=task.title,
            state=task.state,
            path=tree.path,
            branch=tree.branch,
            commits=seen.commits,
            dirty=seen.dirty,
            problem=problem,
        )

    def _declared(self, task: Task) -> Worktree:
        if task.host not in (None, self._machine):
            raise Conflict(f"the worktree of {task.uid} is on {task.host}; say this there")
        if not task.cwd:
            raise Conflict(f"task {task.uid} has no directory, and so no worktree")
        return Worktree.of(task.uid, task.cwd, str(self._home.path))

    def _tree(self, task: Task) -> Worktree:
        tree = self._declared(task)
        if not os.path.exists(f"{tree.path}/.git"):
            hint = f"it worked in place; or it was dropped, then: fleet worktrees restore {task.uid}"
            raise Conflict(f"task {task.uid} has no worktree", hint=hint)
        return tree
