"""Landing: what a task did in its own worktree is looked at, brought home, dropped, or brought back.

A worktree is on the machine that the task ran on, and so are its branch and the checkout that it began from.
"""

from __future__ import annotations

import asyncio
import os
import tempfile
from collections.abc import Callable, Coroutine
from typing import Any, Literal, TypeVar

import msgspec

from fleet.config.files import locked
from fleet.config.home import Home
from fleet.errors import Conflict, NotFound, TransportError
from fleet.hosts.kinds import state_directory, working_directory
from fleet.hosts.local import LocalTransport
from fleet.hosts.transport import Transport
from fleet.hosts.workspace import NOBODY, Standing, Workspaces, Worktree
from fleet.model.reach import Reach
from fleet.model.states import IN_PROGRESS, TaskState
from fleet.model.task import Task
from fleet.store.store import Store

T = TypeVar("T")
How = Literal["merge", "apply"]
LANDING_SECONDS = 120.0  # that a landing waits for those before it


class Landed(msgspec.Struct, frozen=True, kw_only=True):
    """Work that was brought home."""

    task: str
    how: How
    host: str  # where the checkout is; empty: on this machine
    into: str  # the checkout
    commit: str  # what that stands at now
    kept: bool  # whether the worktree is still there


class Tree(msgspec.Struct, frozen=True, kw_only=True):
    """A task's worktree as it stands."""

    task: str
    title: str
    state: TaskState | None  # None: no task of this ledger has it
    host: str  # empty: this machine
    path: str
    branch: str
    commits: int = 0
    dirty: tuple[str, ...] = ()
    problem: str = ""  # why no more can be said of it


class Dropped(msgspec.Struct, frozen=True, kw_only=True):
    """A worktree that was dropped, or brought back."""

    task: str
    host: str
    path: str
    branch: str


class Yard(msgspec.Struct, frozen=True, kw_only=True):
    """A machine that worktrees are on."""

    host: str  # empty: this machine
    spaces: Workspaces
    state: str
    directory: str  # that directories of tasks are relative to


class Landing:
    """The verbs, in one person's name. What raises has changed nothing."""

    def __init__(
        self,
        store: Store,
        home: Home,
        *,
        by: str,
        machine: str,
        reach: Callable[[str], Reach | None],
        open_transport: Callable[[Reach], Transport],
        look_seconds: float | None = None,
    ) -> None:
        self._store = store
        self._home = home
        self._by = by
        self._machine = machine
        self._reach = reach
        self._open = open_transport
        self._look_seconds = look_seconds  # that a look at a machine may take; None: as long as it takes

    def close(self) -> None:
        """Let go of the store."""
        self._store.close()

    def diff(self, word: str) -> str:
        """All that a task changed in its worktree, committed or not."""

        async def ask(yard: Yard, tree: Worktree, task: Task) -> str:
            await _present(yard, tree, task)
            return await yard.spaces.diff(tree)

        task = self._store.find(word)
        yard, tree = self._place(task)
        return asyncio.run(self._in_time(ask(yard, tree, task), yard))

    def land(self, word: str, how: How, *, into: str | None = None, keep: bool = False) -> Landed:
        """Bring a passed task's work into the checkout that it began from; then the worktree goes, unless kept.

        `into`: a checkout of this machine in its place, which gets the commits from wherever they are.
        """
        task = self._store.find(word)
        yard, tree = self._place(task)
        with locked(self._home.path / "landing.lock", seconds=LANDING_SECONDS):  # two merges would undo each other
            return asyncio.run(self._land(task, yard, tree, how, into, keep=keep))

    def standing(self, host: str = "") -> list[Tree]:
        """Every worktree that is on this machine, or on another."""
        yard = self._yard(host or self._machine)
        return asyncio.run(self._in_time(self._stand(yard), yard))

    def drop(self, word: str) -> Dropped:
        """Remove a worktree whose work is committed. Its branch is kept, so that it can be restored."""
        task = self._store.find(word)
        if task.state in IN_PROGRESS:
            raise Conflict(f"task {task.uid} is {task.state.value}", hint=f"stop it first: fleet stop {task.uid}")
        yard, tree = self._place(task)

        async def drop() -> None:
            await _present(yard, tree, task)
            await yard.spaces.drop(tree)

        asyncio.run(drop())
        return Dropped(task=task.uid, host=yard.host, path=tree.path, branch=tree.branch)

    def restore(self, word: str) -> Dropped:
        """Bring a dropped worktree back."""
        task = self._store.find(word)
        yard, tree = self._place(task)
        asyncio.run(yard.spaces.restore(tree))
        return Dropped(task=task.uid, host=yard.host, path=tree.path, branch=tree.branch)

    async def _land(self, task: Task, yard: Yard, tree: Worktree, how: How, into: str | None, *, keep: bool) -> Landed:
        await _present(yard, tree, task)
        if task.state is not TaskState.COMPLETED:
            raise Conflict(f"task {task.uid} is {task.state.value}; only what has passed can be landed")
        by = await Workspaces(LocalTransport()).person() if yard.host else NOBODY
        await yard.spaces.commit(tree, f"{task.uid}: {task.title}", by)
        message = f"Merge {task.uid}: {task.title}"
        if into is None:
            target, host = tree.source, yard.host
            commit = await (yard.spaces.apply(tree) if how == "apply" else yard.spaces.merge(tree, message, by))
        else:
            target, host = os.path.abspath(os.path.expanduser(into)), ""
            commit = await self._bring_here(yard, tree, how, target, message)
        self._store.comment(task.uid, f"landed in {_named(host, target)} by {how}: {commit}", by=self._by).result()
        if not keep:
            await yard.spaces.drop(tree)
        return Landed(task=task.uid, how=how, host=host, into=target, commit=commit, kept=keep)

    async def _bring_here(self, yard: Yard, tree: Worktree, how: How, into: str, message: str) -> str:
        """The commits, carried by a bundle. Where they do not fit they stay under a name of their own, to be merged."""
        seen = await yard.spaces.standing(tree)
        if not seen.commits:
            raise Conflict(f"nothing was changed in {_named(yard.host, tree.path)}")
        here = Workspaces(LocalTransport())
        with tempfile.NamedTemporaryFile(dir=self._home.path, prefix=".landing.", suffix=".bundle") as file:
            async for chunk in yard.spaces.bundle(tree):
                file.write(chunk)
            file.flush()
            taken = await here.take(tree, file.name, seen.base, into)
        try:
            commit = await (here.apply(taken) if how == "apply" else here.merge(taken, message))
        except Conflict as exc:
            hint = f"the commits are here now; by hand: git -C {into} merge {taken.ref}"
            raise Conflict(str(exc), hint=hint) from exc
        await here.let_go(taken)
        return commit

    async def _in_time(self, looking: Coroutine[Any, Any, T], yard: Yard) -> T:
        """What a machine tells, within the time that a look at it may take."""
        try:
            async with asyncio.timeout(self._look_seconds):
                return await looking
        except TimeoutError as exc:
            where = yard.host or "this machine"
            raise TransportError(f"{where} did not tell it within {self._look_seconds:.0f} s") from exc

    async def _stand(self, yard: Yard) -> list[Tree]:
        return [await self._one(yard, name) for name in await yard.spaces.names(yard.state)]

    async def _one(self, yard: Yard, name: str) -> Tree:
        try:
            task = self._store.task(name)
        except NotFound:
            path, said = f"{yard.state}/worktrees/{name}", "no task of this ledger has it"
            return Tree(task=name, title="", state=None, host=yard.host, path=path, branch="", problem=said)
        tree = Worktree.of(task.uid, "", yard.state)
        try:
            seen, problem = await yard.spaces.standing(tree), ""
        except Conflict as exc:
            seen, problem = Standing(head="", base="", commits=0, dirty=()), str(exc)
        return Tree(
            task=task.uid,
            title=task.title,
            state=task.state,
            host=yard.host,
            path=tree.path,
            branch=tree.branch,
            commits=seen.commits,
            dirty=seen.dirty,
            problem=problem,
        )

    def _place(self, task: Task) -> tuple[Yard, Worktree]:
        """The machine that the task last worked on, and the worktree that it has there, or would have."""
        worked = [one for one in self._store.sessions(task=task.uid) if one.kind == "work" and one.started_at]
        yard = self._yard(worked[-1].host if worked else task.host or self._machine)
        if not yard.host and not task.cwd:
            raise Conflict(f"task {task.uid} has no directory, and so no worktree")
        source = os.path.join(yard.directory, task.cwd or "").rstrip("/") or "/"
        return yard, Worktree.of(task.uid, source, yard.state)

    def _yard(self, host: str) -> Yard:
        if host == self._machine:
            path = str(self._home.path)
            return Yard(host="", spaces=Workspaces(LocalTransport()), state=path, directory=path)
        if host.startswith("local@"):
            raise Conflict(f"that is on {host}; say this there")
        reach = self._reach(host)
        if reach is None:
            raise NotFound(f"no host `{host}` is declared", hint="declare it again: fleet hosts add")
        spaces = Workspaces(self._open(reach))
        return Yard(host=host, spaces=spaces, state=state_directory(reach), directory=working_directory(reach))


async def _present(yard: Yard, tree: Worktree, task: Task) -> None:
    try:
        await yard.spaces.standing(tree)
    except Conflict as exc:
        hint = f"it worked in place; or it was dropped, then: fleet worktrees restore {task.uid}"
        raise Conflict(f"task {task.uid} has no worktree", hint=hint) from exc


def _named(host: str, path: str) -> str:
    return f"{host}:{path}" if host else path
