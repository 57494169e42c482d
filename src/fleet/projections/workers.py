"""The workers of a run: who is at which task now, and who has nothing to do."""

from __future__ import annotations

import msgspec

from fleet.model.session import Session
from fleet.store.reads import Reads


class WorkerView(msgspec.Struct, frozen=True, kw_only=True):
    """A worker of a run. Without a session it is idle."""

    worker: str
    state: str  # of its session, else idle
    capabilities: tuple[str, ...]
    max_tasks: int
    task: str | None
    task_id: str | None
    session: str | None
    attempt: int | None
    coder: str | None
    model: str | None
    host: str | None
    claimed_at: int | None


class RunWorkers(msgspec.Struct, frozen=True, kw_only=True):
    """Who works on a run."""

    run_id: str
    workers: list[WorkerView]


def run_workers(reads: Reads, word: str) -> RunWorkers:
    """The workers that a run declares, and every slot that is at one of its tasks."""
    run = reads.find_run(word)
    live = [session for session in reads.sessions(live=True) if session.run == run.id]
    tasks = reads.tasks_by_uid({session.task for session in live})
    declared = {worker.name: worker for worker in run.workers}
    found = []
    for session in live:
        about = declared.get(session.worker) or declared.get(session.worker.rpartition("#")[0])
        capabilities, most = (about.capabilities, about.max_tasks) if about else ((), 1)
        found.append(_view(session.worker, capabilities, most, session, tasks[session.task].task_id))
    busy = {view.worker for view in found} | {view.worker.rpartition("#")[0] for view in found}
    found += [_view(name, one.capabilities, one.max_tasks) for name, one in declared.items() if name not in busy]
    return RunWorkers(run_id=run.id, workers=sorted(found, key=lambda view: view.worker))


def _view(
    worker: str, capabilities: tuple[str, ...], most: int, session: Session | None = None, task_id: str | None = None
) -> WorkerView:
    return WorkerView(
        worker=worker,
        state=session.state.value if session else "idle",
        capabilities=capabilities,
        max_tasks=most,
        task=session.task if session else None,
        task_id=task_id,
        session=session.id if session else None,
        attempt=session.epoch if session else None,
        coder=session.coder if session else None,
        model=session.model if session else None,
        host=session.host if session else None,
        claimed_at=session.claimed_at if session else None,
    )
