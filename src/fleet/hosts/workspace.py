"""Workspaces on a host: what changed in one, and git worktrees; written once over the verbs of a transport."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Coroutine, Sequence
from functools import cache
from importlib.resources import files
from typing import Any, Literal, NamedTuple

import msgspec
from msgspec.structs import replace

from fleet.errors import Conflict, NotStarted, TransportError, UsageError
from fleet.hosts.transport import Transport
from fleet.model.ids import check_token

MOST_FILES = 200_000  # a workspace with more cannot be compared
REFUSED, TOO_MANY, UNREACHED = 3, 5, 6  # exit codes of workspace.sh
CLONE_SECONDS, FINISH_SECONDS = 3600.0, 20.0
AT_HEAD = "HEAD"
SETUP_FAILED = 97  # what a session ends with whose setup did


class Worktree(msgspec.Struct, frozen=True, kw_only=True):
    """A task's own worktree, on its own branch."""

    source: str  # the directory that it was made from
    path: str  # its top
    branch: str
    ref: str  # that has its commits
    base: str  # the ref of the commit that it began at
    grave: str  # the ref that keeps the branch once it was dropped

    @classmethod
    def of(cls, task: str, source: str, state: str) -> Worktree:
        """The worktree that a task has, or would have; `state` is Fleet's own directory on that host."""
        uid = check_token(task, "task")
        return cls(
            source=source,
            path=f"{state.rstrip('/')}/worktrees/{uid}",
            branch=f"fleet/{uid}",
            ref=f"refs/heads/fleet/{uid}",
            base=f"refs/fleet/base/{uid}",
            grave=f"refs/fleet/dropped/{uid}",
        )


class Repository(msgspec.Struct, frozen=True, kw_only=True):
    """A clone that a task works in, or in worktrees of."""

    url: str
    branch: str  # empty: the default of the repository
    path: str
    temporary: str  # where it is cloned first; whole or not at all it moves to its path


class Person(NamedTuple):
    """Somebody who commits; without a name where git knows nobody."""

    name: str = ""
    address: str = ""


NOBODY = Person()


class Made(msgspec.Struct, frozen=True, kw_only=True):
    """A worktree that is there."""

    cwd: str  # the place in it that the source is in its own
    ready: str  # a file that is there once the setup was run


class Standing(msgspec.Struct, frozen=True, kw_only=True):
    """What became of a worktree."""

    head: str
    base: str  # the commit that it began at
    commits: int  # since it was made
    dirty: tuple[str, ...]  # files with work that is not committed


class Workspaces:
    """The workspaces of one host. UsageError: it cannot be done as it is asked; Conflict: not as things stand."""

    def __init__(self, transport: Transport) -> None:
        self._transport = transport

    async def mark(self, root: str, kept: str, file: str) -> None:
        """Write down what is in a workspace, so that it can be compared afterwards; `kept` does not count."""
        await self._run("mark", root, kept, str(MOST_FILES), file, error=UsageError)

    async def changes(self, root: str, kept: str, file: str) -> tuple[str, ...]:
        """The files that were made, changed or removed since."""
        said = await self._run("changes", root, kept, str(MOST_FILES), file, error=UsageError)
        return tuple(said.splitlines())

    async def obtain(self, clone: Repository, how: Literal["update", "fetch", "keep"]) -> str:
        """Clone it where it is absent; else bring its checkout forward, only fetch, or leave it as it is.

        Returns the newest commit of the branch that is known there. UsageError: what is there is something else, or has
        work that would be lost. NotStarted: the repository cannot be reached from there.
        """
        fetched = "fetch" if how == "update" else how
        words = ("obtain", clone.url, clone.branch, clone.path, clone.temporary, fetched)
        try:
            async with asyncio.timeout(CLONE_SECONDS):
                newest = (await self._run(*words, error=UsageError)).strip()
        except TimeoutError as exc:
            raise NotStarted(f"{clone.url} was not there after {CLONE_SECONDS:.0f} s") from exc
        if how == "update":
            await _to_its_end(self._run("forward", clone.url, clone.branch, clone.path, error=UsageError))
        return newest

    async def discard(self, clone: Repository) -> None:
        """Remove what is left of a clone that was cut off."""
        await self._run("discard", clone.temporary)

    async def sweep(self, state: str) -> tuple[str, ...]:
        """Remove what crashes left of clones in Fleet's own directory a day ago or more; returns whose."""
        return tuple((await self._run("sweep", state)).splitlines())

    async def make(self, tree: Worktree, copy_files: Sequence[str] = (), *, begin: str = AT_HEAD) -> Made:
        """Make a worktree, unless it is there; it begins at what the source has checked out, or another commit."""
        words = ("make", tree.source, tree.path, tree.branch, tree.base, begin, *copy_files)
        prefix, own = (await self._run(*words, error=UsageError)).split("\n")[:2]
        return Made(cwd=f"{tree.path}/{prefix}".rstrip("/"), ready=f"{own}/fleet-ready")

    async def unmake(self, tree: Worktree, copy_files: Sequence[str] = ()) -> None:
        """Remove what is left of a worktree whose making was cut off; one that is whole, or has commits, stays."""
        await self._run("unmake", tree.source, tree.path, tree.branch, tree.base, *copy_files)

    async def names(self, state: str) -> tuple[str, ...]:
        """The tasks that have a worktree below Fleet's own directory."""
        return tuple((await self._run("list", state)).splitlines())

    async def standing(self, tree: Worktree) -> Standing:
        """What became of it. Conflict: it is not there."""
        head, base, commits, *dirty = (await self._run("state", tree.path, tree.base)).splitlines()
        return Standing(head=head, base=base, commits=int(commits), dirty=tuple(line[3:] for line in dirty))

    async def diff(self, tree: Worktree) -> str:
        """All that was changed in it, committed or not."""
        return await self._run("diff", tree.path, tree.base)

    async def person(self) -> Person:
        """Who git takes us for on this host."""
        name, _, address = (await self._run("person")).strip().rpartition(" ")
        return Person(name, address.strip("<>"))

    async def commit(self, tree: Worktree, message: str, by: Person = NOBODY) -> None:
        """Commit what is not committed yet; by that person where git knows nobody there.

        Its branch then has all that was done in it. Conflict: that, and something else that is not checked out.
        """
        await self._run("commit", tree.path, tree.branch, message, by.name, by.address)

    async def merge(self, tree: Worktree, message: str, by: Person = NOBODY) -> str:
        """Merge its commits into what the source has checked out; returns the commit. Conflict: nothing was changed."""
        return (await self._run("merge", tree.source, tree.ref, message, by.name, by.address)).strip()

    async def apply(self, tree: Worktree) -> str:
        """Bring its difference into the source's files, uncommitted. Conflict: nothing was changed."""
        return (await self._run("apply", tree.source, tree.ref, tree.base)).strip()

    def bundle(self, tree: Worktree) -> AsyncIterator[bytes]:
        """The commits of a worktree since it began, as git carries them from one repository to another."""
        return self._transport.stream(
            ["sh", "-c", _program(), "workspace", "bundle", tree.path, tree.branch, tree.base]
        )

    async def take(self, tree: Worktree, bundle: str, base: str, into: str) -> Worktree:
        """Fetch the commits of a bundle into another repository: the worktree, as if it had been made from there."""
        ref = f"refs/fleet/landing/{tree.branch.removeprefix('fleet/')}"
        await self._run("take", into, bundle, tree.branch, ref, base)
        return replace(tree, source=into, ref=ref, base=base)

    async def let_go(self, taken: Worktree) -> None:
        """Forget what was taken; the commits that were merged stay."""
        await self._run("let_go", taken.source, taken.ref)

    async def drop(self, tree: Worktree) -> None:
        """Remove it; its branch is kept under another name. Conflict: it has work that is not committed."""
        await self._run("drop", tree.path, tree.branch, tree.grave)

    async def restore(self, tree: Worktree) -> None:
        """Bring a dropped one back."""
        await self._run("restore", tree.source, tree.path, tree.branch, tree.grave)

    async def _run(self, verb: str, *words: str, error: type[UsageError] | type[Conflict] = Conflict) -> str:
        done = await self._transport.run(["sh", "-c", _program(), "workspace", verb, *words])
        said = done.stderr.decode("utf-8", "replace").strip()
        if done.code == 0:
            return done.stdout.decode("utf-8", "surrogateescape")
        if done.code == REFUSED:
            raise error(said)
        if done.code == TOO_MANY:
            raise error(f"{words[0]} has {said}: too many to see what is written", hint='use isolation = "worktree"')
        if done.code == UNREACHED:
            raise NotStarted(said)
        raise TransportError(f"cannot {verb} the workspace: {said or f'code {done.code}'}")


async def _to_its_end(work: Coroutine[Any, Any, str]) -> str:
    """What would leave a checkout half changed is not cut off: who cancels waits for it, but not for ever."""
    doing = asyncio.ensure_future(work)
    try:
        return await asyncio.shield(doing)
    except asyncio.CancelledError:
        await asyncio.wait([doing], timeout=FINISH_SECONDS)
        doing.cancel()
        raise


def with_setup(argv: Sequence[str], setup: str, ready: str) -> tuple[str, ...]:
    """The words of a launch that first runs the setup, once. What the setup says goes to stderr."""
    script = (
        '[ -e "$2" ] || { (eval "$1") >&2 && : >"$2"; } || '
        f'{{ echo "the setup failed: $1" >&2; exit {SETUP_FAILED}; }}; shift 2; exec "$@"'
    )
    return ("sh", "-c", script, "setup", setup, ready, *argv)


def outside(changed: Sequence[str], writable: Sequence[str]) -> tuple[str, ...]:
    """Of the files that changed, those that are in none of the writable paths."""
    allowed = [path.strip("/").removeprefix("./") for path in writable]
    return tuple(
        path for path in changed if not any(root in ("", ".") or f"{path}/".startswith(f"{root}/") for root in allowed)
    )


@cache
def _program() -> str:
    return files("fleet.hosts").joinpath("workspace.sh").read_text("utf-8")
