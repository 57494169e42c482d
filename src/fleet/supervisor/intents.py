"""Intents: what people asked for is carried out, or refused with its reason; each once."""

from __future__ import annotations

from collections.abc import Mapping

from fleet.errors import Conflict, LeaseLost
from fleet.model import event as ev
from fleet.model.intent import Intent
from fleet.model.states import ENDED, IN_PROGRESS, TaskState
from fleet.model.task import Task
from fleet.supervisor.house import House
from fleet.supervisor.runner import SessionRunner
from fleet.supervisor.sweeper import Sweeper
from fleet.supervisor.wish import Wish

# Where the task stands when the intent is carried out. A crash may come between that and the note of it.
DONE = {
    "stop": frozenset({TaskState.CANCELLED}),
    "interrupt": frozenset({TaskState.BLOCKED, TaskState.PARTIAL}),  # partial: its verifier was interrupted
    "restart": frozenset({TaskState.QUEUED}),
}


class Intents:
    """The duty: what people asked for and nobody has dealt with yet."""

    def __init__(self, house: House, sweeper: Sweeper) -> None:
        self._house = house
        self._sweeper = sweeper

    async def run_once(self, running: Mapping[str, SessionRunner]) -> None:
        """Every intent that is still to be dealt with."""
        for intent in self._house.store.intents():
            if intent.verb == "sweep":
                runner = running.get(intent.args["session"])
                if runner is not None:
                    runner.attempt.abandoned = True
                await self._sweeper.sweep(intent)
            else:
                await _carry_out(self._house, intent, running)


async def _carry_out(house: House, intent: Intent, running: Mapping[str, SessionRunner]) -> None:
    task = house.store.task(intent.target)
    runner = running.get(task.session or "")
    if runner is not None and intent.verb == "restart" and _began_since(house, intent, runner.session.id):
        await house.store.fulfil(intent.id, "done", by=house.name, detail=f"{runner.session.id} has begun")
    elif runner is not None:
        runner.end(Wish(intent.verb, _reason(intent), by=intent.by, intent=intent.id))
    elif task.state not in IN_PROGRESS:
        await _without_session(house, intent, task)


async def _without_session(house: House, intent: Intent, task: Task) -> None:
    """Its session ended before it could be told to: what was wanted is done to the task, where it still can be."""
    store, by = house.store, house.name
    try:
        if task.state not in DONE.get(intent.verb, frozenset()) and task.state not in ENDED:
            if intent.verb == "stop":
                task = await store.cancel(task.uid, _reason(intent), by=intent.by)
            elif intent.verb == "interrupt":
                task = await store.block(task.uid, "interrupted", _reason(intent), by=intent.by)
            elif intent.verb == "restart":
                task = await store.requeue(task.uid, _reason(intent), by=intent.by)
    except LeaseLost:
        raise
    except Conflict as exc:
        if store.task(task.uid).state in IN_PROGRESS:
            return  # it was claimed in between: the next round has its session
        await store.fulfil(intent.id, "refused", by=by, detail=str(exc))
        return
    did = "done" if task.state in DONE.get(intent.verb, frozenset()) else "refused"
    await store.fulfil(intent.id, did, by=by, detail=f"the task is {task.state.value}")


def _began_since(house: House, intent: Intent, session: str) -> bool:
    """Whether a session was claimed after the intent, by the order of the ledger: it is then the one asked for."""
    asked = False
    for entry in house.store.chain(intent.target):
        match entry.event:
            case ev.IntentRecorded(intent=found) if found.id == intent.id:
                asked = True
            case ev.TaskClaimed(session=found) if found.id == session:
                return asked
    return False


def _reason(intent: Intent) -> str:
    return intent.args.get("reason") or f"{intent.verb} asked by {intent.by}"
