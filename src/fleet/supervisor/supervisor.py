"""The supervisor's life: join, rescue, loop, leave."""

from __future__ import annotations

import asyncio
import contextlib
import os

import msgspec

from fleet.config.load import load
from fleet.errors import ConfigError, Fenced, FleetError, LeaseLost
from fleet.model.intent import Intent
from fleet.model.session import Session
from fleet.model.states import IN_PROGRESS, TaskState
from fleet.model.task import Task
from fleet.store.engine import Bell
from fleet.supervisor.claimer import Claimer
from fleet.supervisor.house import House
from fleet.supervisor.runner import SessionRunner, Wish

LEASE_SECONDS = 30.0
LOOK_SECONDS = 1.0  # the safety net; the bell wakes us at once
RESCUE_SECONDS = 10.0
LOOKED_AT = 1000


class Supervised(msgspec.Struct, frozen=True, kw_only=True):
    """What a supervisor did, when it ends."""

    sessions: int
    left_running: int


class Supervisor:
    """Takes ready tasks and drives their sessions until it is told to stop."""

    def __init__(self, house: House, *, drain: bool = False) -> None:
        self.house = house
        self._drain = drain
        self._claimer = Claimer(house)
        self._running: dict[str, SessionRunner] = {}  # by session
        self._tasks: dict[str, asyncio.Task[None]] = {}
        self._stopping = asyncio.Event()
        self._stop_agents = False
        self._sessions = 0
        self._failure: BaseException | None = None
        self._toml_seen: int | None = None

    def stop(self, *, agents: bool = False) -> None:
        """Stop claiming and leave; the agents run on unless they are to be stopped too."""
        self._stop_agents = self._stop_agents or agents
        self._stopping.set()
        self.house.wake.set()

    async def run(self) -> Supervised:
        """The whole life."""
        house = self.house
        await house.store.join(house.name, machine=house.machine, pid=os.getpid(), seconds=LEASE_SECONDS)
        house.log("supervisor_started", supervisor=house.name, pid=os.getpid())
        bell = house.store.listen()
        loop = asyncio.get_running_loop()
        loop.add_reader(bell.fileno(), self._rung, bell)
        keeper = loop.create_task(self._keep_lease())
        try:
            await self._main_loop()
            await self._shut_down()
        finally:
            keeper.cancel()
            loop.remove_reader(bell.fileno())
            bell.close()
            with contextlib.suppress(FleetError):
                await house.store.leave(house.name, reason="ended")
            house.log("supervisor_ended", supervisor=house.name, left_running=len(self._running))
        if self._failure is not None:
            raise self._failure
        return Supervised(sessions=self._sessions, left_running=len(self._running))

    async def _main_loop(self) -> None:
        rescued_at = -RESCUE_SECONDS
        loop = asyncio.get_running_loop()
        while not self._stopping.is_set():
            self.house.wake.clear()
            self._reload_settings()
            if loop.time() - rescued_at >= RESCUE_SECONDS:
                rescued_at = loop.time()
                await self._rescue()
            await self._carry_out_intents()
            busy = {runner.session.worker for runner in self._running.values()}
            for claimed in await self._claimer.run_once(busy):
                self._start(claimed.task, claimed.session, attach=False)
            if self._drain and not self._running and not self._more_to_come():
                return
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(LOOK_SECONDS):
                    await self.house.wake.wait()

    def _more_to_come(self) -> bool:
        """Whether something is ready, or will be by itself once its time has come."""
        queued = self.house.store.tasks(frozenset({TaskState.QUEUED}), limit=LOOKED_AT)
        return any(task.not_before is not None for task in queued) or bool(self.house.store.ready(limit=1))

    async def _rescue(self) -> None:
        """Take over the sessions of supervisors that are gone, where their host is ours."""
        store, house = self.house.store, self.house
        for gone in await store.expire(by=house.name):
            house.log("supervisor_gone", supervisor=gone.id)
        for orphan in store.orphans():
            if orphan.host != house.machine:
                continue
            try:
                adopted = await store.adopt(orphan.id, house.name)
            except FleetError as exc:
                house.log("not_adopted", session=orphan.id, error=str(exc))
                continue
            house.log("session_adopted", session=adopted.id, epoch=adopted.epoch)
            self._start(store.task(adopted.task), adopted, attach=True)

    async def _carry_out_intents(self) -> None:
        for intent in self.house.store.intents():
            await self._carry_out(intent)

    async def _carry_out(self, intent: Intent) -> None:
        store, by = self.house.store, self.house.name
        task = store.task(intent.target)
        runner = self._running.get(task.session or "")
        if runner is not None:
            reason = intent.args.get("reason") or f"{intent.verb} asked by {intent.by}"
            runner.end(Wish(intent.verb, reason, by=intent.by, intent=intent.id))
        elif task.state not in IN_PROGRESS:
            await store.fulfil(intent.id, "refused", by=by, detail=f"the task is {task.state.value}")

    def _start(self, task: Task, session: Session, *, attach: bool) -> None:
        runner = SessionRunner(self.house, task, session)
        self._running[session.id] = runner
        self._sessions += 1
        work = runner.attach() if attach else runner.run()
        self._tasks[session.id] = asyncio.get_running_loop().create_task(self._drive(session.id, work))

    async def _drive(self, session: str, work: object) -> None:
        """One session's task. A fence is not an error: somebody else has it now. Anything else must be seen."""
        try:
            await work  # type: ignore[misc]
        except Fenced as exc:
            self.house.log("session_fenced", session=session, error=str(exc))
        except asyncio.CancelledError:
            return
        except Exception as exc:
            self.house.log("session_error", session=session, error=f"{type(exc).__name__}: {exc}")
            self._failure = exc
            self.stop()
        self._running.pop(session, None)
        self._tasks.pop(session, None)
        self.house.wake.set()

    async def _shut_down(self) -> None:
        """Leave the agents running, or end them; neither costs an attempt."""
        if self._stop_agents:
            for runner in self._running.values():
                runner.end(Wish("shutdown", "the supervisor was told to stop its agents"))
            await asyncio.gather(*self._tasks.values(), return_exceptions=True)
        for driving in list(self._tasks.values()):
            driving.cancel()
        await asyncio.gather(*self._tasks.values(), return_exceptions=True)

    async def _keep_lease(self) -> None:
        """Renew in time; a lease that is lost ends us at once, before somebody else acts."""
        while True:
            await asyncio.sleep(LEASE_SECONDS / 3)
            try:
                await self.house.store.renew(self.house.name, seconds=LEASE_SECONDS)
            except LeaseLost as exc:
                self._failure = exc
                self.stop()
                return
            except FleetError as exc:
                self.house.log("lease_not_renewed", error=str(exc))

    def _reload_settings(self) -> None:
        """Take an edit of fleet.toml; one that is broken keeps what is in force, and says where the error is."""
        try:
            seen = self.house.home.toml.stat().st_mtime_ns
        except OSError:
            return
        if seen == self._toml_seen:
            return
        first, self._toml_seen = self._toml_seen is None, seen
        try:
            self.house.take(load(self.house.home))
            if not first:
                self.house.log("settings_reloaded")
        except ConfigError as exc:
            self.house.log("settings_broken", error=str(exc))

    def _rung(self, bell: Bell) -> None:
        bell.wait(0)
        self.house.wake.set()
