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
        house, now = self._house, asyncio.get_running_loop().time()
        session = house.store.session(intent.args["session"])
        near = {one.id for one in house.store.supervisors(present=False) if one.machine == house.place}
        if session.supervisor not in near or now < self._again_at.get(intent.id, 0):
            return
        if intent.id in self._under_way or not house.hosts.may_answer(session.host):
            return
        if session.host == house.machine:  # another is asked as soon as its probe was answered, before it gets new work
            self._again_at[intent.id] = now + AGAIN_SECONDS
        ended = self._under_way[intent.id] = asyncio.Event()
        self._new.put_nowait((intent, session))
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(WAIT_SECONDS):
                await ended.wait()

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
        finally:
            self._under_way.pop(intent.id).set()


async def end_what_is_left(house: House, session: Session) -> None:
    """A session that nobody follows any more: it is not begun, or its agent and all it started are ended."""
    hosted = house.site(session.host).hosted(session)
    if not await hosted.abandon():
        await hosted.stop(grace_seconds=house.settings.supervisor.grace_seconds)
