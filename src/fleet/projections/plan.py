"""The plan of a spec: in which order its tasks run, who takes them, and what each field will enforce."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence

import msgspec

from fleet.model.permission import Permission
from fleet.model.scorer import LATER
from fleet.model.session import changed_in_place
from fleet.model.spec import RunSpec, TaskSpec
from fleet.model.task import effective


class Enforced(msgspec.Struct, frozen=True):
    """A field that was given, and what will be done about it."""

    field: str
    how: str


class PlannedTask(msgspec.Struct, frozen=True, kw_only=True):
    """A task, before anything has happened."""

    id: str
    title: str
    level: int  # 1: it could start at once
    needs: tuple[str, ...]
    coder: str
    model: str | None
    cwd: str | None
    workers: tuple[str, ...]  # those that can take it
    waits_for_directory: bool  # another task works in its directory too: they take turns
    enforces: tuple[Enforced, ...]


class Plan(msgspec.Struct, frozen=True, kw_only=True):
    """What `fleet run` would do."""

    name: str
    labels: dict[str, str]
    max_workers: int
    levels: int
    tasks: tuple[PlannedTask, ...]


def plan(
    spec: RunSpec,
    *,
    max_workers: int,
    default_coder: str,
    default_model: str,
    permissions: Callable[[str, TaskSpec], Sequence[Permission]],
    shares: bool = False,
) -> Plan:
    """The plan of a spec that can be run."""
    levels = _levels(spec.tasks)
    planned = []
    news = [task.new() for task in spec.tasks]
    users = Counter(changed_in_place(new) for new in news)
    for task, new in zip(spec.tasks, news, strict=True):
        chosen = effective(new.coder, new.model, default_coder=default_coder, default_model=default_model)
        planned.append(
            PlannedTask(
                id=task.id,
                title=task.title,
                level=levels[task.id],
                needs=task.needs,
                coder=chosen.coder,
                model=chosen.model,
                cwd=task.cwd,
                workers=_workers(spec, task, max_workers),
                waits_for_directory=not shares and changed_in_place(new) is not None and users[new.cwd] > 1,
                enforces=(*_enforced(task), *_permitted(permissions(chosen.coder, task))),
            )
        )
    planned.sort(key=lambda each: each.level)
    return Plan(
        name=spec.name or "run",
        labels=spec.labels,
        max_workers=max_workers,
        levels=max(levels.values()),
        tasks=tuple(planned),
    )


def _levels(tasks: Sequence[TaskSpec]) -> dict[str, int]:
    """How many tasks must be completed, one after the other, before each: 1 for those that need nothing."""
    waiting = {task.id: len(set(task.needs)) for task in tasks}
    needed_by: dict[str, list[str]] = {}
    for task in tasks:
        for need in set(task.needs):
            needed_by.setdefault(need, []).append(task.id)
    levels: dict[str, int] = {}
    now, level = [name for name, left in waiting.items() if not left], 1
    while now:
        levels |= dict.fromkeys(now, level)
        after = []
        for name in now:
            for dependent in needed_by.get(name, ()):
                waiting[dependent] -= 1
                if not waiting[dependent]:
                    after.append(dependent)
        now, level = after, level + 1
    return levels


def _workers(spec: RunSpec, task: TaskSpec, max_workers: int) -> tuple[str, ...]:
    if not spec.workers:
        return (f"local slots 1 to {max_workers}",)
    wanted = set(task.worker.capabilities)
    return tuple(worker.title for worker in spec.workers if wanted.issubset(worker.capabilities))


def _permitted(permissions: Sequence[Permission]) -> Iterator[Enforced]:
    for each in permissions:
        yield Enforced(f"worker.{each.field}", f"{each.hold.value.replace('_', ' ')}: {each.why}")


def _obtained(task: TaskSpec) -> str:
    """What becomes of the repository that a task works in."""
    space = task.workspace
    branch = f"branch {space.branch}" if space.branch else "its default branch"
    there = "fetched" if task.isolation == "worktree" else "fetched and fast-forwarded, or the task fails"
    return f"cloned into {task.root} with git's own keys where absent, else {there}: {space.repository}, {branch}"


def _enforced(task: TaskSpec) -> Iterator[Enforced]:
    """What is checked, bounded or told, of the fields that were given."""
    space, budget = task.workspace, task.budget
    told = [name for name in ("description", "objective", "instructions", "context") if getattr(task, name)]
    told += ["worker.role"] if task.worker.role else []
    if told and not task.command:
        yield Enforced(", ".join(told), "told to the agent")
    if task.input_files:
        yield Enforced("input_files", f"given to the agent; skipped if missing: {', '.join(task.input_files)}")
    if task.worker.capabilities:
        yield Enforced("worker.capabilities", f"only a worker with {', '.join(task.worker.capabilities)} takes it")
    if space.repository:
        yield Enforced("workspace.repository", _obtained(task))
    if space.required_files:
        yield Enforced("workspace.required_files", f"skipped if missing: {', '.join(space.required_files)}")
    if isinstance(space.writable_paths, tuple):
        where = ", ".join(space.writable_paths) or "nothing but the artifact directory"
        yield Enforced("workspace.writable_paths", f"a write elsewhere fails the task; allowed: {where}")
    if space.environment.required:
        yield Enforced("workspace.environment.required", f"skipped if not set: {', '.join(space.environment.required)}")
    if space.environment.allowlist:
        yield Enforced("workspace.environment.allowlist", f"passed on: {', '.join(space.environment.allowlist)}")
    if task.isolation == "worktree":
        yield Enforced("isolation", "in a git worktree of its own; your checkout stays as it is until `fleet land`")
    if task.timeout_seconds:
        yield Enforced("timeout_seconds", f"a session is ended after {task.timeout_seconds} s, with a timeout receipt")
    if task.max_output_mb:
        yield Enforced("max_output_mb", f"a session that prints more than {task.max_output_mb:,} MB is ended")
    then = "waits for a person" if budget.on_exceeded == "pause" else "fails"
    for name in ("max_tokens", "max_tool_calls", "max_seconds", "max_usd", "idle_seconds"):
        if getattr(budget, name) is not None:
            yield Enforced(
                f"budget.{name}", f"beyond {getattr(budget, name):g} the session is ended and the task {then}"
            )
    if task.retry_policy:
        yield Enforced("retry_policy", _tries(task.retry_policy.max_attempts))
    if not task.retry_safe:
        yield Enforced("retry_safe", "not run again by itself once it has begun")
    if task.expected_artifacts:
        yield Enforced("expected_artifacts", f"missing ones fail the task: {', '.join(task.expected_artifacts)}")
    if task.scorer is not None:
        kind = str(task.scorer.__struct_config__.tag)
        later = "; partial until it is settled" if kind.removeprefix("code_whale_") in LATER else ""
        yield Enforced("scorer", f"the result counts by {kind}{later}")
    else:
        yield Enforced("scorer", "none: a good end passes, and is shown as unverified")


def _tries(most: int) -> str:
    return "tried once" if most == 1 else f"tried at most {most} times"
