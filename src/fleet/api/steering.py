"""Routes that change things: each is a verb of the command line, in the name of the token's owner."""

from __future__ import annotations

import os
from collections.abc import Callable
from http import HTTPStatus
from typing import Annotated, Any

import msgspec
from litestar import Request, Response, post
from litestar.params import HeaderParameter, JSONBody, QueryParameter

from fleet.api.answers import NEEDS_OPERATE, Word, checked, desk_of, raw, token_of
from fleet.api.desk import Desk, encode
from fleet.api.looking import task_view
from fleet.api.once import Answer, digest
from fleet.api.views import Add, Created, Judgement, Reason, Reply, Restart, Stopped
from fleet.config.specs.document import parse
from fleet.control.control import Control
from fleet.control.specs import take_spec
from fleet.errors import Conflict, FleetError, UsageError
from fleet.model.ids import run_subject
from fleet.model.intent import Intent
from fleet.model.spec import DEFAULT_WORKERS
from fleet.model.task import NewTask, Task
from fleet.projections.inspect import inspect
from fleet.projections.queue import TaskDetail
from fleet.projections.runs import run_view
from fleet.store.reads import Reads

BY = "through the API"
Done = tuple[int, object, int | None]  # the status, the view, and the sequence for its ETag
Subject = Callable[[Reads], str]
Key = Annotated[
    str | None,
    HeaderParameter(name="Idempotency-Key", description="The same key again gives the same answer, and does nothing."),
]
Match = Annotated[
    str | None,
    HeaderParameter(name="If-Match", description="The ETag under which it was seen; 409 where it has moved on since."),
]


async def act(
    request: Request[Any, Any, Any],
    verb: Callable[[Control], Done],
    *,
    key: str | None,
    match: str | None = None,
    subject: Subject | None = None,
) -> Response[Any]:
    """Do it, once for each key, and only while its subject is as it was seen."""
    desk, who = desk_of(request), token_of(request).name
    asked = digest(request.method, request.url.path, request.scope["query_string"], await request.body())
    found = await desk.act(lambda: _once(desk, who, key, asked, lambda: _done(desk, who, match, verb, subject)))
    return raw(found.body, status=found.status, etag=found.etag)


def _once(desk: Desk, who: str, key: str | None, asked: str, do: Callable[[], Done]) -> Answer:
    if key is None:
        return _answer(asked, do())
    before = desk.once.begin(who, key, asked)
    if before is not None:
        return before
    try:
        done = do()
    except FleetError:  # what raises has changed nothing
        desk.once.undone(who, key)
        raise
    made = _answer(asked, done)
    desk.once.done(who, key, made)
    return made


def _answer(asked: str, done: Done) -> Answer:
    status, view, seq = done
    return Answer(request=asked, status=status, body=encode(view), etag="" if seq is None else f'"{seq}"')


def _done(desk: Desk, who: str, match: str | None, verb: Callable[[Control], Done], subject: Subject | None) -> Done:
    store = desk.store
    if match is not None and match.strip() != "*":
        if subject is None:
            raise UsageError("there is nothing yet that If-Match could be about")
        store = store.unmoved(subject(store), _sequence(match))
    return verb(desk.control(store, desk.settings(), who))


def _sequence(match: str) -> int:
    word = match.strip().removeprefix('"').removesuffix('"')
    if not (word.isascii() and word.isdecimal()) or len(word) > 18:
        raise Conflict("that is no ETag of this thing as it is now")
    return int(word)


def _of_task(word: str) -> Subject:
    return lambda reads: reads.find(word).uid


def _told(desk: Desk, control: Control, decided: Task | Intent) -> Done:
    """The task after the decision; or, with 202, the wish that its supervisor has yet to carry out."""
    if isinstance(decided, Intent):
        return HTTPStatus.ACCEPTED, decided, control.reads.newest(decided.target)
    return HTTPStatus.OK, *task_view(desk, control.reads, decided)


@post("/v1/fleet/workers/{worker_id:str}/interrupt", tags=["workers"], guards=NEEDS_OPERATE, status_code=202)
async def interrupt(
    request: Request[Any, Any, Any],
    worker_id: Word,
    data: JSONBody[Reason | None] = None,
    key: Key = None,
    match: Match = None,
) -> Response[Intent]:
    """End the session of a worker, a task or a session; its task waits for a person, and no attempt is used."""
    desk, word = desk_of(request), checked(worker_id)
    why = (data and data.reason) or f"interrupted {BY}"
    return await act(
        request,
        lambda control: _told(desk, control, control.steer.interrupt(word, why)),
        key=key,
        match=match,
        subject=_of_task(word),
    )


@post("/v1/fleet/workers/{worker_id:str}/restart", tags=["workers"], guards=NEEDS_OPERATE, status_code=200)
async def restart(
    request: Request[Any, Any, Any],
    worker_id: Word,
    data: JSONBody[Restart | None] = None,
    key: Key = None,
    match: Match = None,
) -> Response[TaskDetail | Intent]:
    """Run a task again: end its live session first (202), or take back its end (200)."""
    desk, word, asked = desk_of(request), checked(worker_id), data or Restart()
    why = asked.reason or f"restarted {BY}"

    def verb(control: Control) -> Done:
        uid = inspect(control.reads, word).task  # also by the name of a worker that is at no task any more
        again = control.steer.abandon if asked.abandon else control.steer.restart
        return _told(desk, control, again(uid, why, force=asked.force))

    return await act(request, verb, key=key, match=match, subject=lambda reads: inspect(reads, word).task)


@post("/v1/fleet/workers/{worker_id:str}/stop", tags=["workers"], guards=NEEDS_OPERATE, status_code=200)
async def stop_task(
    request: Request[Any, Any, Any],
    worker_id: Word,
    data: JSONBody[Reason | None] = None,
    key: Key = None,
    match: Match = None,
) -> Response[Stopped]:
    """Cancel a task, by its own id or that of its worker or session; what needs it is skipped."""
    desk, word = desk_of(request), checked(worker_id)
    why = (data and data.reason) or f"stopped {BY}"
    return await act(
        request,
        lambda control: _stopped(desk, control, control.steer.stop(word, why)),
        key=key,
        match=match,
        subject=_of_task(word),
    )


@post("/v1/fleet/runs/{run_id:str}/stop", tags=["runs"], guards=NEEDS_OPERATE, status_code=200)
async def stop_run(
    request: Request[Any, Any, Any],
    run_id: Word,
    data: JSONBody[Reason | None] = None,
    key: Key = None,
    match: Match = None,
) -> Response[Stopped]:
    """Cancel what has not ended of a run; the run is then stopped."""
    desk, word = desk_of(request), checked(run_id)
    why = (data and data.reason) or f"stopped {BY}"
    return await act(
        request,
        lambda control: _stopped(desk, control, control.steer.stop_run(word, why)),
        key=key,
        match=match,
        subject=lambda reads: run_subject(reads.find_run(word).id),
    )


def _stopped(desk: Desk, control: Control, decided: list[Task | Intent]) -> Done:
    views = [msgspec.structs.asdict(_told(desk, control, one)[1]) for one in decided]  # type: ignore[arg-type]
    waits = any(isinstance(one, Intent) for one in decided)
    return HTTPStatus.ACCEPTED if waits else HTTPStatus.OK, Stopped(stopped=views), None


@post("/v1/fleet/runs", tags=["runs"], guards=NEEDS_OPERATE, status_code=201)
async def create_run(
    request: Request[Any, Any, Any],
    data: JSONBody[dict[str, Any]],  # noqa: ARG001  # its bytes are read, with all their keys
    max_workers: Annotated[int, QueryParameter(ge=1, le=1000)] = DEFAULT_WORKERS,
    key: Key = None,
) -> Response[Created]:
    """Put the tasks of a spec in the queue, as one run; docs/reference/spec.md tells what a spec may say."""
    desk, body = desk_of(request), await request.body()

    def verb(control: Control) -> Done:
        settings = desk.settings()
        hosts = {host.name: host.kind for host in settings.hosts}
        document = parse(body, "json", source="the spec")
        read = take_spec(document, base=desk.base, coders=desk.coders(settings), hosts=hosts)
        made = control.submit(read.spec, max_workers=max_workers, base=desk.base)
        reads = control.reads
        view = Created(
            run=run_view(reads, made.run.id),
            tasks={task.task_id: task.uid for task in made.tasks},
            warnings=read.warnings,
            supervisors=[one.id for one in reads.supervisors()],
        )
        return HTTPStatus.CREATED, view, reads.newest(run_subject(made.run.id))

    return await act(request, verb, key=key)


@post("/v1/fleet/tasks", tags=["tasks"], guards=NEEDS_OPERATE, status_code=201)
async def add_task(request: Request[Any, Any, Any], data: JSONBody[Add], key: Key = None) -> Response[TaskDetail]:
    """Put one task in the queue, as `fleet add` does."""
    desk = desk_of(request)

    def verb(control: Control) -> Done:
        if data.cwd is not None and not os.path.isabs(data.cwd):
            raise UsageError("cwd must be a whole path: this server stands somewhere else than you")
        task = control.add(
            NewTask(
                title=data.title,
                description=data.description,
                coder=data.coder,
                model=data.model,
                cwd=data.cwd,
                priority=data.priority,
                needs=tuple(data.needs),
                labels=data.labels,
            )
        )
        return HTTPStatus.CREATED, *task_view(desk, control.reads, task)

    return await act(request, verb, key=key)


@post("/v1/fleet/questions/{task_id:str}/answer", tags=["questions"], guards=NEEDS_OPERATE, status_code=200)
async def reply(
    request: Request[Any, Any, Any], task_id: Word, data: JSONBody[Reply], key: Key = None, match: Match = None
) -> Response[TaskDetail]:
    """Answer what a task waits for; it is queued again. The first answer wins."""
    desk, word = desk_of(request), checked(task_id)
    return await act(
        request,
        lambda control: _told(desk, control, control.answer(word, data.text)),
        key=key,
        match=match,
        subject=_of_task(word),
    )


@post("/v1/fleet/tasks/{task_id:str}/verify", tags=["tasks"], guards=NEEDS_OPERATE, status_code=200)
async def verify(
    request: Request[Any, Any, Any],
    task_id: Word,
    data: JSONBody[Judgement | None] = None,
    key: Key = None,
    match: Match = None,
) -> Response[TaskDetail]:
    """A person's verdict on a result; or, without one, have its verifier run again."""
    desk, word, said = desk_of(request), checked(task_id), data or Judgement()

    def verb(control: Control) -> Done:
        if said.passed is None:
            return _told(desk, control, control.verify(word))
        return _told(desk, control, control.judge(word, passed=said.passed, note=said.note))

    return await act(request, verb, key=key, match=match, subject=_of_task(word))


ROUTES = [interrupt, restart, stop_task, stop_run, create_run, add_task, reply, verify]
