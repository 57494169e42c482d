"""Routes that read what stands beside the tasks: what is ready, logs as bytes, usage, receipts of all, machines."""

from __future__ import annotations

from typing import Annotated, Any, BinaryIO, Literal

from litestar import Request, Response, get
from litestar.params import PathParameter, QueryParameter

from fleet.api.answers import NEEDS_READ, OfRun, Word, answer, checked, desk_of, raw
from fleet.api.hub import lines_of
from fleet.api.looking import BYTES, Limit
from fleet.api.views import EventLine
from fleet.control.landed import Tree
from fleet.errors import Conflict
from fleet.front.front import Front
from fleet.front.logs import MOST_TEXT
from fleet.front.views import LogView, SupervisorLog, TaskDiff, TaskFile, Used
from fleet.policy.redaction import redacted
from fleet.projections.availability import Availability
from fleet.projections.cost import By, Cost
from fleet.projections.hosts import HostView
from fleet.projections.left import LeftFile, left_files, open_left
from fleet.projections.machines import Machines
from fleet.projections.pools import PoolWorkerView
from fleet.projections.queue import ReadyLine
from fleet.projections.receipts import Checked, ReceiptView
from fleet.projections.supervision import Supervision
from fleet.projections.words import LastWords, last_words

MOST_BYTES = 1 << 20
MOST_DIFF = 8 << 20
OF_BYTES = {"cache-control": "no-store", "x-content-type-options": "nosniff"}
Offset = Annotated[int, QueryParameter(ge=0, le=1 << 62, description="Where to begin.")]
Length = Annotated[int, QueryParameter(ge=1, le=MOST_BYTES, description="At most so many bytes.")]
OfTask = Annotated[str | None, QueryParameter(min_length=1, max_length=256, description="Of this task alone.")]


@get("/v1/fleet/ready", tags=["tasks"], guards=NEEDS_READ)
async def ready(request: Request[Any, Any, Any], limit: Limit = 100) -> Response[list[ReadyLine]]:
    """What could start now, the most urgent and oldest first."""
    return answer(await desk_of(request).look(lambda front: front.ready(limit)))


@get("/v1/fleet/tasks/{task_id:str}/issue", tags=["tasks"], guards=NEEDS_READ)
async def issue(request: Request[Any, Any, Any], task_id: Word) -> Response[dict[str, Any]]:
    """A task as `fleet show --json` prints it: as `bd show` has it, with the task in full as `fleet`."""
    word = checked(task_id)
    return answer(await desk_of(request).look(lambda front: front.issue(word)))


@get("/v1/fleet/tasks/{task_id:str}/log", tags=["tasks"], guards=NEEDS_READ)
async def log_of_task(request: Request[Any, Any, Any], task_id: Word) -> Response[LogView]:
    """The log of a task, or of one of its sessions: its size, to read it as bytes."""
    word = checked(task_id)
    return answer(await desk_of(request).look(lambda front: front.log_view(word)))


@get("/v1/fleet/tasks/{task_id:str}/log/bytes", tags=["tasks"], guards=NEEDS_READ, media_type=BYTES)
async def bytes_of_log(
    request: Request[Any, Any, Any], task_id: Word, offset: Offset = 0, limit: Length = MOST_BYTES
) -> Response[bytes]:
    """A piece of the log of a task, as it stands in its file: a record of JSON on each line."""
    word = checked(task_id)

    def look(front: Front) -> bytes:
        try:
            return _piece(front.open_log(front.log_view(word)), offset, limit)
        except FileNotFoundError:
            return b""

    return Response(await desk_of(request).look(look), media_type=BYTES, headers=OF_BYTES)


@get("/v1/fleet/tasks/{task_id:str}/files", tags=["tasks"], guards=NEEDS_READ)
async def files_of_task(request: Request[Any, Any, Any], task_id: Word) -> Response[list[LeftFile]]:
    """The files of a task on the server's machine: what its agent left, kept as evidence or not, and its stderr."""
    word, home = checked(task_id), desk_of(request).home
    return answer(await desk_of(request).ask(lambda reads: left_files(home, reads.find(word).uid)))


@get("/v1/fleet/tasks/{task_id:str}/files/bytes", tags=["tasks"], guards=NEEDS_READ, media_type=BYTES)
async def bytes_of_file(
    request: Request[Any, Any, Any],
    task_id: Word,
    path: Annotated[str, QueryParameter(min_length=1, max_length=4096, description="As it is listed.")],
    offset: Offset = 0,
    limit: Length = MOST_BYTES,
) -> Response[bytes]:
    """A piece of one of those files."""
    word, home = checked(task_id), desk_of(request).home
    data = await desk_of(request).ask(
        lambda reads: _piece(open_left(home, reads.find(word).uid, path), offset, limit),
    )
    return Response(data, media_type=BYTES, headers=OF_BYTES)


def _piece(opened: BinaryIO, offset: int, limit: int) -> bytes:
    with opened:
        opened.seek(offset)
        return opened.read(limit)


@get("/v1/fleet/tasks/{task_id:str}/files/{what:str}", tags=["tasks"], guards=NEEDS_READ)
async def file_of_task(
    request: Request[Any, Any, Any],
    task_id: Word,
    what: Annotated[Literal["plan", "knowledge", "qa", "stderr"], PathParameter(description="Which of its files.")],
    limit: Annotated[int, QueryParameter(ge=1, le=MOST_TEXT, description="At most so many bytes of it.")] = MOST_TEXT,
) -> Response[TaskFile]:
    """What the agent of a task wrote of it, or its program complained about; no text where there is none yet."""
    word = checked(task_id)
    return answer(await desk_of(request).look(lambda front: front.file(word, what, limit)))


@get("/v1/fleet/tasks/{task_id:str}/diff", tags=["tasks"], guards=NEEDS_READ)
async def diff_of_task(request: Request[Any, Any, Any], task_id: Word) -> Response[TaskDiff]:
    """What a task changed in its own worktree, committed or not; what looks like a secret in it is put out."""
    word = checked(task_id)

    def look(front: Front) -> TaskDiff:
        found = front.diff(word)
        if len(found.diff) > MOST_DIFF:
            hint = f"look at it where the home is: fleet task {found.task} diff"
            raise Conflict(f"what {found.task} changed is more than {MOST_DIFF >> 20} MiB", hint=hint)
        return redacted(found)

    return answer(await desk_of(request).reach(look))


@get("/v1/fleet/worktrees", tags=["tasks"], guards=NEEDS_READ)
async def worktrees(
    request: Request[Any, Any, Any],
    host: Annotated[str | None, QueryParameter(min_length=1, max_length=256, description="On this host.")] = None,
) -> Response[list[Tree]]:
    """The worktrees of tasks on the server's machine, or on another host, which is asked for them."""
    name = "" if host is None else checked(host)
    return answer(await desk_of(request).reach(lambda front: front.worktrees(name)))


@get("/v1/fleet/tasks/{task_id:str}/events", tags=["tasks"], guards=NEEDS_READ)
async def events_of_task(request: Request[Any, Any, Any], task_id: Word) -> Response[list[EventLine]]:
    """What the ledger says of a task, oldest first."""
    word = checked(task_id)

    return raw(await desk_of(request).ask(lambda reads: lines_of(reads, reads.chain(reads.find(word).uid))))


@get("/v1/fleet/tasks/{task_id:str}/used", tags=["sessions"], guards=NEEDS_READ)
async def used(
    request: Request[Any, Any, Any],
    task_id: Word,
    session: Annotated[str | None, QueryParameter(max_length=256, description="This one; else the last.")] = None,
) -> Response[Used | None]:
    """What a session of a task has used so far; null where there was none."""
    word = checked(task_id)
    return answer(await desk_of(request).look(lambda front: front.used(front.task(word).id, session)))


@get("/v1/fleet/words", tags=["sessions"], guards=NEEDS_READ)
async def words(request: Request[Any, Any, Any]) -> Response[list[LastWords]]:
    """What each agent that is at work has said or begun last: of its log only the end is read."""
    desk = desk_of(request)
    return answer(await desk.ask(lambda reads: last_words(reads, desk.home)))


@get("/v1/fleet/receipts", tags=["receipts"], guards=NEEDS_READ)
async def receipts(
    request: Request[Any, Any, Any], task: OfTask = None, run: OfRun = None
) -> Response[list[ReceiptView]]:
    """The verdicts on a task, on the tasks of a run, or all; oldest first."""
    words = [None if word is None else checked(word) for word in (task, run)]
    return answer(await desk_of(request).look(lambda front: front.receipts(*words)))


@get("/v1/fleet/receipts/check", tags=["receipts"], guards=NEEDS_READ)
async def check(
    request: Request[Any, Any, Any],
    id: Annotated[list[str] | None, QueryParameter(description="Receipts or tasks; all where none is given.")] = None,
) -> Response[list[Checked]]:
    """Whether receipts still hold: checksums computed again, scorers that need no session run again."""
    words = [checked(word) for word in id or ()]
    return answer(await desk_of(request).look(lambda front: front.check(words)))


@get("/v1/fleet/hosts", tags=["hosts"], guards=NEEDS_READ)
async def hosts(request: Request[Any, Any, Any]) -> Response[list[HostView]]:
    """What is known of each machine that sessions run on, since when, and by what evidence."""
    return answer(await desk_of(request).look(lambda front: front.hosts()))


@get("/v1/fleet/machines", tags=["hosts"], guards=NEEDS_READ)
async def machines(request: Request[Any, Any, Any]) -> Response[Machines]:
    """The declared machines and whether each is well, by its last probe."""
    return answer(await desk_of(request).look(lambda front: front.machines()))


@get("/v1/fleet/machines/availability", tags=["hosts"], guards=NEEDS_READ)
async def availability(
    request: Request[Any, Any, Any],
    since: Annotated[int, QueryParameter(ge=0, le=1 << 62, description="From then on: UTC milliseconds.")],
) -> Response[dict[str, Availability]]:
    """How each declared machine has answered over time, by its probes."""
    return answer(await desk_of(request).look(lambda front: front.availability(since)))


@get("/v1/fleet/cost", tags=["receipts"], guards=NEEDS_READ)
async def cost(
    request: Request[Any, Any, Any],
    since: Annotated[int, QueryParameter(ge=0, le=1 << 62, description="From then on: UTC milliseconds.")],
    by: Annotated[By, QueryParameter(description="What it is divided by.")] = "coder",
    day: Annotated[
        list[str] | None,
        QueryParameter(max_items=400, description="When each day begins, such as 2026-01-31T00:00:00+01:00; by=day."),
    ] = None,
) -> Response[Cost]:
    """What the sessions spent that ended since a moment: money, tokens, time; and, beside it, what runs so far."""
    desk, days = desk_of(request), tuple(day or ())
    return answer(await desk.reach(lambda _: desk.sums.cost(desk.store, since, by, days)))


@get("/v1/fleet/pools/workers", tags=["pools"], guards=NEEDS_READ)
async def pool_workers(
    request: Request[Any, Any, Any],
    pool: Annotated[str | None, QueryParameter(min_length=1, max_length=256, description="Of this pool alone.")] = None,
    worker: Annotated[str | None, QueryParameter(min_length=1, max_length=256, description="This one alone.")] = None,
) -> Response[list[PoolWorkerView]]:
    """What each worker of a pool does, since when, and by what evidence: its machine is asked, and is not woken."""
    words = [None if word is None else checked(word) for word in (pool, worker)]
    found = await desk_of(request).reach(lambda front: front.pool_workers(*words))
    return answer([redacted(one) for one in found])


@get("/v1/fleet/supervisors", tags=["health"], guards=NEEDS_READ)
async def supervisors(request: Request[Any, Any, Any]) -> Response[Supervision]:
    """Who supervises, where, and with how many sessions."""
    return answer(await desk_of(request).look(lambda front: front.supervision()))


@get("/v1/fleet/log", tags=["health"], guards=NEEDS_READ)
async def log(
    request: Request[Any, Any, Any],
    lines: Annotated[int | None, QueryParameter(ge=1, le=1 << 31, description="Only so many, from the end.")] = None,
) -> Response[SupervisorLog]:
    """The supervisor's own log."""
    return answer(await desk_of(request).look(lambda front: front.supervisor_log(lines)))


ROUTES = [
    ready,
    issue,
    log_of_task,
    bytes_of_log,
    files_of_task,
    bytes_of_file,
    file_of_task,
    diff_of_task,
    worktrees,
    events_of_task,
    used,
    words,
    receipts,
    check,
    hosts,
    machines,
    availability,
    cost,
    pool_workers,
    supervisors,
    log,
]
