"""Routes that change things: each is a verb of the command line, in the name of the token's owner."""

from __future__ import annotations

import os
from functools import partial
from typing import Annotated, Any

from litestar import Request, Response, post
from litestar.di import NamedDependency, Provide
from litestar.params import JSONBody, QueryParameter

from fleet.api.answers import NEEDS_OPERATE, Word, checked
from fleet.api.deeds import Deed, Subject, deed, first_deed
from fleet.api.views import Asking, Judgement, Reason, Reply, Restart, Stopped
from fleet.config.specs.document import parse
from fleet.errors import UsageError
from fleet.front.front import Front
from fleet.front.views import Add, Created
from fleet.model.ids import run_subject
from fleet.model.intent import Intent
from fleet.model.spec import DEFAULT_WORKERS
from fleet.projections.inspect import inspect
from fleet.projections.queue import TaskDetail

BY = "through the API"
NAMELESS = "For tasks that name none."
steering = partial(post, guards=NEEDS_OPERATE, dependencies={"deed": Provide(deed)})
making = partial(post, guards=NEEDS_OPERATE, dependencies={"deed": Provide(first_deed)})


def _task(word: str) -> Subject:
    return lambda reads: reads.find(word).uid


def _why(data: Reason | None, done: str) -> str:
    """The reason that was given; else what was done, and from where."""
    return (data and data.reason) or f"{done} {BY}"


@steering("/v1/fleet/workers/{worker_id:str}/interrupt", tags=["workers"], status_code=202)
async def interrupt(
    worker_id: Word, deed: NamedDependency[Deed], data: JSONBody[Reason | None] = None
) -> Response[Intent]:
    """End the session of a worker, a task or a session; its task waits for a person, and no attempt is used."""
    word, why = checked(worker_id), _why(data, "interrupted")
    return await deed.do(lambda front: front.interrupt(word, why), _task(word))


@steering("/v1/fleet/workers/{worker_id:str}/restart", tags=["workers"], status_code=200)
async def restart(
    worker_id: Word, deed: NamedDependency[Deed], data: JSONBody[Restart | None] = None
) -> Response[TaskDetail | Intent]:
    """Run a task again: end its live session first (202), or take back its end (200)."""
    word, said, why = checked(worker_id), data or Restart(), _why(data, "restarted")
    return await deed.do(
        lambda front: front.restart(word, why, force=said.force, abandon=said.abandon),
        lambda reads: inspect(reads, word).task,
    )


@steering("/v1/fleet/workers/{worker_id:str}/stop", tags=["workers"], status_code=200)
async def stop_task(
    worker_id: Word, deed: NamedDependency[Deed], data: JSONBody[Reason | None] = None
) -> Response[Stopped]:
    """Cancel a task, by its own id or that of its worker or session; what needs it is skipped."""
    word, why = checked(worker_id), _why(data, "stopped")
    return await deed.do(lambda front: front.stop(word, why), _task(word))


@steering("/v1/fleet/runs/{run_id:str}/stop", tags=["runs"], status_code=200)
async def stop_run(
    run_id: Word, deed: NamedDependency[Deed], data: JSONBody[Reason | None] = None
) -> Response[Stopped]:
    """Cancel what has not ended of a run; the run is then stopped."""
    word, why = checked(run_id), _why(data, "stopped")
    return await deed.do(
        lambda front: list(front.stop_run(word, why)), lambda reads: run_subject(reads.find_run(word).id)
    )


@steering("/v1/fleet/questions/{task_id:str}/answer", tags=["questions"], status_code=200)
async def reply(task_id: Word, deed: NamedDependency[Deed], data: JSONBody[Reply]) -> Response[TaskDetail]:
    """Answer what a task waits for; it is queued again. The first answer wins."""
    word = checked(task_id)
    return await deed.do(lambda front: front.answer(word, data.text), _task(word))


@steering("/v1/fleet/tasks/{task_id:str}/ask", tags=["questions"], status_code=200)
async def ask(task_id: Word, deed: NamedDependency[Deed], data: JSONBody[Asking]) -> Response[TaskDetail]:
    """Ask a person about a task that is not running; it is held until it is answered."""
    word = checked(task_id)
    return await deed.do(lambda front: front.ask(word, data.text), _task(word))


@steering("/v1/fleet/tasks/{task_id:str}/verify", tags=["tasks"], status_code=200)
async def verify(
    task_id: Word, deed: NamedDependency[Deed], data: JSONBody[Judgement | None] = None
) -> Response[TaskDetail]:
    """A person's verdict on a result; or, without one, have its verifier run again."""
    word, said = checked(task_id), data or Judgement()
    if said.passed is None:
        return await deed.do(lambda front: front.verify(word), _task(word))
    passed = said.passed
    return await deed.do(lambda front: front.judge(word, passed=passed, note=said.note), _task(word))


@making("/v1/fleet/stop", tags=["tasks"], status_code=200)
async def stop_all(deed: NamedDependency[Deed], data: JSONBody[Reason | None] = None) -> Response[Stopped]:
    """Cancel everything that has not ended."""
    why = _why(data, "stopped")
    return await deed.do(lambda front: list(front.stop_all(why)))


@making("/v1/fleet/runs", tags=["runs"], status_code=201)
async def create_run(
    request: Request[Any, Any, Any],
    deed: NamedDependency[Deed],
    data: JSONBody[dict[str, Any]],  # noqa: ARG001  # its bytes are read, with all their keys
    *,
    name: Annotated[str, QueryParameter(min_length=1, max_length=256, description="Where the spec has none.")] = "run",
    max_workers: Annotated[int, QueryParameter(ge=1, le=1000)] = DEFAULT_WORKERS,
    coder: Annotated[str | None, QueryParameter(min_length=1, max_length=128, description=NAMELESS)] = None,
    model: Annotated[str | None, QueryParameter(min_length=1, max_length=200, description=NAMELESS)] = None,
) -> Response[Created]:
    """Put the tasks of a spec in the queue, as one run; docs/reference/spec.md tells what a spec may say."""
    body = await request.body()

    def submit(front: Front) -> Created:
        return front.submit(parse(body, "json", source="the spec", stem=name), max_workers, coder=coder, model=model)

    return await deed.do(submit)


@making("/v1/fleet/tasks", tags=["tasks"], status_code=201)
async def add_task(deed: NamedDependency[Deed], data: JSONBody[Add]) -> Response[TaskDetail]:
    """Put one task in the queue, as `fleet add` does."""
    if data.cwd is not None and not os.path.isabs(data.cwd):
        raise UsageError("cwd must be a whole path: this server stands somewhere else than you")
    return await deed.do(lambda front: front.add(data), made=True)


ROUTES = [interrupt, restart, stop_task, stop_run, stop_all, create_run, add_task, reply, ask, verify]
