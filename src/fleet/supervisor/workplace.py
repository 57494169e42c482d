"""The place that a session works in: made ready before it starts, compared with what it was when it has ended."""

from __future__ import annotations

import asyncio

from msgspec.structs import replace

from fleet.errors import Conflict, TransportError, UsageError
from fleet.hosts.files import Places, look
from fleet.hosts.launch_file import BASE_ENVIRONMENT
from fleet.hosts.workspace import AT_HEAD, Repository, Workspaces, Worktree, outside, with_setup
from fleet.model.launch import Launch
from fleet.supervisor import carrying
from fleet.supervisor.attempt import Attempt

UNDO_SECONDS = 15.0
SHOWN = 20  # of the files that were written outside


class Unmet(Exception):
    """Something that the task requires is not there; it is skipped, with this as the reason."""


async def make_ready(attempt: Attempt) -> None:
    """The directory to work in, with what must be in it. UsageError: it cannot be had. Unmet: the task is skipped."""
    terms = attempt.task.terms
    if terms.writable_paths is not None and not attempt.is_somewhere:
        raise UsageError("writable_paths needs a directory to work in, and the task has none")
    if missing := _missing_environment(attempt):
        raise Unmet(f"required environment is not set: {', '.join(missing)}")
    if attempt.site.is_here and attempt.reach is not None and attempt.reach.working_directory:
        attempt.progress = replace(attempt.progress, cwd=attempt.source)  # the settings may change while it works
    begin = await _obtain(attempt) if terms.repository else AT_HEAD
    if attempt.isolation == "worktree":
        made = await _spaces(attempt).make(worktree(attempt), terms.copy_files, begin=begin)
        attempt.progress = replace(attempt.progress, cwd=made.cwd, ready=made.ready)
    for what, paths in (("required", terms.required_files), ("input", terms.input_files)):
        missing = await _missing_files(attempt, paths)
        if what == "input" and missing:
            missing = await carrying.send_inputs(attempt, missing)
        if missing:
            raise Unmet(f"{what} files are not in {attempt.cwd}: {', '.join(missing)}")


async def _obtain(attempt: Attempt) -> str:
    """The repository that the task names, in its directory; returns the commit that its branch stands at.

    What an earlier attempt left is left as it is, and a checkout that only worktrees are made of is not touched.
    """
    clone = _repository(attempt)
    if attempt.history.began():
        return await _spaces(attempt).obtain(clone, "keep")
    return await _spaces(attempt).obtain(clone, "fetch" if attempt.isolation == "worktree" else "update")


def _repository(attempt: Attempt) -> Repository:
    return Repository(
        url=attempt.task.terms.repository or "",
        branch=attempt.task.terms.branch or "",
        path=attempt.source,
        temporary=f"{attempt.site.state}/clones/{attempt.site.name_of(attempt.session)}",
    )


async def undo(attempt: Attempt) -> None:
    """Remove what was half made when it was cut short. What cannot be removed now is cleared by the next attempt."""
    spaces = _spaces(attempt)
    try:
        async with asyncio.timeout(UNDO_SECONDS):
            if attempt.dispatch is not None:
                await attempt.dispatch.at.give_up_setup()
                return
            if attempt.task.terms.repository:
                await spaces.discard(_repository(attempt))
            if attempt.isolation == "worktree":
                await spaces.unmake(worktree(attempt), attempt.task.terms.copy_files)
    except (TransportError, UsageError, Conflict, TimeoutError) as exc:
        attempt.house.log("not_undone", session=attempt.session.id, error=str(exc) or "no answer in time")


def equipped(attempt: Attempt, launch: Launch) -> Launch:
    """The launch with the variables that the task allows, and its setup before it."""
    terms = attempt.task.terms
    env = dict(attempt.house.secrets_for(terms.environment_allowlist)) | launch.env
    if terms.setup and attempt.progress.ready:
        return replace(launch, env=env, argv=with_setup(launch.argv, terms.setup, attempt.progress.ready))
    return replace(launch, env=env)


async def mark(attempt: Attempt) -> None:
    """Write down what is there, where the task may write only in some places."""
    if attempt.task.terms.writable_paths is not None:
        await _spaces(attempt).mark(attempt.cwd, attempt.site.state, _mark_file(attempt))


async def trespasses(attempt: Attempt) -> tuple[str, ...]:
    """The files that it wrote outside its writable paths."""
    allowed = attempt.task.terms.writable_paths
    if allowed is None:
        return ()
    spaces, kept, mark = _spaces(attempt), attempt.site.state, _mark_file(attempt)
    try:
        return outside(await attempt.insist(lambda: spaces.changes(attempt.cwd, kept, mark)), allowed)
    except UsageError as exc:  # the workspace itself is gone, or has grown past all bounds
        return (str(exc),)


def told(paths: tuple[str, ...]) -> str:
    """The sentence about files that were written outside."""
    more = f", and {len(paths) - SHOWN} more" if len(paths) > SHOWN else ""
    return f"it wrote outside its writable paths: {', '.join(paths[:SHOWN])}{more}"


def worktree(attempt: Attempt) -> Worktree:
    """The worktree of the attempt's task."""
    if not attempt.is_somewhere:
        raise UsageError("isolation in a worktree needs a directory in a git repository, and the task has none")
    return Worktree.of(attempt.site.name_of(attempt.session), attempt.source, attempt.site.state)


def _missing_environment(attempt: Attempt) -> list[str]:
    terms = attempt.task.terms
    of_host = attempt.reach.env_allowlist if attempt.reach is not None else ()
    given = {*BASE_ENVIRONMENT, *terms.environment_allowlist, *attempt.options.secrets, *of_host}
    there = attempt.house.secrets_for(tuple(name for name in terms.required_environment if name in given))
    return [name for name in terms.required_environment if name not in there]


async def _missing_files(attempt: Attempt, paths: tuple[str, ...]) -> list[str]:
    """Those that are not there, or lead out of the workspace."""
    if not paths:
        return []
    places = Places(artifacts="/nowhere", workspace=attempt.cwd, reference="/")
    looked = await look(attempt.site.transport, places, paths)
    return [path for path, found in zip(paths, looked.asked, strict=True) if found[0].kind in ("absent", "outside")]


def _mark_file(attempt: Attempt) -> str:
    return f"{attempt.hosted.directory}/workspace"


def _spaces(attempt: Attempt) -> Workspaces:
    return Workspaces(attempt.site.transport)
