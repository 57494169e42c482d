"""Workspaces on a host: what changed in one, and git worktrees; written once over the verbs of a transport."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from functools import cache
from importlib.resources import files
from typing import Literal, NamedTuple

import msgspec
from msgspec.structs import replace

from fleet.errors import Conflict, NotFound, NotStarted, TransportError, UsageError
from fleet.hosts.ignored import Leftover, leftovers, shown
from fleet.hosts.transport import Transport
from fleet.model.ids import check_token

MOST_FILES = 200_000  # a workspace with more cannot be compared
REFUSED, ABSENT, TOO_MANY, UNREACHED = 3, 4, 5, 6  # exit codes of workspace.sh
CLONE_SECONDS, FINISH_SECONDS = 3600.0, 20.0
AT_HEAD = "HEAD"
IGNORED = "!! "  # how git status marks what it ignores
PARTS = ("workspace.sh", "repository.sh", "worktree.sh", "landing.sh", "ignored.sh")
SETUP_FAILED = 97  # what a session ends with whose setup did


class Worktree(msgspec.Struct, frozen=True, kw_only=True):
    """A task's own worktree, on its own branch."""

    source: str  # the directory that it was made from
    path: str  # its top

    @classmethod
    def of(cls, task: str, source: str, state: str) -> Worktree:
        """The worktree that a task has, or would have; `state` is Fleet's own directory on that host, and `task` what
        it is called there: its id, and an @ and more where other homes may have one of that id."""
        check_token(task.replace("@", ".", 1), "task")
        return cls(source=source, path=f"{state.rstrip('/')}/worktrees/{task}")


class Work(msgspec.Struct, frozen=True, kw_only=True):
    """Commits that can be brought into a checkout of their repository."""

    checkout: str
    ref: str  # that has them
    base: str  # the commit that they began at
    commits: int
    remarks: tuple[str, ...] = ()  # what a person wants to know of it


class Repository(msgspec.Struct, frozen=True, kw_only=True):
    """A clone that a task works in, or in worktrees of."""

    url: str
    branch: str  # empty: the default of the repository
    path: str
    temporary: str  # where it is cloned first; whole or not at all it moves to its path


class Tip(NamedTuple):
    """What a checkout stands at."""

    commit: str
    branch: str  # empty where it is on none


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

    branch: str
    base: str  # the commit that it began at
    head: str
    commits: int  # since it was made
    dirty: tuple[str, ...]  # files with work that is not committed
    ignored: tuple[str, ...]  # files and whole directories that git ignores


class Workspaces:
    """The workspaces of one host.

    UsageError: it cannot be done as it is asked. Conflict: not as things stand. NotFound: there is no such worktree.
    """

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
            await self._finish("forward", clone.url, clone.branch, clone.path, error=UsageError)
        return newest

    async def discard(self, clone: Repository) -> None:
        """Remove what is left of a clone that was cut off."""
        await self._run("discard", clone.temporary)

    async def sweep(self, state: str) -> tuple[str, ...]:
        """Remove what crashes left of clones in Fleet's own directory a day ago or more; returns whose."""
        return tuple((await self._run("sweep", state)).splitlines())

    async def make(self, tree: Worktree, copy_files: Sequence[str] = (), *, begin: str = AT_HEAD) -> Made:
        """Make a worktree, unless it is there; it begins at what the source has checked out, or another commit."""
        words = ("make", tree.source, tree.path, begin, *copy_files)
        prefix, own = (await self._run(*words, error=UsageError)).split("\n")[:2]
        return Made(cwd=f"{tree.path}/{prefix}".rstrip("/"), ready=f"{own}/fleet-ready")

    async def unmake(self, tree: Worktree, copy_files: Sequence[str] = ()) -> None:
        """Remove what is left of a worktree whose making was cut off; one that is whole, or has commits, stays."""
        await self._run("unmake", tree.source, tree.path, *copy_files)

    async def names(self, state: str) -> tuple[str, ...]:
        """The tasks that have a worktree below Fleet's own directory."""
        return tuple((await self._run("list", state)).splitlines())

    async def standing(self, tree: Worktree) -> Standing:
        """What became of it. NotFound: it is not there. Conflict: that cannot be told."""
        branch, base, head, commits, *files = (await self._run("state", tree.path)).rstrip("\n").split("\n")
        return Standing(
            branch=branch,
            base=base,
            head=head,
            commits=int(commits),
            dirty=tuple(shown(line[3:]) for line in files if not line.startswith(IGNORED)),
            ignored=tuple(shown(line[3:]) for line in files if line.startswith(IGNORED)),
        )

    async def diff(self, tree: Worktree) -> str:
        """All that was changed in it, committed or not."""
        return await self._run("diff", tree.path)

    async def person(self) -> Person:
        """Who git takes us for on this host."""
        name, _, address = (await self._run("person")).strip().rpartition(" ")
        return Person(name, address.strip("<>"))

    async def commit(self, tree: Worktree, message: str, by: Person = NOBODY) -> Work:
        """Commit what is not committed yet; by that person where git knows nobody there.

        Its branch then has all that was done in it. Conflict: that, and something else that is not checked out.
        """
        told = await self._finish("commit", tree.path, message, by.name, by.address)
        ref, base, commits, *remarks = told.rstrip("\n").split("\n")
        return Work(checkout=tree.source, ref=ref, base=base, commits=int(commits), remarks=tuple(map(shown, remarks)))

    async def merge(self, work: Work, message: str, by: Person = NOBODY) -> Tip:
        """Merge it into what the checkout has checked out. Conflict: nothing was changed."""
        return _tip(await self._finish("merge", work.checkout, work.ref, message, by.name, by.address))

    async def apply(self, work: Work) -> Tip:
        """Bring its difference into the checkout's files, uncommitted. Conflict: nothing was changed."""
        return _tip(await self._finish("apply", work.checkout, work.ref, work.base))

    def bundle(self, tree: Worktree, work: Work) -> AsyncIterator[bytes]:
        """The commits of a worktree since it began, as git carries them from one repository to another."""
        return self._transport.stream(["sh", "-c", _program(), "workspace", "bundle", tree.path, work.ref, work.base])

    async def take(self, work: Work, name: str, bundle: str, into: str) -> Work:
        """Fetch the commits of a bundle into the repository of another checkout, under that name where it is free."""
        ref = (await self._run("take", into, bundle, work.ref, name, work.base)).strip()
        return replace(work, checkout=into, ref=ref)

    async def let_go(self, taken: Work) -> None:
        """Forget what was taken; the commits that were merged stay."""
        await self._run("let_go", taken.checkout, taken.ref)

    async def ignored(self, tree: Worktree) -> tuple[Leftover, ...]:
        """What would go with it that is in no commit: what git ignores, and what was copied into it and changed."""
        return leftovers(await self._run("ignored", tree.source, tree.path))

    async def drop(self, tree: Worktree, keep: Sequence[Leftover] = ()) -> str:
        """Remove it; its commits are kept apart, and so are these files: returns where. Conflict: uncommitted work."""
        names = "".join(f"{one.name}\0" for one in keep).encode("utf-8", "surrogateescape")
        return (await self._finish("drop", tree.source, tree.path, stdin=names)).strip("\n")

    async def aside(self, state: str, days: int) -> tuple[str, ...]:
        """What those are called whose dropped worktrees left files that were put aside so many days ago or more."""
        return tuple((await self._run("aside", state, str(days))).splitlines())

    async def clear_aside(self, state: str, name: str, days: int) -> None:
        """Remove these files of one of them; what was put aside since stays."""
        await self._run("clear_aside", state, name, str(days))

    async def restore(self, tree: Worktree) -> str:
        """Bring a dropped one back; returns its branch."""
        return (await self._finish("restore", tree.source, tree.path)).strip()

    async def _finish(
        self, verb: str, *words: str, stdin: bytes = b"", error: type[UsageError] | type[Conflict] = Conflict
    ) -> str:
        """What would be left half changed is not cut off: who cancels waits for it, but not for ever."""
        doing = asyncio.ensure_future(self._run(verb, *words, stdin=stdin, error=error))
        try:
            return await asyncio.shield(doing)
        except asyncio.CancelledError:
            await asyncio.wait([doing], timeout=FINISH_SECONDS)
            doing.cancel()
            raise

    async def _run(
        self, verb: str, *words: str, stdin: bytes = b"", error: type[UsageError] | type[Conflict] = Conflict
    ) -> str:
        done = await self._transport.run(["sh", "-c", _program(), "workspace", verb, *words], stdin=stdin)
        said = done.stderr.decode("utf-8", "replace").strip()
        if done.code == 0:
            return done.stdout.decode("utf-8", "surrogateescape")
        if done.code == REFUSED:
            raise error(said)
        if done.code == ABSENT:
            raise NotFound(said)
        if done.code == TOO_MANY:
            raise error(f"{words[0]} has {said}: too many to see what is written", hint='use isolation = "worktree"')
        if done.code == UNREACHED:
            raise NotStarted(said)
        raise TransportError(f"cannot {verb} the workspace: {said or f'code {done.code}'}")


def _tip(told: str) -> Tip:
    commit, *branch = told.splitlines()
    return Tip(commit, branch[0] if branch else "")


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
    parts = (files("fleet.hosts").joinpath(name).read_text("utf-8") for name in PARTS)
    return "\n".join((*parts, 'say "$@"\n'))
