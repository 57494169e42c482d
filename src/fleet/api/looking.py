"""Routes that look: runs, workers, tasks, sessions, logs, artifacts, receipts, questions, alerts, settings."""

from __future__ import annotations

from typing import Annotated, Any
from urllib.parse import quote

from litestar import Request, Response, get
from litestar.params import PathParameter, QueryParameter
from litestar.response import File

from fleet import __version__
from fleet.api.answers import NEEDS_ADMIN, NEEDS_READ, OfRun, Word, answer, checked, desk_of, raw, token_of
from fleet.api.views import Health, Me
from fleet.errors import NotFound, UsageError
from fleet.front.front import Front
from fleet.front.views import ConfigView, RunDetail, RunLive
from fleet.model.delivery import Delivery
from fleet.model.ids import run_subject
from fleet.model.session import Session
from fleet.model.states import TaskState
from fleet.policy.redaction import redacted
from fleet.projections import runs
from fleet.projections.board import Board
from fleet.projections.inspect import Inspection
from fleet.projections.logs import LogTail
from fleet.projections.queue import Question, TaskDetail, TaskLine, Wanted
from fleet.projections.receipts import Kept, ReceiptView
from fleet.projections.status import Status
from fleet.projections.why import Why
from fleet.projections.workers import RunWorkers, run_workers

Limit = Annotated[int, QueryParameter(ge=1, le=1000, description="At most so many.")]
MOST_LINES = 5000
BYTES = "application/octet-stream"
PAGES = "By age, and only those that follow this task; empty: from the beginning."


@get("/v1/fleet/health", tags=["health"], security=[{}], sync_to_thread=False)
def health() -> Response[Health]:
    """Whether the server answers. The one route that needs no token, and so tells nothing else."""
    return answer(Health(status="ok", version=__version__))


@get("/v1/fleet/me", tags=["health"], guards=NEEDS_READ, sync_to_thread=False)
def who_asks(request: Request[Any, Any, Any]) -> Response[Me]:
    """Whose token was shown, and what it is good for: a program need not offer what would be refused."""
    token = token_of(request)
    return answer(Me(name=token.name, role=token.role))


@get("/v1/fleet/status", tags=["runs"], guards=NEEDS_READ)
async def fleet_status(request: Request[Any, Any, Any], run: OfRun = None) -> Response[Status]:
    """Where everything stands: counts, runs that go on, what needs a person, supervisors."""
    only = None if run is None else checked(run)
    return answer(await desk_of(request).look(lambda front: front.status(only)))


@get("/v1/fleet/board", tags=["runs"], guards=NEEDS_READ)
async def whole_board(request: Request[Any, Any, Any]) -> Response[Board]:
    """What somebody who steers looks at: what needs them, what runs, what is queued, the hosts."""
    return answer(await desk_of(request).look(lambda front: front.board()))


@get("/v1/fleet/runs", tags=["runs"], guards=NEEDS_READ)
async def list_runs(request: Request[Any, Any, Any], limit: Limit = 50) -> Response[runs.RunList]:
    """The newest runs, and the counts of all tasks."""
    return raw(await desk_of(request).cached(f"runs {limit}", lambda reads: runs.newest(reads, limit)))


@get("/v1/fleet/runs/{run_id:str}", tags=["runs"], guards=NEEDS_READ)
async def one_run(
    request: Request[Any, Any, Any],
    run_id: Word,
    limit: Annotated[int, QueryParameter(ge=0, le=100_000, description="At most so many tasks; 0: none.")] = 200,
) -> Response[RunDetail]:
    """A run, and what came of its first tasks. Its ETag goes with `If-Match` on what steers it."""
    word = checked(run_id)
    view, seq = await desk_of(request).seen(
        lambda reads: run_subject(reads.find_run(word).id), lambda front: front.run(word, limit)
    )
    return answer(view, etag=seq)


@get("/v1/fleet/runs/{run_id:str}/live", tags=["runs"], guards=NEEDS_READ)
async def live_run(request: Request[Any, Any, Any], run_id: Word) -> Response[RunLive]:
    """A run while it goes on: how it stands, and what is in progress, the longest first."""
    word = checked(run_id)
    return answer(await desk_of(request).look(lambda front: front.live(word)))


@get("/v1/fleet/runs/{run_id:str}/workers", tags=["runs"], guards=NEEDS_READ)
async def workers_of_run(request: Request[Any, Any, Any], run_id: Word) -> Response[RunWorkers]:
    """The workers of a run: who is at which task."""
    word = checked(run_id)
    return answer(await desk_of(request).ask(lambda reads: run_workers(reads, word)))


@get("/v1/fleet/workers/{worker_id:str}", tags=["workers"], guards=NEEDS_READ)
async def one_worker(request: Request[Any, Any, Any], worker_id: Word) -> Response[Inspection]:
    """A worker at its task; a task or a session is taken too. Its ETag goes with `If-Match` on what steers it."""
    word = checked(worker_id)
    view = await desk_of(request).look(lambda front: front.inspect(word))
    return answer(view, etag=view.latest_event.seq if view.latest_event else 0)


@get("/v1/fleet/tasks", tags=["tasks"], guards=NEEDS_READ)
async def list_tasks(
    request: Request[Any, Any, Any],
    *,
    limit: Limit = 100,
    status: Annotated[list[TaskState] | None, QueryParameter(description="In these states; else in any.")] = None,
    run: OfRun = None,
    tag: Annotated[list[str] | None, QueryParameter(description="With all of these tags.")] = None,
    label: Annotated[list[str] | None, QueryParameter(description="With all of these labels, as NAME=VALUE.")] = None,
    meta: Annotated[list[str] | None, QueryParameter(description="With all of this metadata, as NAME=VALUE.")] = None,
    after: Annotated[str | None, QueryParameter(max_length=256, description=PAGES)] = None,
    newest: Annotated[bool, QueryParameter(description="By age, and the newest first.")] = False,
) -> Response[list[TaskLine]]:
    """Tasks, the most urgent and oldest first where states are given, else by age; by age too where `after` is given.

    To read all: begin with an empty `after`, and go on with the id of the last one until none comes. What is added
    meanwhile comes last; none comes twice.
    """
    wanted = None
    if run or tag or label or meta or newest or after is not None:
        only = None if run is None else checked(run)
        wanted = Wanted(
            run=only,
            labels=_pairs(label),
            tags=frozenset(tag or ()),
            metadata=_pairs(meta),
            after=None if after is None else checked(after),
            newest_first=newest,
        )
    states = frozenset(status) if status else None
    return answer(await desk_of(request).look(lambda front: front.tasks(states, limit, wanted)))


def _pairs(words: list[str] | None) -> dict[str, str]:
    split = [word.partition("=") for word in words or ()]
    if not all(name and eq for name, eq, _ in split):
        raise UsageError("labels and metadata are asked for as NAME=VALUE")
    return {name: value for name, _, value in split}


@get("/v1/fleet/tasks/{task_id:str}", tags=["tasks"], guards=NEEDS_READ)
async def one_task(request: Request[Any, Any, Any], task_id: Word) -> Response[TaskDetail]:
    """One task in full. Its ETag goes with `If-Match` on what changes it."""
    word = checked(task_id)
    view, seq = await desk_of(request).seen(lambda reads: reads.find(word).uid, lambda front: front.task(word))
    return answer(view, etag=seq)


@get("/v1/fleet/tasks/{task_id:str}/why", tags=["tasks"], guards=NEEDS_READ)
async def why_task(request: Request[Any, Any, Any], task_id: Word) -> Response[Why]:
    """Why a task is where it is, by what evidence, and what may be done."""
    word = checked(task_id)
    return answer(await desk_of(request).look(lambda front: front.why(word)))


@get("/v1/fleet/tasks/{task_id:str}/logs", tags=["tasks"], guards=NEEDS_READ)
async def logs_of_task(
    request: Request[Any, Any, Any],
    task_id: Word,
    lines: Annotated[int, QueryParameter(ge=1, le=MOST_LINES, description="How many records, from the end.")] = 100,
) -> Response[LogTail]:
    """The end of what the agent said; of one session, where its id is given."""
    word = checked(task_id)
    return answer(await desk_of(request).look(lambda front: front.logs(word, lines)))


@get("/v1/fleet/tasks/{task_id:str}/sessions", tags=["sessions"], guards=NEEDS_READ)
async def sessions_of_task(request: Request[Any, Any, Any], task_id: Word) -> Response[list[Session]]:
    """The attempts at a task, oldest first."""
    word = checked(task_id)
    return answer(await desk_of(request).ask(lambda reads: reads.sessions(task=reads.find(word).uid)))


@get("/v1/fleet/tasks/{task_id:str}/receipts", tags=["receipts"], guards=NEEDS_READ)
async def receipts_of_task(request: Request[Any, Any, Any], task_id: Word) -> Response[list[ReceiptView]]:
    """The verdicts on a task, oldest first."""
    word = checked(task_id)
    return answer(await desk_of(request).look(lambda front: front.receipts(word)))


@get("/v1/fleet/tasks/{task_id:str}/artifacts", tags=["artifacts"], guards=NEEDS_READ)
async def artifacts_of_task(request: Request[Any, Any, Any], task_id: Word) -> Response[list[Kept]]:
    """What a task left, by reference."""
    word = checked(task_id)
    return answer(await desk_of(request).look(lambda front: front.artifacts(word)))


@get("/v1/fleet/tasks/{task_id:str}/artifacts/{sha256:str}", tags=["artifacts"], guards=NEEDS_READ, media_type=BYTES)
async def download(
    request: Request[Any, Any, Any],
    task_id: Word,
    sha256: Annotated[str, PathParameter(pattern="^[0-9a-f]{64}$", description="Of one of its artifacts.")],
) -> File:
    """The bytes of an artifact that a receipt of the task refers to."""
    word = checked(task_id)

    def look(front: Front) -> Kept:
        for one in front.artifacts(word):
            if one.sha256 == sha256 and one.kept_at is not None:
                return one
        raise NotFound(f"{word} has left no artifact {sha256[:12]}..., or its content is gone")

    kept = await desk_of(request).look(look)
    name = quote(kept.path.rpartition("/")[2][:200] or kept.kind, safe="")
    return File(
        path=str(kept.kept_at),
        media_type=BYTES,  # never shown as a page, whatever an agent wrote
        headers={
            "content-disposition": f"attachment; filename*=UTF-8''{name}",
            "x-content-type-options": "nosniff",
            "content-security-policy": "default-src 'none'; sandbox",
            "etag": f'"{sha256}"',
        },
    )


@get("/v1/fleet/sessions", tags=["sessions"], guards=NEEDS_READ)
async def list_sessions(request: Request[Any, Any, Any]) -> Response[list[Session]]:
    """The sessions that are live now, the longest first."""
    return answer(await desk_of(request).ask(lambda reads: reads.sessions(live=True)))


@get("/v1/fleet/sessions/{session_id:str}", tags=["sessions"], guards=NEEDS_READ)
async def one_session(request: Request[Any, Any, Any], session_id: Word) -> Response[Session]:
    """One session."""
    word = checked(session_id)
    return answer(await desk_of(request).ask(lambda reads: reads.session(word)))


@get("/v1/fleet/runs/{run_id:str}/receipts", tags=["receipts"], guards=NEEDS_READ)
async def receipts_of_run(request: Request[Any, Any, Any], run_id: Word) -> Response[list[ReceiptView]]:
    """The verdicts on the tasks of a run, oldest first."""
    word = checked(run_id)
    return answer(await desk_of(request).look(lambda front: front.receipts(run=word)))


@get("/v1/fleet/questions", tags=["questions"], guards=NEEDS_READ)
async def list_questions(request: Request[Any, Any, Any]) -> Response[list[Question]]:
    """What agents ask of a person."""
    return answer(await desk_of(request).look(lambda front: front.questions()))


@get("/v1/fleet/alerts", tags=["alerts"], guards=NEEDS_READ)
async def list_alerts(request: Request[Any, Any, Any], limit: Limit = 50) -> Response[list[Delivery]]:
    """What people were told or are about to be, by which channel and with what outcome; the newest first."""
    return answer(await desk_of(request).ask(lambda reads: reads.alerts(limit=limit)))


@get("/v1/fleet/config", tags=["config"], guards=NEEDS_ADMIN)
async def config(request: Request[Any, Any, Any]) -> Response[ConfigView]:
    """The settings in force. They name secrets and hold none; what looks like one all the same is put out."""
    return answer(await desk_of(request).look(lambda front: redacted(front.config())))


ROUTES = [
    health,
    who_asks,
    fleet_status,
    whole_board,
    list_runs,
    one_run,
    live_run,
    workers_of_run,
    receipts_of_run,
    one_worker,
    list_tasks,
    one_task,
    why_task,
    logs_of_task,
    sessions_of_task,
    receipts_of_task,
    artifacts_of_task,
    download,
    list_sessions,
    one_session,
    list_questions,
    list_alerts,
    config,
]
