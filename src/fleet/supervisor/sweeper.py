"""The sweeper: what is left of sessions that a person gave up is ended, each as soon as its host answers.

Each at its own pace: a host that is slow gets the time that it needs, and nobody else waits for it for long.
"""

from __future__ import annotations

import asyncio
import contextlib

from fleet.errors import FleetError, TransportError
from fleet.model.intent import Intent
from fleet.model.session import Session
from fleet.supervisor.house import House

WAIT_SECONDS = 5.0  # for which nothing is claimed meanwhile: its task shall not begin again before
SWEEP_SECONDS = 120.0  # for the host to answer; that it is slow is no reason to begin again and again
AGAIN_SOON_SECONDS = 0.2  # between two looks whether it is swept by now, of a task that waits for it
AGAIN_SECONDS = 30.0  # until it is tried again, where no probe tells when that is worth it


class Sweeper:
    """The duty. `run` is the loop; `sweep` asks it for one."""

    def __init__(self, house: House) -> None:
        self._house = house
        self._again_at: dict[str, float] = {}  # by intent
        self._under_way: dict[str, asyncio.Event] = {}
        self._new: asyncio.Queue[tuple[Intent, Session]] = asyncio.Queue()

    async def run(self) -> None:
        """Until cancelled."""
        async with asyncio.TaskGroup() as group:
            while True:
                intent, session = await self._new.get()
                group.create_task(self._carry_out(intent, session))

    async def sweep(self, intent: Intent) -> None:
        """Begin with it, if its host is within our reach and may answer; then wait a moment for its end."""
        session = self._house.store.session(intent.args["session"])
        if intent.id in self._under_way or self._place(session) != self._house.place:
            return
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(WAIT_SECONDS):
                await self._begun(intent, session).wait()

    async def sweep_first(self, task: str) -> None:
        """What was given up of a task is ended before it begins again, where it can be, however long its grace.

        Whoever gave it up may have done so after we looked at what people ask, and before the task was claimed.
        """
        for intent in self._house.store.intents():
            if intent.verb == "sweep" and intent.target == task:
                await self._swept(intent)

    async def _swept(self, intent: Intent) -> None:
        """By us, or by another who is where the session was driven from. A host that falls silent gets a moment, no
        more: whoever gave it up knew that it may not answer."""
        loop, store = asyncio.get_running_loop(), self._house.store
        session, until = store.session(intent.args["session"]), loop.time() + WAIT_SECONDS
        place = self._place(session)
        while any(one.id == intent.id for one in store.intents()):
            if place == self._house.place:
                await self._begun(intent, session).wait()
            elif not any(one.machine == place for one in store.supervisors()):
                return
            if loop.time() >= until:
                return
            await asyncio.sleep(AGAIN_SOON_SECONDS)

    def _place(self, session: Session) -> str:
        """From where a session was driven: only from there its host may be within reach."""
        everybody = self._house.store.supervisors(present=False)
        return next((one.machine for one in everybody if one.id == session.supervisor), "")

    def _begun(self, intent: Intent, session: Session) -> asyncio.Event:
        """What is set when it has ended; where its host would not answer now, that is so at once."""
        house, now = self._house, asyncio.get_running_loop().time()
        ended = self._under_way.get(intent.id)
        if ended is not None:
            return ended
        ended = asyncio.Event()
        if now < self._again_at.get(intent.id, 0) or not house.hosts.may_answer(session.host):
            ended.set()
            return ended
        if session.host == house.machine:  # another is asked as soon as its probe was answered, before it gets new work
            self._again_at[intent.id] = now + AGAIN_SECONDS
        self._under_way[intent.id] = ended
        self._new.put_nowait((intent, session))
        return ended

    async def _carry_out(self, intent: Intent, session: Session) -> None:
        house = self._house
        try:
            async with asyncio.timeout(SWEEP_SECONDS):
                await end_what_is_left(house, session)
            await house.store.fulfil(intent.id, "done", by=house.name, detail=f"nothing of {session.id} is left")
        except (FleetError, OSError) as exc:
            why = str(exc) or "no answer in time"
            house.log("not_swept", session=session.id, error=why)
            if isinstance(exc, TransportError | TimeoutError):
                house.hosts.doubt(session.host, why)
            else:  # of the store, which may be away; or the host refuses it
                self._again_at[intent.id] = asyncio.get_running_loop().time() + AGAIN_SECONDS
        except Exception as exc:  # others are swept all the same
            house.log_fault("not_swept", exc, session=session.id)
            self._again_at[intent.id] = asyncio.get_running_loop().time() + AGAIN_SECONDS
        finally:
            self._under_way.pop(intent.id).set()


async def end_what_is_left(house: House, session: Session) -> None:
    """A session that nobody follows any more: it is not begun, or its agent and all it started are ended."""
    hosted = house.site(session.host).hosted(session)
    if not await hosted.abandon():
        await hosted.stop(grace_seconds=house.settings.supervisor.grace_seconds)
