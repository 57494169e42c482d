"""Landing: what a task did in its own worktree is looked at, brought home, dropped, or brought back.

A worktree is on the machine that the task ran on, and so are its branch and the checkout that it began from.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import tempfile
from collections.abc import Callable, Coroutine
from typing import Any, NamedTuple, TypeVar

import msgspec
from msgspec.structs import replace

from fleet.config.files import locked
from fleet.config.home import Home
from fleet.control.landed import Dropped, How, Landed, Left, Tree
from fleet.errors import Conflict, NotFound, TransportError
from fleet.hosts.ignored import Fate, Leftover, shown, sort_out
from fleet.hosts.kinds import state_directory, working_directory
from fleet.hosts.local import LocalTransport
from fleet.hosts.transport import Transport
from fleet.hosts.workspace import AT_HEAD, NOBODY, Standing, Tip, Work, Workspaces, Worktree
from fleet.model.host import is_local
from fleet.model.reach import Reach
from fleet.model.session import Session, name_there
from fleet.model.states import IN_PROGRESS, TaskState
from fleet.model.task import Task
from fleet.policy.placement import task_there
from fleet.store.store import Store

T = TypeVar("T")
NOTHING = Left()
LANDING_SECONDS = 120.0  # that a landing waits for those before it


class Yard(msgspec.Struct, frozen=True, kw_only=True):
    """A machine that worktrees are on."""

    host: str  # empty: this machine
    spaces: Workspaces
    state: str
    directory: str  # that directories of tasks are relative to


class Plot(NamedTuple):
    """A task's worktree, or where it would be."""

    task: Task
    yard: Yard
    tree: Worktree

    def dropped(self, branch: str, left: Left = NOTHING) -> Dropped:
        """It is gone, or there again."""
        return Dropped(task=self.task.uid, host=self.yard.host, path=self.tree.path, branch=branch, left=left)


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
        here: Callable[[Session], Reach | None],
        open_transport: Callable[[Reach], Transport],
        look_seconds: float | None = None,
    ) -> None:
        self._store = store
        self._home = home
        self._by = by
        self._machine = machine
        self._reach = reach
        self._here = here  # what is said of this machine for the worker of a session
        self._open = open_transport
        self._look_seconds = look_seconds  # that a look at a machine may take; None: as long as it takes

    def close(self) -> None:
        """Let go of the store."""
        self._store.close()

    def diff(self, word: str) -> str:
        """All that a task changed in its worktree, committed or not."""
        plot = self._plot(self._store.find(word))

        async def ask() -> str:
            await _present(plot)
            return await plot.yard.spaces.diff(plot.tree)

        return asyncio.run(self._in_time(ask(), plot.yard))

    def land(
        self, word: str, how: How, *, into: str | None = None, keep: bool = False, ignored: Fate | None = None
    ) -> Landed:
        """Bring a passed task's work into the checkout that it began from; then the worktree goes, unless kept.

        `into`: a checkout of this machine in its place, which gets the commits from wherever they are. `ignored`: what
        becomes of files that git ignores; where that must be said and is not, the worktree stays.
        """
        plot = self._plot(self._store.find(word))

        async def land() -> Landed:
            landed = await self._bring_home(plot, how, into)
            if keep:
                return landed
            try:
                left = await _drop(plot, ignored)
            except Conflict as exc:
                return replace(landed, why=str(exc))
            return replace(landed, kept=False, left=left)

        with self._turn():
            return asyncio.run(land())

    def standing(self, host: str = "") -> list[Tree]:
        """Every worktree that is on this machine, or on another."""
        yard = self._yard(host or self._machine)
        return asyncio.run(self._in_time(self._stand(yard), yard))

    def drop(self, word: str, ignored: Fate | None = None) -> Dropped:
        """Remove a worktree whose work is committed. Its commits are kept, so that it can be restored.

        `ignored`: what becomes of files that git ignores. Conflict: that must be said, as they are many.
        """
        task = self._store.find(word)
        if task.state in IN_PROGRESS:
            raise Conflict(f"task {task.uid} is {task.state.value}", hint=f"stop it first: fleet stop {task.uid}")
        plot = self._plot(task)

        async def drop() -> Dropped:
            seen = await _present(plot)
            return plot.dropped(seen.branch, await _drop(plot, ignored))

        with self._turn():
            return asyncio.run(drop())

    def restore(self, word: str) -> Dropped:
        """Bring a dropped worktree back, with what was put aside of it."""
        plot = self._plot(self._store.find(word))
        with self._turn():
            return plot.dropped(asyncio.run(plot.yard.spaces.restore(plot.tree)))

    def _turn(self) -> contextlib.AbstractContextManager[None]:
        """One at a time of this home. Those of several homes take turns where the checkout is."""
        return locked(self._home.path / "landing.lock", seconds=LANDING_SECONDS)

    async def _bring_home(self, plot: Plot, how: How, into: str | None) -> Landed:
        task, yard, tree = plot
        await _present(plot)
        if task.state is not TaskState.COMPLETED:
            raise Conflict(f"task {task.uid} is {task.state.value}; only what has passed can be landed")
        by = await Workspaces(LocalTransport()).person() if yard.host else NOBODY
        work = await yard.spaces.commit(tree, f"{task.uid}: {task.title}", by)
        message = f"Merge {task.uid}: {task.title}"
        if into is None:
            target, host = tree.source, yard.host
            tip = await (yard.spaces.apply(work) if how == "apply" else yard.spaces.merge(work, message, by))
        else:
            target, host = os.path.abspath(os.path.expanduser(into)), ""
            tip = await self._bring_here(plot, work, how, target, message)
        what = f"{how}: {tip.commit}" if work.commits else f"{how}: it changed nothing"
        self._store.comment(task.uid, f"landed in {_named(host, target)} by {what}", by=self._by).result()
        return Landed(
            task=task.uid,
            how=how,
            host=host,
            into=target,
            branch=tip.branch,
            commit=tip.commit,
            commits=work.commits,
            kept=True,
            remarks=work.remarks,
        )

    async def _bring_here(self, plot: Plot, work: Work, how: How, into: str, message: str) -> Tip:
        """The commits, carried by a bundle. Where they do not fit they stay under a name of their own, to be merged."""
        task, yard, tree = plot
        here = Workspaces(LocalTransport())
        if not work.commits:
            return await here.merge(replace(work, checkout=into, ref=AT_HEAD), message)
        with tempfile.NamedTemporaryFile(dir=self._home.path, prefix=".landing.", suffix=".bundle") as file:
            async for chunk in yard.spaces.bundle(tree, work):
                file.write(chunk)
            file.flush()
            taken = await here.take(work, task.uid, file.name, into)
        try:
            tip = await (here.apply(taken) if how == "apply" else here.merge(taken, message))
        except Conflict as exc:
            hint = f"the commits are here now; by hand: git -C {into} merge {taken.ref}"
            raise Conflict(str(exc), hint=hint) from exc
        await here.let_go(taken)
        return tip

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
        task = self._holder(yard, name)
        if task is None:
            path, said = f"{yard.state}/worktrees/{name}", "no task of this ledger has it"
            return Tree(task=name, title="", state=None, host=yard.host, path=path, problem=said)
        tree = Worktree.of(name, "", yard.state)
        told = Tree(task=task.uid, title=task.title, state=task.state, host=yard.host, path=tree.path)
        try:
            seen = await yard.spaces.standing(tree)
        except (Conflict, NotFound) as exc:
            return replace(told, problem=str(exc))
        return replace(told, branch=seen.branch, commits=seen.commits, dirty=seen.dirty, ignored=seen.ignored)

    def _holder(self, yard: Yard, name: str) -> Task | None:
        """The task whose worktree it is; None: none of ours, as other homes may have theirs there."""
        known = self._store.tasks_by_uid([name.partition("@")[0]])
        if not yard.host:
            return known.get(name)
        uid = task_there(name, lambda uid: self._store.sessions(task=uid) if uid in known else ())
        return known[uid] if uid is not None else None

    def _plot(self, task: Task) -> Plot:
        """The machine that the task last worked on, and the worktree that it has there, or would have."""
        worked = [one for one in self._store.sessions(task=task.uid) if one.kind == "work" and one.started_at]
        yard = self._yard(worked[-1].host if worked else task.host or self._machine)
        described = self._here(worked[-1]) if worked and not yard.host else None
        usual = described.working_directory if described is not None else ""
        if not (yard.host or task.cwd or usual):
            raise Conflict(f"task {task.uid} has no directory, and so no worktree")
        source = os.path.join(usual or yard.directory, task.cwd or "").rstrip("/") or "/"
        name = name_there(worked[-1].id) if worked and yard.host else task.uid
        return Plot(task, yard, Worktree.of(name, source, yard.state))

    def _yard(self, host: str) -> Yard:
        if host == self._machine:
            path = str(self._home.path)
            return Yard(host="", spaces=Workspaces(LocalTransport()), state=path, directory=path)
        if is_local(host):
            raise Conflict(f"that is on {host}; say this there")
        reach = self._reach(host)
        if reach is None:
            raise NotFound(f"no host `{host}` is declared", hint="declare it again: fleet hosts add")
        spaces = Workspaces(self._open(reach))
        return Yard(host=host, spaces=spaces, state=state_directory(reach), directory=working_directory(reach))


async def _drop(plot: Plot, ignored: Fate | None) -> Left:
    _, yard, tree = plot
    fates = sort_out(await yard.spaces.ignored(tree), ignored)
    place = await yard.spaces.drop(tree, fates.kept)
    return Left(kept=_shown(fates.kept), place=_named(yard.host, place) if place else "", gone=_shown(fates.gone))


def _shown(found: tuple[Leftover, ...]) -> tuple[Leftover, ...]:
    return tuple(replace(one, name=shown(one.name)) for one in found)


async def _present(plot: Plot) -> Standing:
    try:
        return await plot.yard.spaces.standing(plot.tree)
    except NotFound as exc:
        hint = f"it worked in place; or it was dropped, then: fleet worktrees restore {plot.task.uid}"
        raise Conflict(f"task {plot.task.uid} has no worktree", hint=hint) from exc


def _named(host: str, path: str) -> str:
    return f"{host}:{path}" if host else path
